/* agent_ops.c - what is asked of a running sandbox's agent. */
#include "tests/driver/driver.h"

#include <fcntl.h>

#include "base/clock.h"

#include "tests/driver/agent_files.h"
#include "vm/agent_exec.h"
#include "vm/agent_link.h"
#include "wire/base64.h"

enum { FILE_MAX = 8 * 1024 * 1024, EXEC_GRACE_MS = 10 * 1000, EXEC_DEFAULT_MS = 60 * 1000 };

struct agent_op {
	struct op *op;
	struct reach reach;
	void (*with)(struct agent_op *a, struct stream *s);
	char access_token[AGENT_TOKEN_MAX + 1], control_token[AGENT_TOKEN_MAX + 1];
	struct agent_exec exec;
	struct agent_files files;
	struct agent_link link;
	struct buf content; /* to be written */
	uint64_t began_ns;
};

static void agent_op_free(struct agent_op *a)
{
	agent_link_close(&a->link);
	buf_done(&a->content);
	free(a);
}

static void fail(struct agent_op *a, const struct err *err)
{
	op_fail(a->op, err);
	agent_op_free(a);
}

static void ok(struct agent_op *a, json_t *fields)
{
	op_ok(a->op, fields);
	agent_op_free(a);
}

static void on_reached(struct reach *r, struct stream *s, const struct err *err)
{
	struct agent_op *a = CONTAINER_OF(r, struct agent_op, reach);

	if (err)
		fail(a, err);
	else
		a->with(a, s);
}

static int token_of(struct op *o, const char *name, const char *known, char *ret, struct err *err)
{
	struct bytes given = bytes_str(known);

	if (json_may_string(o->args, name, &given, err) < 0)
		return -1;
	if (!bytes_to_str(given, ret, AGENT_TOKEN_MAX + 1))
		return err_set(err, ERR_INVALID, 0, "%s is too long", name);
	return 0;
}

static void start(struct op *o, void (*with)(struct agent_op *a, struct stream *s),
		  struct buf *content)
{
	struct agent_op *a = calloc(1, sizeof(*a));
	char id[WARDEN_ID_MAX + 1];
	struct sandbox *s;
	struct err err;

	if (!a)
		abort();
	a->op = o;
	a->with = with;
	a->began_ns = clock_mono_ns();
	if (content) {
		a->content = *content;
		*content = (struct buf){ 0 };
	}
	if (id_of(o->args, "sandbox", id, &err) < 0) {
		fail(a, &err);
		return;
	}
	s = sandbox_find(o->d, id);
	if (token_of(o, "accessToken", s ? s->identity.access_token : "", a->access_token, &err) <
		    0 ||
	    token_of(o, "controlToken", s ? s->identity.control_token : "", a->control_token,
		     &err) < 0)
		fail(a, &err);
	else
		reach_start(&a->reach, o->d, id, on_reached);
}

/* --- exec --------------------------------------------------------------------------------- */

static json_t *base64_json(struct bytes raw)
{
	AUTO(buf_done) struct buf text = BUF_MAX(DRIVER_OUT_MAX);
	struct err err;

	if (base64_encode(raw, &text, &err) < 0)
		abort();
	return json_stringn(text.len ? (const char *)text.ptr : "", text.len);
}

static json_int_t took_us(const struct agent_op *a)
{
	return (json_int_t)((clock_mono_ns() - a->began_ns) / 1000);
}

static void on_exec(struct agent_exec *e, const struct agent_exec_result *ret,
		    const struct err *err)
{
	struct agent_op *a = CONTAINER_OF(e, struct agent_op, exec);

	if (err)
		fail(a, err);
	else
		ok(a, json_pack("{s:o, s:o, s:i, s:b, s:o, s:I, s:b, s:I}", "stdout",
				base64_json(ret->out), "stderr", base64_json(ret->err), "exit_code",
				(int)ret->exit_code, "exited", ret->exited, "status",
				json_text(bytes_str(ret->status)), "pid", (json_int_t)ret->pid,
				"cut_off", ret->cut_off, "us", took_us(a)));
}

static void with_exec(struct agent_op *a, struct stream *s)
{
	struct agent_exec_spec spec = { .access_token = bytes_str(a->access_token) };
	int64_t timeout_ms = EXEC_DEFAULT_MS;
	struct err err;

	if (json_want_string(a->op->args, "cmd", &spec.command, &err) < 0 ||
	    json_may_string(a->op->args, "user", &spec.user, &err) < 0 ||
	    json_may_object(a->op->args, "env", &spec.env, &err) < 0 ||
	    json_may_bool(a->op->args, "detach", &spec.detach, &err) < 0 ||
	    json_may_int(a->op->args, "timeoutMs", 1, INT32_MAX, &timeout_ms, &err) < 0) {
		stream_abort(s);
		fail(a, &err);
		return;
	}
	spec.timeout_ms = spec.detach ? 0 : (uint64_t)timeout_ms;
	spec.deadline_ms = (uint64_t)timeout_ms + EXEC_GRACE_MS;
	if (agent_exec_start(&a->exec, s, &spec, on_exec, &err) < 0)
		fail(a, &err);
}

void run_exec(struct op *o)
{
	start(o, with_exec, NULL);
}

/* --- files -------------------------------------------------------------------------------- */

static int file_of(struct agent_op *a, struct agent_file *ret, struct err *err)
{
	*ret = (struct agent_file){ .access_token = bytes_str(a->access_token) };
	if (json_want_string(a->op->args, "path", &ret->path, err) < 0)
		return -1;
	return json_may_string(a->op->args, "user", &ret->user, err);
}

static void on_read(struct agent_files *f, struct bytes content, const struct err *err)
{
	struct agent_op *a = CONTAINER_OF(f, struct agent_op, files);

	if (err)
		fail(a, err);
	else
		ok(a, json_pack("{s:o, s:I}", "content", base64_json(content), "us", took_us(a)));
}

static void on_written(struct agent_files *f, struct bytes content, const struct err *err)
{
	struct agent_op *a = CONTAINER_OF(f, struct agent_op, files);

	(void)content;
	if (err)
		fail(a, err);
	else
		ok(a, json_pack("{s:I}", "us", took_us(a)));
}

static void with_read(struct agent_op *a, struct stream *s)
{
	struct agent_file file;
	struct err err;

	if (file_of(a, &file, &err) < 0) {
		stream_abort(s);
		fail(a, &err);
	} else if (agent_files_read(&a->files, s, &file, FILE_MAX, DRIVER_AGENT_MS, on_read, &err) <
		   0) {
		fail(a, &err);
	}
}

static void with_write(struct agent_op *a, struct stream *s)
{
	struct agent_file file;
	struct err err;

	if (file_of(a, &file, &err) < 0) {
		stream_abort(s);
		fail(a, &err);
	} else if (agent_files_write(&a->files, s, &file, buf_view(&a->content), DRIVER_AGENT_MS,
				     on_written, &err) < 0) {
		fail(a, &err);
	}
}

void run_read_file(struct op *o)
{
	start(o, with_read, NULL);
}

void run_write_file(struct op *o)
{
	struct buf content = BUF_MAX(DRIVER_LINE_MAX);
	struct bytes text;
	struct err err;

	if (json_want_string(o->args, "content", &text, &err) < 0 ||
	    base64_decode(text, &content, &err) < 0)
		op_fail(o, &err);
	else
		start(o, with_write, &content);
	buf_done(&content);
}

/* --- control ------------------------------------------------------------------------------ */

static void on_control(struct agent_link *l, const struct agent_answer *answer,
		       const struct err *err)
{
	struct agent_op *a = CONTAINER_OF(l, struct agent_op, link);

	(void)answer;
	if (err)
		fail(a, err);
	else
		ok(a, json_pack("{s:I}", "us", took_us(a)));
}

/* How far the guest's real time is ahead of the host's, known to +-*ret_uncertainty_ns. */
static int64_t clock_skew(const struct agent_answer *a, uint64_t *ret_uncertainty_ns)
{
	uint64_t half = (a->got_wall_ns - a->sent_wall_ns) / 2;
	int64_t skew;

	*ret_uncertainty_ns = half;
	if (__builtin_sub_overflow(a->realtime_ns, (int64_t)(a->sent_wall_ns + half), &skew))
		return INT64_MAX;
	return skew;
}

static void on_clock(struct agent_link *l, const struct agent_answer *answer, const struct err *err)
{
	struct agent_op *a = CONTAINER_OF(l, struct agent_op, link);
	uint64_t uncertainty;
	int64_t skew;

	if (err) {
		fail(a, err);
		return;
	}
	skew = clock_skew(answer, &uncertainty);
	ok(a, json_pack("{s:I, s:I, s:I, s:I}", "skew_us", (json_int_t)(skew / 1000),
			"uncertainty_us", (json_int_t)(uncertainty / 1000), "monotonic_ns",
			(json_int_t)answer->monotonic_ns, "realtime_ns",
			(json_int_t)answer->realtime_ns));
}

static void with_link(struct agent_op *a, struct stream *s, enum agent_question what,
		      agent_done_fn *on_done)
{
	struct err err;

	if (agent_link_open(&a->link, s, &err) < 0) {
		fail(a, &err);
		return;
	}
	snprintf(a->link.control_token, sizeof(a->link.control_token), "%s", a->control_token);
	if (agent_link_ask(&a->link, what, DRIVER_AGENT_MS, on_done, &err) < 0)
		fail(a, &err);
}

static void with_health(struct agent_op *a, struct stream *s)
{
	with_link(a, s, AGENT_HEALTH, on_control);
}

static void with_freeze(struct agent_op *a, struct stream *s)
{
	with_link(a, s, AGENT_FREEZE, on_control);
}

static void with_clock(struct agent_op *a, struct stream *s)
{
	with_link(a, s, AGENT_CLOCK, on_clock);
}

void run_health(struct op *o)
{
	start(o, with_health, NULL);
}

void run_freeze(struct op *o)
{
	start(o, with_freeze, NULL);
}

void run_clock(struct op *o)
{
	start(o, with_clock, NULL);
}
