/* agent_kill.c - process.Process/SendSignal, over a connection of its own. */
#include "vm/agent_kill.h"

#include "wire/json.h"

enum { REQUEST_MAX = 1024, NOT_FOUND = 404 };

void agent_kill_cancel(struct agent_kill *k)
{
	if (k->on_done)
		http_call_cancel(&k->call);
	k->on_done = NULL;
}

static void on_answer(struct http_call *c, const struct http_call_result *ret,
		      const struct err *failed)
{
	struct agent_kill *k = CONTAINER_OF(c, struct agent_kill, call);
	agent_kill_done_fn *on_done = TAKE(k->on_done);
	struct err err;

	if (failed) {
		err = *failed;
		err_wrap(&err, "agent: kill");
		on_done(k, &err);
	} else if (ret->head->status != 200) {
		agent_refusal("kill", ret, &err);
		if (ret->head->status == NOT_FOUND)
			err.code = ERR_NOT_FOUND;
		on_done(k, &err);
	} else {
		on_done(k, NULL);
	}
}

static json_t *request_json(const struct agent_kill_spec *spec)
{
	json_t *which = spec->tag.len > 0 ? json_pack("{s:o}", "tag", json_text(spec->tag))
					  : json_pack("{s:I}", "pid", (json_int_t)spec->pid);

	return json_pack("{s:o, s:s}", "process", which, "signal", "SIGNAL_SIGKILL");
}

int agent_kill_start(struct agent_kill *k, struct stream *s, const struct agent_kill_spec *spec,
		     agent_kill_done_fn *on_done, struct err *err)
{
	AUTO(buf_done) struct buf body = BUF_MAX(REQUEST_MAX);
	AUTO(json_decrefp) json_t *v = request_json(spec);
	const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/json") },
		{ BYTES_LIT("connect-protocol-version"), BYTES_LIT("1") },
		{ BYTES_LIT("x-access-token"), spec->access_token },
	};

	*k = (struct agent_kill){ .on_done = on_done };
	if (json_encode(v, &body, err) < 0) {
		stream_abort(s);
		k->on_done = NULL;
		return err_wrap(err, "agent: kill");
	}
	if (http_call_stream(&k->call, s,
			     &(struct http_ask){ .method = BYTES_LIT("POST"),
						 .target = BYTES_LIT("/process.Process/SendSignal"),
						 .host = BYTES_LIT("agent"),
						 .fields = fields,
						 .n_fields = spec->access_token.len > 0 ? 3 : 2,
						 .body = buf_view(&body),
						 .deadline_ms = AGENT_KILL_MS,
						 .max_answer = AGENT_ANSWER_MAX },
			     on_answer, err) < 0) {
		k->on_done = NULL;
		return err_wrap(err, "agent: kill");
	}
	return 0;
}
