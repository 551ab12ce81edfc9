/* builder_trial.c - a node that builds at the word of a test: what node/life/builder.h and
 * node/template/grounds.h offer, with real VMs.
 *
 * It is hotcell-node, linked so that NODE_SNAPSHOTS comes here first. With the template "trial" its
 * text is what to do, one after the other; the answer is one entry for each, up to a failure:
 *
 *	[{"do":"ground","source"}            -> its id; its disk is that of `base`
 *	 {"do":"begin","team","step"?,"build"?,"ground"?,"boot"?,"vcpus"?,"memoryMib"?} -> sandbox
 *id
 *	 {"do":"run","command"}              -> what it said, as it came: "o:..." and "e:..."
 *	 {"do":"step","key"}, {"do":"build"} -> the id of a snapshot
 *	 {"do":"cached","team","key"}        -> the same, or ""
 *	 {"do":"end"}]                       -> ""
 */
#include <errno.h>
#include <fcntl.h>

#include "base/log.h"
#include "node/life/builder.h"
#include "node/life/snapshot_steps.h"
#include "node/node.h"
#include "vm/agent_exec.h"

enum { SAID_MAX = 64 * 1024, DEPTH = 4, RUN_MS = 60 * 1000 };

verb_fn __real_snapshots_list;
verb_fn __wrap_snapshots_list;

static struct trial { /* one at a time */
	struct node *node;
	struct door_asked *asked;
	json_t *todo, *done;
	size_t at;
	struct builder builder;
	struct builder_dial dial;
	struct agent_exec exec;
	struct taking_user taking;
	struct ground_want ground;
	struct buf said;
	int hears; /* enum agent_output of what came last; -1: nothing yet */
} t;

static void next(void);

static const char *text_of(const char *member)
{
	return json_string_value(json_object_get(json_array_get(t.todo, t.at), member));
}

static uint32_t number_of(const char *member)
{
	return (uint32_t)json_integer_value(json_object_get(json_array_get(t.todo, t.at), member));
}

static void answer(void)
{
	AUTO(buf_done) struct buf out = BUF_MAX(2 * SAID_MAX);
	struct err err;

	if (json_encode(t.done, &out, &err) < 0)
		door_refuse(t.asked, &err);
	else
		door_answer(t.asked, &(struct node_reply){ 0 }, buf_view(&out), NULL, 0);
	json_decref(TAKE(t.todo));
	json_decref(TAKE(t.done));
}

static void did(const char *what)
{
	log_info("trial: %s", what);
	(void)json_array_append_new(t.done, json_text(bytes_str(what)));
	t.at++;
	next();
}

static void failed(const struct err *err)
{
	(void)json_array_append_new(t.done,
				    json_sprintf("failed: %d: %s", (int)err->code, err->msg));
	builder_end(&t.builder);
	answer();
}

/* --- each of them ------------------------------------------------------------------------- */

static void on_running(struct builder *b)
{
	did(builder_id(b));
}

static void on_ended(struct builder *b, const struct err *why)
{
	(void)b;
	if (t.todo)
		failed(why);
}

static struct snapshot *made_of(void)
{
	const char *step = text_of("step"), *build = text_of("build");

	if (step)
		return snapshots_by_key(t.node, text_of("team"), step);
	return build ? snapshots_by_id(t.node, build) : NULL;
}

static void begin(void)
{
	static const struct builder_ops ops = { on_running, on_ended };
	const json_t *boot = json_object_get(json_array_get(t.todo, t.at), "boot");
	const struct builder_spec spec = { .team = text_of("team"),
					   .snapshot = made_of(),
					   .ground = text_of("ground"),
					   .boot = json_is_true(boot),
					   .vcpus = number_of("vcpus"),
					   .memory_mib = number_of("memoryMib") };
	struct err err;

	if (builder_begin(&t.builder, t.node, &spec, &ops, &err) < 0)
		failed(&err);
}

static void on_ground(struct ground_want *w, const char *id, const struct err *err)
{
	(void)w;
	if (err)
		failed(err);
	else
		did(id);
}

static void ground(void)
{
	const struct ground_spec spec = { text_of("source"),
					  fcntl(t.node->base.disk, F_DUPFD_CLOEXEC, 0) };
	struct err err;

	if (grounds_want(&t.ground, t.node, &spec, on_ground, &err) < 0)
		failed(&err);
}

static void on_output(struct agent_exec *e, enum agent_output which, struct bytes piece)
{
	const char *begins = which == AGENT_STDOUT ? "o:" : "e:";
	struct err ignored;

	(void)e;
	(void)!buf_printf(&t.said, &ignored, "%s%.*s", t.hears == (int)which ? "" : begins,
			  (int)piece.len, (const char *)piece.ptr);
	t.hears = (int)which;
}

static void on_exited(struct agent_exec *e, const struct agent_exec_result *r,
		      const struct err *err)
{
	struct err ignored;

	(void)e;
	if (err) {
		failed(err);
		return;
	}
	(void)!buf_printf(&t.said, &ignored, "%d%c", r->exit_code, '\0');
	did((const char *)t.said.ptr);
}

static void on_stream(struct builder_dial *d, struct stream *s, const struct err *why)
{
	const struct agent_exec_spec spec = { .command = bytes_str(text_of("command")),
					      .user = BYTES_LIT("root"),
					      .cwd = BYTES_LIT("/root"),
					      .deadline_ms = RUN_MS,
					      .on_output = on_output };
	struct err err;

	(void)d;
	buf_done(&t.said);
	t.said = BUF_MAX(SAID_MAX);
	t.hears = -1;
	if (!s)
		failed(why);
	else if (agent_exec_start(&t.exec, s, &spec, on_exited, &err) < 0)
		failed(&err);
}

static void on_taken(struct taking_user *u, struct snapshot *p, const struct err *err)
{
	(void)u;
	if (p)
		did(p->row.id);
	else if (t.todo)
		failed(err);
}

static void take(enum journal_kind kind)
{
	struct err err;

	t.taking.on_taken = on_taken;
	if (builder_take(&t.builder, &(struct taking_spec){ .kind = kind, .key = text_of("key") },
			 &t.taking, &err) < 0)
		failed(&err);
}

static void cached(void)
{
	const struct snapshot *p = snapshots_by_key(t.node, text_of("team"), text_of("key"));

	did(p ? p->row.id : "");
}

static void next(void)
{
	const char *what = text_of("do");

	if (!what)
		answer();
	else if (strcmp(what, "ground") == 0)
		ground();
	else if (strcmp(what, "begin") == 0)
		begin();
	else if (strcmp(what, "run") == 0)
		builder_dial(&t.dial, &t.builder, on_stream);
	else if (strcmp(what, "step") == 0)
		take(JOURNAL_STEP);
	else if (strcmp(what, "build") == 0)
		take(JOURNAL_BUILD);
	else if (strcmp(what, "cached") == 0)
		cached();
	else {
		builder_end(&t.builder);
		did("");
	}
}

void __wrap_snapshots_list(struct node *n, struct door_asked *a, const struct node_request *rq,
			   struct bytes text)
{
	struct err err;

	if (strcmp(rq->template_id, "trial") != 0) {
		__real_snapshots_list(n, a, rq, text);
		return;
	}
	t = (struct trial){ .node = n, .asked = a, .done = json_array() };
	if (json_decode(text, NODE_TEXT_MAX, DEPTH, &t.todo, &err) < 0)
		door_refuse(a, &err);
	else
		next();
}
