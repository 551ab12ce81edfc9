/* tls_stream.c - a stream that encrypts what goes through it.
 *
 * SHAKING until the handshake is over, then OPEN; BROKEN when anything goes wrong; DEAD after
 * close(), freed in the next turn. The library reads from `in`, and writes to `out`, which is
 * passed down at once: no bytes wait here, but what is written while SHAKING (`early`), and what
 * came and the user does not want now (`held`).
 *
 * `later` is for what must come from the loop: the first step, a failure, what was held.
 */
#include "tls/tls_stream.h"

#include <assert.h>
#include <openssl/err.h>

#include "net/stream_layer.h"
#include "net/timer.h"
#include "tls/openssl_inside.h"
#include "wire/domain.h"

enum {
	PIECE_MAX = 16 * 1024, /* a whole record */
	HELD_MAX = 256 * 1024, /* `first`, or one read of the stream below */
};

enum tls_state { TLS_SHAKING, TLS_OPEN, TLS_BROKEN, TLS_DEAD };

struct tls_stream {
	struct stream face;
	struct stream_user lower;
	struct stream *below;
	struct tls_context *ctx;
	SSL *ssl;
	struct tls_chooser *chooser;
	struct timer later, deadline;
	struct bytes in; /* borrowed for the length of a callback */
	struct buf out, early, held;
	struct err why; /* BROKEN; or what the chooser said */
	enum tls_state state;
	bool told;  /* of the failure */
	bool ended; /* the other side finished writing */
	bool above; /* more than STREAM_LOW_WATER was written early: on_drain is due */
	char alpn[TLS_ALPN_MAX + 1];
};

static struct tls_stream *of(struct stream *s)
{
	return CONTAINER_OF(s, struct tls_stream, face);
}

static struct tls_stream *of_lower(struct stream_user *u)
{
	return CONTAINER_OF(u, struct tls_stream, lower);
}

/* Whoever reads or not is a function of what we are; nobody toggles it by hand. */
static void update(struct tls_stream *t)
{
	bool wants = t->state == TLS_SHAKING;

	if (t->state == TLS_DEAD)
		return;
	if (t->state == TLS_OPEN)
		wants = t->face.reading && !t->ended && t->held.len == 0;
	stream_read(t->below, wants);
}

/* The first reason counts. Told from the loop: this may be inside a call of the user's. */
static void break_down(struct tls_stream *t, const struct err *why)
{
	if (t->state == TLS_BROKEN || t->state == TLS_DEAD)
		return;
	t->why = *why;
	t->state = TLS_BROKEN;
	timer_stop(&t->deadline);
	buf_done(&t->early);
	buf_done(&t->held);
	update(t);
	timer_start(&t->later, 0);
}

/* Beyond the limit of the stream below by what TLS adds: its users were refused before. What grows
 * without them, answers that the other side asks for and does not read, has a limit of its own. */
static int pass_down(struct tls_stream *t, struct err *err)
{
	int rc = 0;

	if (t->out.len == 0)
		return 0;
	if (stream_queued(t->below) + t->out.len > TLS_QUEUE_MAX)
		rc = err_set(err, ERR_EXHAUSTED, 0, "TLS: the other side asks and does not read");
	else
		rc = t->below->ops->write(t->below, (struct bytes){ 0 }, &t->out, err);
	buf_done(&t->out);
	t->out.max = TLS_QUEUE_MAX;
	return rc;
}

static void pass_down_or_break(struct tls_stream *t)
{
	struct err err;

	if (pass_down(t, &err) < 0)
		break_down(t, &err);
}

/* Why the library gave up, in words. */
static void explain(struct tls_stream *t, const char *doing, struct err *err)
{
	long verdict = SSL_get_verify_result(t->ssl);
	unsigned long e = ERR_peek_last_error();

	if (t->why.code != ERR_NONE)
		*err = t->why; /* the chooser's */
	else if (ERR_GET_REASON(e) == SSL_R_CERTIFICATE_VERIFY_FAILED && verdict != X509_V_OK)
		err_set(err, ERR_DENIED, 0, "TLS: the certificate of %.128s: %s",
			SSL_get_servername(t->ssl, TLSEXT_NAMETYPE_host_name),
			X509_verify_cert_error_string(verdict));
	else
		openssl_fail(err, ERR_INVALID, doing);
	ERR_clear_error();
}

static void fail(struct tls_stream *t, const char *doing)
{
	struct err err, ignored;

	explain(t, doing, &err);
	(void)pass_down(t, &ignored); /* the alert that tells the other side */
	break_down(t, &err);
}

static int encrypt(struct tls_stream *t, struct bytes b, struct err *err)
{
	size_t n = 0;

	ERR_clear_error();
	if (SSL_write_ex(t->ssl, b.ptr, b.len, &n) != 1 || n != b.len) {
		openssl_fail(err, ERR_UNAVAILABLE, "TLS: write");
		break_down(t, err);
		return -1;
	}
	if (pass_down(t, err) == 0)
		return 0;
	break_down(t, err);
	return -1;
}

static void say_goodbye(struct tls_stream *t)
{
	ERR_clear_error();
	(void)SSL_shutdown(t->ssl); /* only says so; the other side's word is read as data is */
	ERR_clear_error();
	pass_down_or_break(t);
	if (t->state == TLS_OPEN)
		stream_shut(t->below);
}

static void tell_drained(struct tls_stream *t)
{
	if (t->face.user && t->face.user->ops->on_drain)
		t->face.user->ops->on_drain(t->face.user);
}

static void send_early(struct tls_stream *t)
{
	struct err ignored;

	if (t->early.len > 0 && encrypt(t, buf_view(&t->early), &ignored) < 0)
		return;
	buf_done(&t->early);
	if (t->face.shut)
		say_goodbye(t);
	if (t->state == TLS_OPEN && t->above && stream_queued(t->below) <= STREAM_LOW_WATER)
		tell_drained(t);
	t->above = false;
}

/* A server must not pick what was not offered. */
static bool alpn_agrees(struct tls_stream *t)
{
	const unsigned char *picked;
	unsigned int n;

	SSL_get0_alpn_selected(t->ssl, &picked, &n);
	return n == 0 || bytes_eq((struct bytes){ picked, n }, bytes_str(t->alpn));
}

static void shake(struct tls_stream *t)
{
	struct err err;
	int rc;

	ERR_clear_error();
	rc = SSL_do_handshake(t->ssl);
	if (rc != 1 && SSL_get_error(t->ssl, rc) == SSL_ERROR_WANT_READ) {
		pass_down_or_break(t);
		return;
	}
	if (rc != 1) {
		fail(t, "TLS: handshake");
		return;
	}
	if (!alpn_agrees(t)) {
		err_set(&err, ERR_INVALID, 0, "TLS: a protocol was picked that is not %s", t->alpn);
		break_down(t, &err);
		return;
	}
	timer_stop(&t->deadline);
	t->state = TLS_OPEN;
	pass_down_or_break(t);
	if (t->state == TLS_OPEN)
		send_early(t);
}

/* One record. False: no more for now. */
static bool read_piece(struct tls_stream *t)
{
	uint8_t piece[PIECE_MAX];
	size_t n = 0;
	int rc, why;

	ERR_clear_error();
	rc = SSL_read_ex(t->ssl, piece, sizeof(piece), &n);
	if (rc == 1) {
		t->face.user->ops->on_data(t->face.user, (struct bytes){ piece, n });
		return true;
	}
	why = SSL_get_error(t->ssl, rc);
	if (why == SSL_ERROR_WANT_READ)
		return false;
	if (why == SSL_ERROR_ZERO_RETURN) {
		t->ended = true;
		t->face.user->ops->on_end(t->face.user);
		return false;
	}
	fail(t, "TLS: read");
	return false;
}

/* As far as `in` goes and the user wants. */
static void advance(struct tls_stream *t)
{
	if (t->state == TLS_SHAKING)
		shake(t);
	while (t->state == TLS_OPEN && t->face.reading && !t->ended)
		if (!read_piece(t))
			break;
	if (t->state == TLS_OPEN)
		pass_down_or_break(t);
}

static void advance_held(struct tls_stream *t)
{
	t->in = buf_view(&t->held);
	advance(t);
	if (t->held.len > 0) /* not so when it broke meanwhile */
		buf_drop(&t->held, t->held.len - t->in.len);
	if (t->held.len == 0)
		buf_done(&t->held);
	t->held.max = HELD_MAX;
	t->in = (struct bytes){ 0 };
	update(t);
}

static void hold(struct tls_stream *t, struct bytes rest)
{
	struct err err;

	if (t->state <= TLS_OPEN && buf_add(&t->held, rest, &err) < 0)
		break_down(t, &err);
}

static void on_lower_data(struct stream_user *u, struct bytes in)
{
	struct tls_stream *t = of_lower(u);

	if (t->held.len > 0) {
		hold(t, in);
		if (t->held.len > 0)
			advance_held(t);
		return;
	}
	t->in = in;
	advance(t);
	in = t->in;
	t->in = (struct bytes){ 0 };
	if (in.len > 0)
		hold(t, in);
	update(t);
}

/* Where nobody's certificate is looked at, an end that was not announced could be forged like any
 * other; many small servers never announce theirs. Within a record it is a break all the same. */
static bool may_just_end(const struct tls_stream *t)
{
	return t->ctx->unverified && t->state == TLS_OPEN && t->face.user && t->face.reading &&
	       t->held.len == 0 && SSL_has_pending(t->ssl) == 0;
}

static void on_lower_end(struct stream_user *u)
{
	struct tls_stream *t = of_lower(u);
	struct err err;

	if (t->ended)
		return;
	if (may_just_end(t)) {
		t->ended = true;
		t->face.user->ops->on_end(t->face.user);
		return;
	}
	err_set(&err, ERR_UNAVAILABLE, 0, "TLS: the other side went without saying so");
	break_down(t, &err);
}

static void on_lower_drain(struct stream_user *u)
{
	struct tls_stream *t = of_lower(u);

	if (t->state == TLS_OPEN)
		tell_drained(t);
}

static void on_lower_fail(struct stream_user *u, const struct err *err)
{
	break_down(of_lower(u), err);
}

static const struct stream_user_ops lower_ops = { on_lower_data, on_lower_end, on_lower_drain,
						  on_lower_fail };

static void free_stream(struct tls_stream *t)
{
	SSL_free(t->ssl);
	tls_context_free(t->ctx);
	buf_done(&t->out);
	buf_done(&t->early);
	buf_done(&t->held);
	free(t);
}

static void on_later(struct timer *timer)
{
	struct tls_stream *t = CONTAINER_OF(timer, struct tls_stream, later);

	switch (t->state) {
	case TLS_DEAD:
		free_stream(t);
		break;
	case TLS_BROKEN:
		if (t->face.user && !t->told) {
			t->told = true;
			t->face.user->ops->on_fail(t->face.user, &t->why);
		}
		break;
	case TLS_SHAKING:
	case TLS_OPEN:
		advance_held(t);
		break;
	}
}

static void on_too_late(struct timer *timer)
{
	struct tls_stream *t = CONTAINER_OF(timer, struct tls_stream, deadline);
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "TLS: no handshake within %d s", TLS_HANDSHAKE_MS / 1000);
	break_down(t, &err);
}

static void tls_read(struct stream *s, bool on)
{
	struct tls_stream *t = of(s);

	(void)on;
	if (t->state == TLS_BROKEN || (t->state == TLS_OPEN && s->reading))
		timer_start(&t->later, 0);
	update(t);
}

static int tls_write(struct stream *s, struct bytes b, struct buf *take, struct err *err)
{
	struct tls_stream *t = of(s);
	struct bytes all = take ? buf_view(take) : b;

	if (t->state == TLS_OPEN)
		return encrypt(t, all, err);
	if (t->state != TLS_SHAKING) /* whoever writes before on_fail came learns why, too */
		return err_set(err, ERR_UNAVAILABLE, 0, "%s", t->why.msg);
	if (buf_add(&t->early, all, err) < 0)
		return -1;
	t->above |= t->early.len > STREAM_LOW_WATER;
	return 0;
}

static void tls_shut(struct stream *s)
{
	if (of(s)->state == TLS_OPEN)
		say_goodbye(of(s));
}

static void tls_close(struct stream *s, bool graceful)
{
	struct tls_stream *t = of(s);
	struct err ignored;

	if (graceful && t->state == TLS_OPEN && !s->shut) {
		ERR_clear_error();
		(void)SSL_shutdown(t->ssl);
		ERR_clear_error();
		(void)pass_down(t, &ignored);
	}
	/* BROKEN: an alert may be on its way */
	if (graceful && t->state != TLS_SHAKING)
		stream_close(t->below);
	else
		stream_abort(t->below);
	t->below = NULL;
	t->state = TLS_DEAD;
	timer_stop(&t->deadline);
	timer_start(&t->later, 0);
}

static size_t tls_queued(struct stream *s)
{
	return of(s)->early.len + stream_queued(of(s)->below);
}

static uint64_t tls_sent(struct stream *s)
{
	return stream_sent(of(s)->below);
}

static const struct stream_ops tls_ops = { tls_read,   tls_write, tls_shut, tls_close,
					   tls_queued, tls_sent,  NULL };

/* --- what the library asks ------------------------------------------------------------------ */

static int pipe_read(BIO *b, char *into, int n)
{
	struct tls_stream *t = BIO_get_data(b);
	struct bytes piece = bytes_head(t->in, n > 0 ? (size_t)n : 0);

	BIO_clear_retry_flags(b);
	if (piece.len == 0) {
		BIO_set_retry_read(b);
		return -1;
	}
	memcpy(into, piece.ptr, piece.len);
	t->in = bytes_tail(t->in, piece.len);
	return (int)piece.len;
}

static int pipe_write(BIO *b, const char *from, int n)
{
	struct tls_stream *t = BIO_get_data(b);
	struct err ignored;

	BIO_clear_retry_flags(b);
	if (n <= 0 ||
	    buf_add(&t->out, (struct bytes){ (const uint8_t *)from, (size_t)n }, &ignored) < 0)
		return -1;
	return n;
}

static int server_choose(SSL *ssl, void *unused)
{
	struct tls_stream *t = SSL_get_app_data(ssl);
	const char *said = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	const struct identity *who = NULL;
	char name[DOMAIN_SIZE] = "";

	(void)unused;
	if (said && !domain_normal(bytes_str(said), name)) {
		err_set(&t->why, ERR_INVALID, 0, "TLS: what was asked for is not a name");
		return 0;
	}
	if (t->chooser->choose(t->chooser, name, &who, &t->why) < 0)
		return 0;
	t->why = (struct err){ 0 };
	return SSL_use_cert_and_key(ssl, who->leaf, who->key, who->above, 1) == 1;
}

static int server_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
		       const unsigned char *offered, unsigned int n, void *unused)
{
	const struct tls_stream *t = SSL_get_app_data(ssl);
	struct bytes list = { offered, n }, ours = bytes_str(t->alpn);

	(void)unused;
	if (ours.len == 0)
		return SSL_TLSEXT_ERR_NOACK;
	while (list.len > 0) { /* each is a length and so many bytes; the library checked that */
		struct bytes one = bytes_head(bytes_tail(list, 1), list.ptr[0]);

		if (bytes_eq(one, ours)) {
			*ret = one.ptr;
			*ret_n = (unsigned char)one.len;
			return SSL_TLSEXT_ERR_OK;
		}
		list = bytes_tail(list, 1 + (size_t)list.ptr[0]);
	}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static long pipe_ctrl(BIO *b, int cmd, long n, void *at)
{
	(void)b;
	(void)n;
	(void)at;
	return cmd == BIO_CTRL_FLUSH; /* what is written is never held back */
}

static int pipe_create(BIO *b)
{
	BIO_set_init(b, 1);
	return 1;
}

bool tls_stream_set_up(struct tls_context *c)
{
	if (c->server) {
		SSL_CTX_set_cert_cb(c->ssl, server_choose, NULL);
		SSL_CTX_set_alpn_select_cb(c->ssl, server_alpn, NULL);
	}
	c->pipe = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "stream");
	return c->pipe && BIO_meth_set_read(c->pipe, pipe_read) == 1 &&
	       BIO_meth_set_write(c->pipe, pipe_write) == 1 &&
	       BIO_meth_set_ctrl(c->pipe, pipe_ctrl) == 1 &&
	       BIO_meth_set_create(c->pipe, pipe_create) == 1;
}

/* --- how a stream comes to be --------------------------------------------------------------- */

static bool attach(struct tls_stream *t)
{
	BIO *pipe;

	t->ssl = SSL_new(t->ctx->ssl);
	pipe = t->ssl ? BIO_new(t->ctx->pipe) : NULL;
	if (!pipe)
		return false;
	BIO_set_data(pipe, t);
	SSL_set_bio(t->ssl, pipe, pipe);
	return SSL_set_app_data(t->ssl, t) == 1;
}

static struct tls_stream *blank(struct tls_context *c, struct stream *below, const char *alpn)
{
	struct tls_stream *t = calloc(1, sizeof(*t));
	struct loop *l = stream_loop(below);

	if (!t)
		return NULL;
	stream_init(&t->face, &tls_ops, l);
	timer_init(&t->later, l, on_later);
	timer_init(&t->deadline, l, on_too_late);
	t->lower.ops = &lower_ops;
	t->below = below;
	t->ctx = c;
	c->refs++;
	t->out.max = TLS_QUEUE_MAX;
	t->early.max = STREAM_QUEUE_MAX;
	t->held.max = HELD_MAX;
	if (bytes_to_str(bytes_str(alpn ? alpn : ""), t->alpn, sizeof(t->alpn)) && attach(t))
		return t;
	free_stream(t);
	return NULL;
}

static void begin(struct tls_stream *t, struct stream **ret)
{
	stream_set_user(t->below, &t->lower);
	update(t);
	timer_start(&t->deadline, TLS_HANDSHAKE_MS);
	timer_start(&t->later, 0);
	*ret = &t->face;
}

static bool offer_alpn(struct tls_stream *t)
{
	uint8_t list[1 + TLS_ALPN_MAX];
	size_t n = strlen(t->alpn);

	list[0] = (uint8_t)n;
	memcpy(list + 1, t->alpn, n);
	return n == 0 || SSL_set_alpn_protos(t->ssl, list, (unsigned int)n + 1) == 0;
}

static bool expect(struct tls_stream *t, const char *name)
{
	char said[TLS_NAME_MAX + 1]; /* the library wants one that it could change */

	/* in the list of names, that is: what a certificate calls itself is for people */
	SSL_set_hostflags(t->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
					  X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (!name)
		return t->ctx->unverified;
	return bytes_to_str(bytes_str(name), said, sizeof(said)) &&
	       SSL_set_tlsext_host_name(t->ssl, said) == 1 && SSL_set1_host(t->ssl, said) == 1;
}

int tls_connect(struct tls_context *c, struct stream *below, const char *name, const char *alpn,
		struct stream **ret, struct err *err)
{
	struct tls_stream *t = blank(c, below, alpn);

	assert(!c->server);
	if (!t || !expect(t, name) || !offer_alpn(t)) {
		if (t)
			free_stream(t);
		stream_abort(below);
		return openssl_fail(err, ERR_INTERNAL, "TLS: begin as a client");
	}
	SSL_set_connect_state(t->ssl);
	begin(t, ret);
	return 0;
}

int tls_accept(struct tls_context *c, struct stream *below, struct bytes first,
	       struct tls_chooser *chooser, const char *alpn, struct stream **ret, struct err *err)
{
	struct tls_stream *t = blank(c, below, alpn);

	assert(c->server);
	if (!t || buf_add(&t->held, first, err) < 0) {
		if (t)
			free_stream(t);
		stream_abort(below);
		return openssl_fail(err, ERR_EXHAUSTED, "TLS: begin as a server");
	}
	t->chooser = chooser;
	SSL_set_accept_state(t->ssl);
	begin(t, ret);
	return 0;
}
