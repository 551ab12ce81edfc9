/* files_write.c - POST /files: the body becomes a file.
 *
 * How the body is to be read depends on its content type; the kinds are a table. Multipart forms
 * are to be one more row, with an upload per part.
 */
#include "agent/files_request.h"
#include "agent/reply.h"
#include "agent/upload.h"
#include "wire/json.h"

struct upload_call {
	struct http_handler handler;
	struct http_request *rq;
	struct upload upload;
	char path[USER_PATH_MAX];
};

static void call_free(struct upload_call *c)
{
	upload_close(&c->upload);
	free(c);
}

static void reply_fault(struct http_request *rq, const struct upload *u, const char *path,
			const struct err *err)
{
	switch (u->fault) {
	case UPLOAD_REFUSED:
		reply_fail(rq, 400, "%s: %s", err->msg, path);
		break;
	case UPLOAD_NO_SPACE:
		reply_fail(rq, 507, "%s", err->msg);
		break;
	case UPLOAD_BROKEN:
		reply_fail(rq, 500, "error writing file '%s': %s", path, err->msg);
		break;
	}
}

static void give_up(struct upload_call *c, const struct err *err)
{
	reply_fault(c->rq, &c->upload, c->path, err);
	call_free(c);
}

static void on_body(struct http_handler *h, struct bytes piece)
{
	struct upload_call *c = CONTAINER_OF(h, struct upload_call, handler);
	struct err err;

	if (upload_write(&c->upload, piece, &err) < 0)
		give_up(c, &err);
}

/* [{"path":"/home/user/x","name":"x","type":"file"}], and no member more: clients compare. */
static int put_entry(struct buf *out, const char *path, struct err *err)
{
	AUTO(json_decrefp)
	json_t *v = json_pack("[{s:o, s:o, s:s}]", "path", json_text(bytes_str(path)), "name",
			      json_text(bytes_str(path_name(path))), "type", "file");

	return json_encode(v, out, err);
}

static void on_body_end(struct http_handler *h)
{
	struct upload_call *c = CONTAINER_OF(h, struct upload_call, handler);
	AUTO(buf_done) struct buf json = BUF_MAX(16 * USER_PATH_MAX);
	struct err err;

	if (upload_publish(&c->upload, &err) < 0) {
		give_up(c, &err);
		return;
	}
	if (put_entry(&json, c->path, &err) < 0)
		reply_fail(c->rq, 500, "%s", err.msg);
	else
		reply_json(c->rq, buf_view(&json));
	call_free(c);
}

static void on_drain(struct http_handler *h)
{
	(void)h;
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	(void)err;
	call_free(CONTAINER_OF(h, struct upload_call, handler));
}

static void write_raw(struct agent *a, struct http_request *rq)
{
	static const struct http_handler_ops ops = { on_body, on_body_end, on_drain, on_gone };
	struct files_request want;
	struct upload_call *c;
	struct err err;

	if (!files_request_read(a, rq, &want))
		return;
	if (!want.has_path) {
		reply_fail(rq, 400, "path query parameter is required for raw body upload");
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		reply_fail(rq, 500, "out of memory");
		return;
	}
	c->handler.ops = &ops;
	c->rq = rq;
	memcpy(c->path, want.path, sizeof(c->path));
	if (upload_open(&c->upload, c->path, a->staging, &want.who, &err) < 0) {
		give_up(c, &err);
		return;
	}
	http_request_take(rq, &c->handler);
	http_body_start(rq, UINT64_MAX); /* the disk is the limit */
}

static void refuse_multipart(struct agent *a, struct http_request *rq)
{
	(void)a;
	reply_fail(rq, 415,
		   "multipart uploads are not supported yet, "
		   "send application/octet-stream");
}

static const struct {
	const char *type;
	void (*run)(struct agent *a, struct http_request *rq);
} kinds[] = {
	{ "application/octet-stream", write_raw },
	{ "multipart/form-data", refuse_multipart },
};

/* Codings are to be undone before the kinds see the body. */
static bool check_coding(struct http_request *rq)
{
	struct bytes coding;
	size_t n = http1_find(http_request_head(rq), "content-encoding", &coding);

	if (n == 0 || (n == 1 && bytes_eq_nocase(coding, BYTES_LIT("identity"))))
		return true;
	if (n == 1 && bytes_eq_nocase(coding, BYTES_LIT("gzip")))
		reply_fail(rq, 415, "gzip uploads are not supported yet");
	else
		reply_fail(rq, 400, "unsupported content encoding");
	return false;
}

void route_files_write(struct agent *a, struct http_request *rq)
{
	struct bytes type = { 0 };

	if (!check_coding(rq))
		return;
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (request_is(rq, kinds[i].type)) {
			kinds[i].run(a, rq);
			return;
		}
	(void)http1_find(http_request_head(rq), "content-type", &type);
	reply_fail(rq, 400,
		   "unsupported content type: %.*s, expected multipart/form-data or "
		   "application/octet-stream",
		   (int)bytes_head(type, 256).len, (const char *)type.ptr);
}
