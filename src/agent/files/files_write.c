/* files_write.c - POST /files: the body becomes a file, or several.
 *
 *	body -> [gunzip] -> raw: one file
 *	                 -> form: a file per part
 *
 * Nothing is kept but the piece at hand.
 */
#include "agent/files/file_metadata.h"
#include "agent/files/files_request.h"
#include "agent/files/gunzip.h"
#include "agent/files/upload_set.h"
#include "agent/reply.h"
#include "agent/route.h"
#include "agent/rpc/long_answer.h"
#include "wire/multipart.h"

enum { ANSWER_MAX = 64 * 1024 * 1024 };

struct upload_call {
	struct http_handler handler;
	struct http_request *rq;
	struct files_request want;
	struct gunzip *gunzip; /* NULL: the body is as it is */
	bool is_form;
	struct multipart form;
	bool form_over; /* its last boundary was seen */
	struct upload_set files;
	bool malformed; /* the body's fault, not a file's: err->msg says it all */
	struct long_answer answer;
};

static void call_free(struct upload_call *c)
{
	gunzip_close(c->gunzip);
	multipart_done(&c->form);
	upload_set_done(&c->files);
	long_answer_drop(&c->answer);
	free(c);
}

static void give_up(struct upload_call *c, const struct err *err)
{
	const char *path = c->files.path;

	if (c->malformed)
		reply_fail(c->rq, 400, "%s", err->msg);
	else if (c->files.fault == UPLOAD_REFUSED)
		reply_fail(c->rq, 400, "%s: %s", err->msg, path);
	else if (c->files.fault == UPLOAD_NO_SPACE)
		reply_fail(c->rq, 507, "%s", err->msg);
	else
		reply_fail(c->rq, 500, "error writing file '%s': %s", path, err->msg);
	call_free(c);
}

static int malformed(struct upload_call *c)
{
	c->malformed = true;
	return -1;
}

/* --- forms -------------------------------------------------------------------------------- */

/* Where the file of a part goes. The names of parts may have directories in them. */
static int part_path(struct upload_call *c, const struct multipart_piece *part,
		     char ret[static USER_PATH_MAX], struct err *err)
{
	if (c->want.has_path) {
		memcpy(ret, c->want.path, USER_PATH_MAX);
		return 0;
	}
	if (part->filename.len == 0) {
		err_set(err, ERR_INVALID, 0, "a file without a path and without a filename");
		return malformed(c);
	}
	if (user_path(part->filename, &c->want.who, "", ret, err) < 0)
		return malformed(c);
	return 0;
}

static int take_part(struct upload_call *c, const struct multipart_piece *p, struct err *err)
{
	char path[USER_PATH_MAX];

	switch (p->kind) {
	case MULTIPART_PART:
		if (!bytes_eq(p->name, BYTES_LIT("file")))
			return 0; /* not for us */
		if (part_path(c, p, path, err) < 0)
			return -1;
		return upload_set_begin(&c->files, path, err);
	case MULTIPART_DATA:
		return c->files.open ? upload_set_write(&c->files, p->data, err) : 0;
	case MULTIPART_PART_END:
		return c->files.open ? upload_set_end(&c->files, err) : 0;
	case MULTIPART_END:
		c->form_over = true;
		return 0;
	}
	abort();
}

static int take_form(struct upload_call *c, struct bytes in, struct err *err)
{
	while (in.len > 0) {
		struct multipart_piece p;

		switch (multipart_next(&c->form, &in, &p, err)) {
		case DECODE_MORE:
			return 0;
		case DECODE_BAD:
			return malformed(c);
		case DECODE_OK:
			if (take_part(c, &p, err) < 0)
				return -1;
		}
	}
	return 0;
}

/* --- the body ----------------------------------------------------------------------------- */

static int take_plain(struct upload_call *c, struct bytes in, struct err *err)
{
	return c->is_form ? take_form(c, in, err) : upload_set_write(&c->files, in, err);
}

static int take_body(struct upload_call *c, struct bytes in, struct err *err)
{
	struct bytes plain;
	enum decode d;

	if (!c->gunzip)
		return take_plain(c, in, err);
	while ((d = gunzip_next(c->gunzip, &in, &plain, err)) == DECODE_OK)
		if (take_plain(c, plain, err) < 0)
			return -1;
	return d == DECODE_BAD ? malformed(c) : 0;
}

static int end_body(struct upload_call *c, struct err *err)
{
	if (c->gunzip && !gunzip_is_whole(c->gunzip)) {
		err_set(err, ERR_INVALID, 0, "the body is not gzip: it ends too early");
		return malformed(c);
	}
	if (!c->is_form)
		return upload_set_end(&c->files, err);
	if (!c->form_over && multipart_next(&c->form, &(struct bytes){ 0 },
					    &(struct multipart_piece){ 0 }, err) != DECODE_OK) {
		err_set(err, ERR_INVALID, 0, "multipart: the body ends too early");
		return malformed(c);
	}
	return 0;
}

static void on_body(struct http_handler *h, struct bytes piece)
{
	struct upload_call *c = CONTAINER_OF(h, struct upload_call, handler);
	struct err err;

	if (take_body(c, piece, &err) < 0)
		give_up(c, &err);
}

static void on_body_end(struct http_handler *h)
{
	struct upload_call *c = CONTAINER_OF(h, struct upload_call, handler);
	AUTO(buf_done) struct buf json = BUF_MAX(ANSWER_MAX);
	struct err err;

	if (end_body(c, &err) < 0) {
		give_up(c, &err);
		return;
	}
	if (upload_set_put(&c->files, &json, &err) < 0 ||
	    long_answer_begin(&c->answer, c->rq, &json, &err) < 0) {
		reply_fail(c->rq, 500, "%s", err.msg);
		call_free(c);
	} else if (long_answer_push(&c->answer, c->rq)) {
		call_free(c);
	}
}

static void on_drain(struct http_handler *h)
{
	struct upload_call *c = CONTAINER_OF(h, struct upload_call, handler);

	/* before the answer there is nothing that could drain */
	if (long_answer_push(&c->answer, c->rq))
		call_free(c);
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	(void)err;
	call_free(CONTAINER_OF(h, struct upload_call, handler));
}

/* --- the head ----------------------------------------------------------------------------- */

/* 1: gzip. 0: none. -1: answered. */
static int coding_of(struct http_request *rq)
{
	struct bytes coding;
	size_t n = http1_find(http_request_head(rq), "content-encoding", &coding);

	if (n == 0 || (n == 1 && bytes_eq_nocase(coding, BYTES_LIT("identity"))))
		return 0;
	if (n == 1 && bytes_eq_nocase(coding, BYTES_LIT("gzip")))
		return 1;
	reply_fail(rq, 400, "unsupported content encoding: %.*s", (int)bytes_head(coding, 256).len,
		   (const char *)coding.ptr);
	return -1;
}

/* 1: a form. 0: as it is. -1: answered. */
static int kind_of(struct http_request *rq)
{
	struct bytes type = { 0 };

	if (request_is(rq, "multipart/form-data"))
		return 1;
	if (request_is(rq, "application/octet-stream"))
		return 0;
	(void)http1_find(http_request_head(rq), "content-type", &type);
	reply_fail(rq, 400,
		   "unsupported content type: %.*s, expected multipart/form-data or "
		   "application/octet-stream",
		   (int)bytes_head(type, 256).len, (const char *)type.ptr);
	return -1;
}

/* What the head promises is made ready. */
static int prepare(struct upload_call *c, bool gzip, struct err *err)
{
	const struct http1_head *h = http_request_head(c->rq);
	struct bytes type = { 0 };

	c->malformed = true;
	if (!c->is_form && !c->want.has_path)
		return err_set(err, ERR_INVALID, 0,
			       "path query parameter is required for raw body upload");
	(void)http1_find(h, "content-type", &type);
	if (c->is_form && multipart_init(&c->form, type, err) < 0)
		return -1;
	if (metadata_parse(h, &c->files.metadata, err) < 0)
		return -1;
	if (gzip && gunzip_open(&c->gunzip, err) < 0)
		return -1;
	c->malformed = false;
	return c->is_form ? 0 : upload_set_begin(&c->files, c->want.path, err);
}

static void route_files_write(struct agent *a, struct http_request *rq)
{
	static const struct http_handler_ops ops = { on_body, on_body_end, on_drain, on_gone };
	struct upload_call *c = calloc(1, sizeof(*c));
	struct err err;
	int form, gzip;

	if (!c) {
		reply_fail(rq, 500, "out of memory");
		return;
	}
	c->handler.ops = &ops;
	c->rq = rq;
	if (!files_request_read(a, rq, "write", &c->want) || (gzip = coding_of(rq)) < 0 ||
	    (form = kind_of(rq)) < 0) {
		free(c);
		return;
	}
	c->is_form = form > 0;
	c->files.staging = a->staging;
	c->files.who = c->want.who;
	if (prepare(c, gzip > 0, &err) < 0) {
		give_up(c, &err);
		return;
	}
	http_request_take(rq, &c->handler);
	http_body_start(rq, UINT64_MAX); /* the disk is the limit */
}

const struct route files_write_routes[] = {
	{ "/files", "POST", GUARD_FILES, route_files_write },
	{ 0 },
};
