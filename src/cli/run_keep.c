/* run_keep.c - see run_keep.h. */
#include "cli/run_keep.h"

static void on_told(struct client_exchange *x, const struct err *err)
{
	(void)err; /* the next one may do better */
	CONTAINER_OF(x, struct run_keep, x)->busy = false;
}

static void on_due(struct timer *t)
{
	static const struct client_exchange_ops ops = { NULL, on_told };
	static const struct bytes body = BYTES_LIT("{\"timeout\":300}");
	struct run_keep *k = CONTAINER_OF(t, struct run_keep, timer);
	struct client_ask ask = {
		.to = &k->s->api,
		.method = "POST",
		.target = k->target,
		.fields = { { BYTES_LIT("x-api-key"), bytes_str(k->s->c->e2b.key) },
			    { BYTES_LIT("content-type"), BYTES_LIT("application/json") } },
		.n_fields = 2,
		.body = body,
		.reply_ms = RUN_ASK_MS,
	};
	struct err err;

	static_assert(RUN_KEEP_S == 300, "as in the body");
	if (k->busy)
		return;
	snprintf(k->target, sizeof(k->target), "/sandboxes/%s/connect", k->s->id);
	k->x.ops = &ops;
	k->busy = client_start(&k->x, &k->s->client, &ask, &err) == 0;
}

void run_keep_begin(struct run_keep *k, struct run_session *s)
{
	*k = (struct run_keep){ .s = s };
	timer_init(&k->timer, s->client.loop, on_due);
	timer_repeat(&k->timer, s->c->keep_soon ? RUN_KEEP_SOON_MS : RUN_KEEP_MS);
}

void run_keep_end(struct run_keep *k)
{
	if (!k->s)
		return;
	timer_stop(&k->timer);
	client_cancel(&k->x);
	*k = (struct run_keep){ 0 };
}
