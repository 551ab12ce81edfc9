/* signer_link.c - see signer_link.h. */
#include "gateway/arrivals/signer_link.h"

#include <assert.h>
#include <errno.h>

#include "base/log.h"

static_assert(offsetof(struct signer_request, verb) == offsetof(struct link_head, what) &&
		      offsetof(struct signer_reply, code) == offsetof(struct link_head, what),
	      "they begin as all do");
static_assert((int)TLS_SIGN_WHAT_MAX == (int)SIGNER_WHAT_MAX && (int)SIGN_ID == (int)SIGNER_ID &&
		      (int)SIGN_MAX == (int)SIGNER_SIGNATURE_MAX,
	      "both mean the same");

struct signer_ask { /* one signature that is waited for */
	struct link_call call;
	struct tls_sign *what;
};

static struct bytes bytes_of(const struct signer_request *rq)
{
	return (struct bytes){ (const uint8_t *)rq, sizeof(*rq) };
}

static void on_signed(struct link_call *c, const struct link_reply *r)
{
	AUTO(auto_free) struct signer_ask *a = CONTAINER_OF(c, struct signer_ask, call);
	struct signer_link *s = CONTAINER_OF(r->link, struct signer_link, link);
	struct signer_reply said = { 0 };

	if (!r->err)
		memcpy(&said, r->head.ptr, sizeof(said));
	if (r->err)
		s->n_failed++;
	else
		s->n_signed++;
	tls_sign_done(a->what, (struct bytes){ said.signature, said.n }, r->err);
}

static int ask(struct tls_signer *signer, struct tls_sign *what, struct err *err)
{
	struct signer_link *s = CONTAINER_OF(signer, struct signer_link, signer);
	struct signer_request rq = { .verb = SIGNER_SIGN,
				     .scheme = what->scheme,
				     .n = (uint32_t)what->n_what };
	const struct link_ask how = { .request = bytes_of(&rq),
				      .deadline_ms = SIGNER_ANSWER_MS,
				      .wait_ms = SIGNER_WAIT_MS,
				      .sends_max = SIGNER_SENDS_MAX };
	AUTO(auto_free) struct signer_ask *a = calloc(1, sizeof(*a));

	if (!a)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "ask for a signature");
	memcpy(rq.id, what->id, sizeof(rq.id));
	memcpy(rq.what, what->what, what->n_what);
	a->what = what;
	if (link_ask(&s->link, &a->call, &how, on_signed, err) < 0) {
		s->n_failed++;
		return -1;
	}
	what->ask = TAKE(a);
	return 0;
}

static void cancel(struct tls_signer *signer, struct tls_sign *what)
{
	(void)signer;
	link_cancel(&what->ask->call);
	free(what->ask);
}

int signer_link_has(struct signer_link *s, struct link_call *c, const uint8_t id[static SIGN_ID],
		    link_done_fn *on_done, struct err *err)
{
	struct signer_request rq = { .verb = SIGNER_HAS };
	const struct link_ask how = { .request = bytes_of(&rq), .deadline_ms = SIGNER_ANSWER_MS };

	memcpy(rq.id, id, sizeof(rq.id));
	return link_ask(&s->link, c, &how, on_done, err);
}

static bool reply_ok(struct bytes reply)
{
	struct signer_reply r;

	memcpy(&r, reply.ptr, sizeof(r));
	return r.n <= sizeof(r.signature);
}

static void on_up(struct link *l)
{
	struct signer_link *s = CONTAINER_OF(l, struct signer_link, link);

	s->on_up(s);
}

static void on_down(struct link *l)
{
	(void)l; /* the link has said so */
}

void signer_link_open(struct signer_link *s, struct loop *l, const char *path,
		      void (*told)(struct signer_link *s))
{
	static const struct link_words words = {
		.name = "signer",
		.own_name = "gateway",
		.min = SIGNER_VERSION_MIN,
		.max = SIGNER_VERSION_MAX,
		.request_max = sizeof(struct signer_request),
		.reply_min = sizeof(struct signer_reply),
		.reply_max = sizeof(struct signer_reply),
		.msg = offsetof(struct signer_reply, msg),
		.msg_size = sizeof(((struct signer_reply *)0)->msg),
		.named = true,
		.calls_max = SIGNER_CALLS_MAX,
		.sent_max = SIGNER_SENT_MAX,
		.batch = SIGNER_BATCH,
		.silence_ms = SIGNER_ANSWER_MS,
	};
	static const struct link_ops ops = { .on_up = on_up,
					     .on_down = on_down,
					     .reply_ok = reply_ok };

	s->signer = (struct tls_signer){ ask, cancel };
	s->on_up = told;
	link_open(&s->link, l, path, &words, &ops);
}

void signer_link_close(struct signer_link *s)
{
	link_close(&s->link);
}
