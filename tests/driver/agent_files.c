/* agent_files.c - GET and POST of /files. */
#include "tests/driver/agent_files.h"

#include <assert.h>

#include "vm/agent_link.h"

void agent_files_cancel(struct agent_files *f)
{
	http_call_cancel(&f->call);
}

static void on_answer(struct http_call *c, const struct http_call_result *ret,
		      const struct err *failed)
{
	struct agent_files *f = CONTAINER_OF(c, struct agent_files, call);
	struct err err;

	if (failed) {
		err = *failed;
		err_wrap(&err, "agent: %s", f->asking);
	} else if (ret->head->status == 200) {
		f->on_done(f, ret->body, NULL);
		return;
	} else {
		agent_refusal(f->asking, ret, &err);
		if (ret->head->status == 404)
			err.code = ERR_NOT_FOUND;
	}
	f->on_done(f, (struct bytes){ 0 }, &err);
}

static bool is_plain(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("-._~/", c));
}

static int put_encoded(struct buf *out, struct bytes in, struct err *err)
{
	for (size_t i = 0; i < in.len; i++) {
		int rc = is_plain(in.ptr[i]) ? buf_add(out, (struct bytes){ in.ptr + i, 1 }, err)
					     : buf_printf(out, err, "%%%02X", in.ptr[i]);

		if (rc < 0)
			return -1;
	}
	return 0;
}

static int put_target(struct buf *out, const struct agent_file *file, struct err *err)
{
	if (file->path.len > AGENT_PATH_MAX)
		return err_set(err, ERR_INVALID, 0, "a path over %d bytes", AGENT_PATH_MAX);
	if (buf_add(out, BYTES_LIT("/files?path="), err) < 0 ||
	    put_encoded(out, file->path, err) < 0)
		return -1;
	if (file->user.len == 0)
		return 0;
	if (buf_add(out, BYTES_LIT("&username="), err) < 0)
		return -1;
	return put_encoded(out, file->user, err);
}

static int start(struct agent_files *f, struct stream *s, const struct agent_file *file,
		 struct http_ask *ask, struct bytes body, size_t max, agent_files_done *on_done,
		 struct err *err)
{
	AUTO(buf_done) struct buf target = BUF_MAX(4 * AGENT_PATH_MAX);
	struct http1_field fields[2] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/octet-stream") },
		{ BYTES_LIT("x-access-token"), file->access_token },
	};

	f->on_done = on_done;
	f->asking = body.ptr ? "write a file" : "read a file";
	ask->host = BYTES_LIT("agent");
	ask->fields = fields;
	ask->n_fields = file->access_token.len > 0 ? 2 : 1;
	if (put_target(&target, file, err) < 0) {
		stream_abort(s);
		return -1;
	}
	ask->target = buf_view(&target);
	ask->body = body;
	ask->max_answer = max;
	return http_call_stream(&f->call, s, ask, on_answer, err);
}

int agent_files_read(struct agent_files *f, struct stream *s, const struct agent_file *file,
		     size_t max, uint64_t deadline_ms, agent_files_done *on_done, struct err *err)
{
	struct http_ask ask = { .method = BYTES_LIT("GET"), .deadline_ms = deadline_ms };

	assert(max <= AGENT_READ_MAX);
	if (start(f, s, file, &ask, (struct bytes){ 0 }, max, on_done, err) < 0)
		return err_wrap(err, "agent: read a file");
	return 0;
}

int agent_files_write(struct agent_files *f, struct stream *s, const struct agent_file *file,
		      struct bytes content, uint64_t deadline_ms, agent_files_done *on_done,
		      struct err *err)
{
	struct http_ask ask = { .method = BYTES_LIT("POST"), .deadline_ms = deadline_ms };
	struct bytes body = content.len > 0 ? content : BYTES_LIT("");

	if (content.len > AGENT_WRITE_MAX) {
		stream_abort(s);
		return err_set(err, ERR_EXHAUSTED, 0, "agent: a file over %d bytes",
			       AGENT_WRITE_MAX);
	}
	if (start(f, s, file, &ask, body, AGENT_ANSWER_MAX, on_done, err) < 0)
		return err_wrap(err, "agent: write a file");
	return 0;
}
