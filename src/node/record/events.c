/* events.c - a ring of short texts. */
#include "node/record/events.h"

#include <stdarg.h>

#include "base/clock.h"
#include "node/life/sandbox_row.h"
#include "node/node.h"
#include "node/life/requests.h"
#include "wire/rfc3339.h"

static const struct event *at(const struct events *e, unsigned int i)
{
	return &e->at[(e->first + i) % EVENTS_MAX];
}

void events_add(struct events *e, enum event_level level, const char *name, const char *fmt, ...)
{
	uint64_t now = clock_wall_ns();
	struct event *v;
	va_list ap;

	if (!e->at)
		e->at = calloc(EVENTS_MAX, sizeof(*e->at));
	if (!e->at)
		return;
	if (e->n > 0 && now <= at(e, e->n - 1)->ns)
		now = at(e, e->n - 1)->ns + 1; /* who reads on from one must not miss another */
	if (e->n == EVENTS_MAX)
		e->first = (e->first + 1) % EVENTS_MAX;
	else
		e->n++;
	v = &e->at[(e->first + e->n - 1) % EVENTS_MAX];
	*v = (struct event){ .ns = now, .name = name, .level = level };
	va_start(ap, fmt);
	vsnprintf(v->message, sizeof(v->message), fmt, ap);
	va_end(ap);
}

void events_done(struct events *e)
{
	free(e->at);
	*e = (struct events){ 0 };
}

static int put_one(const struct event *v, json_t *all, struct err *err)
{
	static const char *const levels[] = { "info", "warn", "error" };
	char time[RFC3339_SIZE];

	rfc3339_put(v->ns, 9, time);
	if (json_array_append_new(all, json_pack("{s:s, s:s, s:o, s:{s:s}}", "timestamp", time,
						 "level", levels[v->level], "message",
						 json_text(bytes_str(v->message)), "fields",
						 "event", v->name)) < 0)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory for an event");
	return 0;
}

int events_put(const struct events *e, const struct node_request *rq, struct buf *out,
	       struct err *err)
{
	AUTO(json_decrefp) json_t *all = json_array();
	size_t max = rq->count ? rq->count : EVENTS_MAX;

	for (unsigned int i = 0; i < e->n && json_array_size(all) < max; i++) {
		const struct event *v = at(e, rq->flags & NODE_NEWEST ? e->n - 1 - i : i);

		if (v->ns > rq->after_ns && (!rq->until_ns || v->ns < rq->until_ns) &&
		    put_one(v, all, err) < 0)
			return -1;
	}
	return json_encode(all, out, err);
}

void events_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		struct bytes text)
{
	AUTO(buf_done) struct buf out = BUF_MAX(EVENTS_TEXT_MAX);
	struct err err;
	const struct sandbox *s = requests_find(n, rq, &err);

	(void)text;
	if (!s)
		ended_refuse(n, a, rq, &err);
	else if (events_put(&s->record.events, rq, &out, &err) < 0)
		door_refuse(a, &err);
	else
		door_answer(a, &(struct node_reply){ .sandbox = sandbox_told(s) }, buf_view(&out),
			    NULL, 0);
}
