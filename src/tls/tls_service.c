/* tls_service.c - see tls_service.h. */
#include "tls/tls_service.h"

#include <assert.h>
#include <errno.h>
#include <openssl/async.h>
#include <openssl/err.h>

#include "base/list.h"
#include "tls/chain_inside.h"
#include "tls/context_inside.h"
#include "tls/remote_key.h"
#include "tls/tickets.h"
#include "tls/tls_stream_inside.h"

struct line {
	struct tls_shake *first, **last;
};

struct tls_service {
	struct loop *loop;
	struct tls_context *ctx;
	struct tls_chooser *chooser;
	struct tls_signer *signer;
	struct tickets tickets;
	struct timer turn;
	struct line rounds[TLS_ROUNDS]; /* who waits for his turn; round n is at n % TLS_ROUNDS */
	uint64_t round;                 /* the one that is served */
	size_t n_waiting;               /* in all rounds */
	struct line back;               /* have their signature: they come first */
	size_t n_aside;                 /* that wait for a signature, or have just got it */
	char protocols[TLS_PROTOCOLS_MAX + 1];
};

/* --- turns ---------------------------------------------------------------------------------- */

static bool anybody(const struct tls_service *s)
{
	return s->back.first || (s->n_waiting > 0 && s->n_aside < TLS_SIGNING_MAX);
}

static void plan_turn(struct tls_service *s)
{
	if (anybody(s) && !s->turn.active)
		timer_start(&s->turn, 0);
}

/* The answer is in its place: no longer aside. */
static void come_back(struct tls_shake *h, enum tls_sign_state state)
{
	h->sign.state = state;
	h->signing = false;
	h->service->n_aside--;
	h->turn = true; /* it has had its turn */
}

static struct line *line_of(struct tls_shake *h)
{
	struct tls_service *s = h->service;

	return h->signing ? &s->back : &s->rounds[h->round % TLS_ROUNDS];
}

/* The first round in which nobody of the same is yet. */
static uint64_t next_round(const struct tls_shake *h)
{
	uint64_t now = h->service->round, *last = h->guest->round, n = now;

	if (last && *last >= now)
		n = *last + 1;
	if (n - now >= TLS_ROUNDS)
		n = now + TLS_ROUNDS - 1;
	if (last)
		*last = n;
	return n;
}

void tls_service_wait(struct tls_shake *h)
{
	if (h->prev || h->signing)
		return;
	h->round = next_round(h);
	queue_add(line_of(h), h);
	h->service->n_waiting++;
	plan_turn(h->service);
}

static void wait_no_more(struct tls_shake *h)
{
	if (!h->prev)
		return;
	queue_remove(line_of(h), h);
	if (!h->signing)
		h->service->n_waiting--;
}

static struct tls_shake *whose_turn(struct tls_service *s)
{
	if (s->back.first)
		return s->back.first;
	while (!s->rounds[s->round % TLS_ROUNDS].first)
		s->round++;
	return s->rounds[s->round % TLS_ROUNDS].first;
}

static void on_turn(struct timer *t)
{
	struct tls_service *s = CONTAINER_OF(t, struct tls_service, turn);

	for (int i = 0; i < TLS_STEPS && anybody(s); i++) {
		struct tls_shake *h = whose_turn(s);

		wait_no_more(h);
		if (h->signing)
			come_back(h, h->sign.state);
		h->turn = true;
		tls_advance_held(h->of); /* h may be gone after this */
	}
	plan_turn(s);
}

int tls_service_step(struct tls_shake *h)
{
	struct tls_stream *t = h->of;
	int rc;

	h->turn = false;
	remote_keys_now(h->service->ctx->keys, &h->sign);
	rc = SSL_do_handshake(t->ssl);
	remote_keys_now(h->service->ctx->keys, NULL);
	return rc;
}

/* --- signatures ----------------------------------------------------------------------------- */

void tls_service_sign(struct tls_shake *h)
{
	struct tls_service *s = h->service;
	struct err err = { 0 };

	h->signing = true;
	s->n_aside++;
	if (s->signer->ask(s->signer, &h->sign, &err) == 0)
		return;
	h->of->why = err;
	come_back(h, TLS_SIGN_FAILED);
	timer_start(&h->of->later, 0);
}

void tls_sign_done(struct tls_sign *what, struct bytes signature, const struct err *err)
{
	struct tls_shake *h = CONTAINER_OF(what, struct tls_shake, sign);

	assert(h->signing);
	what->ask = NULL;
	if (!err && signature.len <= sizeof(what->signature)) {
		memcpy(what->signature, signature.ptr, signature.len);
		what->n_signature = signature.len;
		what->state = TLS_SIGN_DONE;
	} else {
		if (err)
			h->of->why = *err;
		what->state = TLS_SIGN_FAILED;
	}
	queue_add(&h->service->back, h);
	plan_turn(h->service);
}

/* What is put aside has a stack of its own, which is given back only when it ends: it is called
 * once more, to fail. What it says then is heard by nobody. */
static void end_aside(struct tls_shake *h)
{
	struct tls_service *s = h->service;

	if (h->sign.ask)
		s->signer->cancel(s->signer, &h->sign);
	h->sign.ask = NULL;
	come_back(h, TLS_SIGN_FAILED);
	(void)tls_service_step(h);
	ERR_clear_error();
}

void tls_service_forget(struct tls_stream *t)
{
	struct tls_shake *h = TAKE(t->shake);

	if (!h)
		return;
	wait_no_more(h);
	if (h->signing)
		end_aside(h);
	plan_turn(h->service); /* there may be room for the next one */
	free(h);
}

/* --- the stream ----------------------------------------------------------------------------- */

const char *tls_service_protocols(struct tls_shake *h)
{
	return h->service->protocols;
}

void tls_service_opened(struct tls_stream *t)
{
	struct tls_guest *guest = t->shake->guest;
	const unsigned char *picked = NULL;
	char protocol[TLS_ALPN_MAX + 1] = "";
	unsigned int n = 0;

	SSL_get0_alpn_selected(t->ssl, &picked, &n);
	(void)bytes_to_str((struct bytes){ picked, n }, protocol, sizeof(protocol));
	(void)SSL_clear_mode(t->ssl, SSL_MODE_ASYNC); /* nothing waits from here on */
	tls_service_forget(t);
	guest->on_open(guest, protocol);
}

int tls_service_accept(struct tls_service *s, struct stream *below, struct tls_guest *g,
		       struct stream **ret, struct err *err)
{
	struct tls_stream *t = tls_stream_blank(s->ctx, below, NULL);
	struct tls_shake *h = calloc(1, sizeof(*h));

	if (!t || !h) {
		if (t)
			tls_free_stream(t);
		free(h);
		stream_abort(below);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "no memory for a handshake");
	}
	*h = (struct tls_shake){ .of = t, .service = s, .guest = g };
	t->shake = h;
	t->chooser = s->chooser;
	stream_set_user(t->below, &t->lower);
	tls_update(t);
	timer_start(&t->deadline, TLS_SERVICE_MS);
	*ret = &t->face;
	return 0;
}

/* --- open and close ------------------------------------------------------------------------- */

static int open_parts(struct tls_service *s, const struct tls_service_terms *terms, struct err *err)
{
	if (tls_service_context(&s->ctx, err) < 0 ||
	    tickets_open(&s->tickets, s->loop, s->ctx->keys->lib, s->ctx->ssl, terms->ticket_ms,
			 err) < 0)
		return -1;
	/* one more than are put aside at once runs, and comes to its end or is put aside */
	if (ASYNC_init_thread(TLS_SIGNING_MAX + 1, 0) != 1)
		return openssl_fail(err, ERR_INTERNAL, "handshakes that wait");
	return 0;
}

int tls_service_open(struct tls_service **ret, struct loop *l,
		     const struct tls_service_terms *terms, struct err *err)
{
	struct tls_service *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate TLS");
	s->loop = l;
	s->chooser = terms->chooser;
	s->signer = terms->signer;
	queue_init(&s->back);
	for (size_t i = 0; i < TLS_ROUNDS; i++)
		queue_init(&s->rounds[i]);
	timer_init(&s->turn, l, on_turn);
	if (!bytes_to_str(bytes_str(terms->protocols), s->protocols, sizeof(s->protocols)))
		err_set(err, ERR_INVALID, 0, "too many protocols");
	else if (open_parts(s, terms, err) == 0) {
		*ret = s;
		return 0;
	}
	tls_service_close(s);
	return -1;
}

void tls_service_close(struct tls_service *s)
{
	if (!s)
		return;
	assert(s->n_waiting == 0 && s->n_aside == 0);
	timer_stop(&s->turn);
	tickets_close(&s->tickets);
	tls_context_free(s->ctx);
	ASYNC_cleanup_thread();
	free(s);
}

struct remote_keys *tls_service_keys(struct tls_service *s)
{
	return s->ctx->keys;
}

SSL_CTX *tls_service_ssl(struct tls_service *s)
{
	return s->ctx->ssl;
}

void tls_service_rotate(struct tls_service *s)
{
	tickets_rotate(&s->tickets);
}
