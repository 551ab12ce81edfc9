/* run_execution.c - see run_execution.h. */
#include "cli/run_execution.h"

#include <errno.h>
#include <stdio.h>

#include "cli/table.h"

/* --- what is told --------------------------------------------------------------------------- */

static bool is_picture(const struct run_event *v)
{
	return run_event_has(v, RUN_PNG) || run_event_has(v, RUN_JPEG) ||
	       run_event_has(v, RUN_PDF) || run_event_has(v, RUN_SVG);
}

/* A result that is lost is said, once, and the code goes on. */
static bool write_files(struct run_execution *e, const struct run_event *v)
{
	struct err err;

	if (!e->files || run_files_add(e->files, v, &err) >= 0)
		return e->files != NULL;
	table_clean(err.msg);
	if (!e->incomplete)
		fprintf(stderr, "hotcell: a result was not written: %s\n", err.msg);
	e->incomplete = true;
	return false;
}

/* The first that it has, as a line of its own. */
static int say_text(struct run_execution *e, const struct run_event *v, struct err *err)
{
	static const enum run_member order[] = { RUN_TEXT, RUN_MARKDOWN, RUN_LATEX, RUN_JAVASCRIPT,
						 RUN_JSON };

	for (size_t i = 0; i < COUNT(order); i++) {
		struct bytes text = v->member[order[i]];

		if (!text.ptr)
			continue;
		if (run_out_line(&e->out, err) < 0 ||
		    (order[i] < RUN_STRINGS ? run_out_json(&e->out, text, err)
					    : run_out_bytes(&e->out, text, err)) < 0)
			return -1;
		return run_out_line(&e->out, err);
	}
	return 0;
}

static int say_result(struct run_execution *e, const struct run_event *v, struct err *err)
{
	bool written = write_files(e, v);

	return written && is_picture(v) ? 0 : say_text(e, v, err);
}

static int say_error(struct run_execution *e, const struct run_event *v, struct err *err)
{
	struct run_out *o = &e->err_out;

	if (run_out_line(o, err) < 0)
		return -1;
	if (v->member[RUN_TRACEBACK].len > 0)
		return run_out_json(o, v->member[RUN_TRACEBACK], err) < 0 ? -1
									  : run_out_line(o, err);
	if (run_out_json(o, v->member[RUN_NAME], err) < 0 ||
	    run_out_bytes(o, BYTES_LIT(": "), err) < 0 ||
	    run_out_json(o, v->member[RUN_VALUE], err) < 0)
		return -1;
	return run_out_line(o, err);
}

static int say_json(struct run_execution *e, const struct run_event *v, struct bytes line,
		    struct err *err)
{
	if (v->type == RUN_OTHER)
		return 0;
	if (run_out_bytes(&e->out, line, err) < 0 ||
	    run_out_bytes(&e->out, BYTES_LIT("\n"), err) < 0)
		return -1;
	if (v->type == RUN_RESULT)
		(void)write_files(e, v);
	return 0;
}

static int say(struct run_execution *e, const struct run_event *v, struct err *err)
{
	switch (v->type) {
	case RUN_STDOUT:
		return run_out_json(&e->out, v->member[RUN_TEXT], err);
	case RUN_STDERR:
		return run_out_json(&e->err_out, v->member[RUN_TEXT], err);
	case RUN_RESULT:
		return say_result(e, v, err);
	case RUN_ERROR:
		return say_error(e, v, err);
	case RUN_OTHER:
	case RUN_COUNT:
	case RUN_END:
	case RUN_BROKEN:
		break;
	}
	return 0;
}

static int take_line(struct run_execution *e, struct bytes line, struct err *err)
{
	struct run_event v;
	int rc;

	if (run_event_read(line, &v, err) < 0) {
		table_clean(err->msg);
		return err_wrap(err, "sandbox %s", e->s->id);
	}
	e->raised = e->raised || v.type == RUN_ERROR;
	rc = e->s->c->json ? say_json(e, &v, line, err) : say(e, &v, err);
	e->closed = rc < 0 && err->sys == EPIPE;
	if (rc == 0 && v.type == RUN_BROKEN)
		return err_set(err, ERR_INTERNAL, 0, "sandbox %s: the kernel went away", e->s->id);
	return rc;
}

/* --- the exchange --------------------------------------------------------------------------- */

/* The session's exchange is the one that is under way. */
static struct run_execution *owner(struct client_exchange *x)
{
	return CONTAINER_OF(x, struct run_session, x)->execution;
}

static void give_up(struct run_execution *e, const struct err *err)
{
	client_cancel(&e->s->x);
	run_session_end_wait(e->s, err);
}

static void on_body(struct client_exchange *x, struct bytes piece)
{
	struct run_execution *e = owner(x);
	struct bytes line;
	struct err err;
	int rc;

	e->misses = 0;
	if (x->status != 200) {
		(void)!buf_add(&e->s->answer, piece, &err); /* its beginning is enough */
		return;
	}
	while ((rc = run_lines_next(&e->lines, &piece, &line, &err)) > 0)
		if (take_line(e, line, &err) < 0) {
			give_up(e, &err);
			return;
		}
	if (rc < 0)
		give_up(e, &err);
}

static void on_done(struct client_exchange *x, const struct err *err)
{
	run_session_end_wait(CONTAINER_OF(x, struct run_session, x), err);
}

static void on_beat(struct timer *t)
{
	struct run_execution *e = CONTAINER_OF(t, struct run_execution, beat);
	struct err err;

	if (e->s->x.status == 0 || ++e->misses <= RUN_BEATS_MAX)
		return;
	err_set(&err, ERR_UNAVAILABLE, 0, "sandbox %s: no sign of life for a minute", e->s->id);
	give_up(e, &err);
}

static void add_field(struct client_ask *ask, struct bytes name, const char *value)
{
	if (*value)
		ask->fields[ask->n_fields++] = (struct http1_field){ name, bytes_str(value) };
}

static int start(struct run_execution *e, struct bytes body, struct err *err)
{
	static const struct client_exchange_ops ops = { on_body, on_done };
	struct client_ask ask = {
		.to = &e->s->interp,
		.method = "POST",
		.target = "/execute",
		.fields = { { BYTES_LIT("content-type"), BYTES_LIT("application/json") } },
		.n_fields = 1,
		.body = body,
	};

	add_field(&ask, BYTES_LIT("e2b-sandbox-id"), e->s->id);
	add_field(&ask, BYTES_LIT("e2b-sandbox-port"), RUN_PORT);
	add_field(&ask, BYTES_LIT("x-access-token"), e->s->token);
	add_field(&ask, BYTES_LIT("e2b-traffic-access-token"), e->s->traffic);
	buf_clear(&e->s->answer);
	e->s->over = false;
	e->s->execution = e;
	e->s->x.ops = &ops;
	return client_start(&e->s->x, &e->s->client, &ask, err);
}

static int outcome(const struct run_execution *e, uint64_t seconds, struct err *err)
{
	const struct run_session *s = e->s;

	if (s->late)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "sandbox %s: not done after %llu seconds, and interrupted", s->id,
			       (unsigned long long)seconds);
	if (s->why.code != ERR_NONE) {
		*err = s->why;
		return -1;
	}
	if (s->x.status != 200)
		return run_session_refused(s, "sandbox", err);
	if (run_lines_rest(&e->lines))
		return err_set(err, ERR_UNAVAILABLE, 0, "sandbox %s: cut off in the middle", s->id);
	return 0;
}

int run_execution_run(struct run_execution *e, struct bytes body, uint64_t seconds, struct err *err)
{
	timer_init(&e->beat, e->s->client.loop, on_beat);
	if (start(e, body, err) < 0)
		return -1;
	timer_repeat(&e->beat, RUN_BEAT_MS);
	run_session_wait(e->s, seconds * 1000);
	timer_stop(&e->beat);
	if (outcome(e, seconds, err) < 0) {
		run_lines_done(&e->lines);
		return -1;
	}
	run_lines_done(&e->lines);
	return 0;
}
