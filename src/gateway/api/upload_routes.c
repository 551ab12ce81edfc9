/* upload_routes.c - files for the steps of a build: where to send them, and the sending; and the
 * archives that operators import.
 *
 *	GET /templates/{id}/files/{hash}     is it there? if not: a URL, signed, for a while
 *	PUT /uploads/{team}/{hash}?...       no key: the URL is the permission
 *	PUT /admin/builds/{id}/archive?...   the build begins when all of it came
 *	    signature -> node: a descriptor -> the body, piece by piece -> node: kept -> answer
 *
 * Nothing of a body is kept in memory. What is broken off is dropped.
 */
/* #syscalls: write close */
#include "gateway/api/upload_routes.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/random.h"
#include "gateway/api/answer.h"
#include "gateway/api/template_ask.h"
#include "gateway/parse/build_request.h"
#include "gateway/parse/upload_url.h"
#include "wire/target.h"

enum {
	UPLOADS_MAX = 128,               /* at once, of this gateway */
	UPLOAD_MAX = 1024 * 1024 * 1024, /* bytes of one */
	UPLOAD_KEEP_MS = 5 * 60 * 1000,  /* for node to write it to its disk */
	COMMAND_MAX = 4096,              /* of a template that is imported */
};

struct upload_kind {
	enum node_verb open, done, drop; /* what node is asked */
	unsigned int status;             /* of the answer when all went well */
};

static const struct upload_kind of_step = { NODE_UPLOAD_OPEN, NODE_UPLOAD_DONE, NODE_UPLOAD_DROP,
					    200 };
static const struct upload_kind of_import = { NODE_IMPORT_OPEN, NODE_IMPORT_DONE, NODE_BUILD_CANCEL,
					      202 };

struct upload {
	const struct upload_kind *kind;
	struct http_handler handler;
	struct http_request *rq; /* NULL: the client is gone */
	struct api *api;
	char team[NODE_ID_MAX + 1], build[NODE_ID_MAX + 1]; /* for which; the other is "" */
	char name[NODE_ID_MAX + 1];                         /* node's; "" until it is known */
	uint64_t bytes, came;
	int fd; /* of the file; -1: none */
	struct link_call node;
	struct upload *next, **prev;
};

/* --- the key ---------------------------------------------------------------------------------- */

static void on_key(struct api_call *c, const struct store_result *ret)
{
	struct api *a = c->g->api;

	snprintf(a->upload_key, sizeof(a->upload_key), "%s", ret->keys[0].hash);
	c->route->run(c); /* again, with the key */
}

/* False: it comes later, or never; answered then. */
static bool have_key(struct api_call *c)
{
	struct store_request rq = { .verb = STORE_UPLOAD_KEY };

	if (c->g->api->upload_key[0])
		return true;
	random_hex(rq.key.hash, (sizeof(rq.key.hash) - 1) / 2);
	api_ask_store(c, &rq, on_key);
	return false;
}

static struct bytes key_of(const struct api *a)
{
	return bytes_str(a->upload_key);
}

/* --- where to ------------------------------------------------------------------------------- */

static int make_url(struct api_call *c, struct buf *out, struct err *err)
{
	const struct upload_claim claim = { c->team.id, c->params[1],
					    clock_wall_ns() / NSEC_PER_SEC + UPLOAD_URL_S };
	struct bytes host = { 0 };

	if (http1_find(http_request_head(c->rq), "host", &host) != 1)
		return err_set(err, ERR_INVALID, 0, "the request names no host");
	return upload_url_make(&claim, key_of(c->g->api), http_request_secure(c->rq), host, out,
			       err);
}

/* 201, whether it is there or not. The URL is given in any case: a step may want it sent again. */
static void on_found(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *v = api_node_json(c, said, "uploads");
	AUTO(buf_done) struct buf url = BUF_MAX(UPLOAD_URL_MAX);
	struct err err;

	if (!v)
		return;
	if (make_url(c, &url, &err) < 0) {
		api_fail_err(c, &err);
		return;
	}
	api_answer(c, 201,
		   json_pack("{s:b, s:o, s:{}}", "present",
			     json_is_true(json_object_get(v, "present")), "url",
			     json_text(buf_view(&url)), "headers"));
}

static void upload_find(struct api_call *c)
{
	AUTO(json_decrefp) json_t *text = NULL;
	struct node_request rq = { .verb = NODE_UPLOAD_FIND };

	if (!have_key(c) || !template_take(c, &rq))
		return;
	text = json_pack("{s:s}", "hash", c->params[1]);
	template_ask(c, &rq, text, on_found);
}

/* --- one upload ------------------------------------------------------------------------------- */

static void upload_free(struct upload *u)
{
	link_cancel(&u->node);
	auto_close(&u->fd);
	list_remove(u);
	u->api->n_uploads--;
	free(u);
}

void uploads_close(struct api *a)
{
	while (a->uploads)
		upload_free(a->uploads);
}

static void on_dropped(struct link_call *call, const struct link_reply *r)
{
	(void)r; /* what node could not be told of it finds by itself */
	upload_free(CONTAINER_OF(call, struct upload, node));
}

static int ask(struct upload *u, enum node_verb verb, struct bytes text, uint64_t ms,
	       link_done_fn *on_done, struct err *err)
{
	struct node_request rq = { .verb = verb };

	snprintf(rq.team, sizeof(rq.team), "%s", u->team);
	snprintf(rq.id, sizeof(rq.id), "%s", u->build[0] ? u->build : u->name);
	return node_link_call(u->api->g->node, &u->node, &rq, text, ms, on_done, err);
}

/* It is not whole: node forgets it, then we do. */
static void drop(struct upload *u)
{
	struct err err;

	u->rq = NULL;
	link_cancel(&u->node);
	auto_close(&u->fd);
	u->fd = -1;
	if (!u->name[0] ||
	    ask(u, u->kind->drop, (struct bytes){ 0 }, API_NODE_MS, on_dropped, &err) < 0)
		upload_free(u);
}

static void refuse(struct upload *u, unsigned int status, const char *why)
{
	struct http_request *rq = TAKE(u->rq);

	if (rq)
		api_refuse(rq, status, why, NULL);
	drop(u);
}

static void on_kept(struct link_call *call, const struct link_reply *r)
{
	struct upload *u = CONTAINER_OF(call, struct upload, node);

	u->name[0] = '\0'; /* node has forgotten it, or kept it */
	if (r->err)
		refuse(u, api_status_of(r->err->code), r->err->msg);
	else if (u->rq)
		http_answer(TAKE(u->rq), &(struct http_response){ .status = u->kind->status },
			    (struct bytes){ 0 });
	if (!r->err)
		upload_free(u);
}

static void on_body(struct http_handler *h, struct bytes piece)
{
	struct upload *u = CONTAINER_OF(h, struct upload, handler);

	while (piece.len > 0) {
		ssize_t n = write(u->fd, piece.ptr, piece.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			refuse(u, errno == ENOSPC || errno == EDQUOT ? 507 : 500,
			       "the upload could not be written");
			return;
		}
		u->came += (uint64_t)n;
		piece = bytes_tail(piece, (size_t)n);
	}
}

static void on_body_end(struct http_handler *h)
{
	struct upload *u = CONTAINER_OF(h, struct upload, handler);
	struct err err;

	auto_close(&u->fd);
	u->fd = -1;
	if (u->came != u->bytes)
		refuse(u, 400, "the body has another length than was said");
	else if (ask(u, u->kind->done, (struct bytes){ 0 }, UPLOAD_KEEP_MS, on_kept, &err) < 0)
		refuse(u, api_status_of(err.code), err.msg);
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	struct upload *u = CONTAINER_OF(h, struct upload, handler);

	(void)err;
	u->rq = NULL;
	if (!u->node.link) /* else node is opening it, and it is dropped then; or all of it came */
		drop(u);
}

static void on_opened(struct link_call *call, const struct link_reply *r)
{
	struct upload *u = CONTAINER_OF(call, struct upload, node);
	const struct node_reply *reply = node_reply_of(r);

	if (!r->err && reply)
		snprintf(u->name, sizeof(u->name), "%s",
			 u->build[0] ? u->build : reply->sandbox.id);
	if (!u->rq) {
		drop(u);
		return;
	}
	if (r->err || r->n_fds != 1) {
		refuse(u, r->err ? api_status_of(r->err->code) : 500,
		       r->err ? r->err->msg : "node opened no file");
		return;
	}
	u->fd = link_reply_take_fd(r);
	http_body_start(u->rq, u->bytes);
}

/* --- the request ------------------------------------------------------------------------------ */

/* The request is the upload's from here on, and the call is over. */
static struct upload *take_over(struct api_call *c, const struct upload_kind *kind)
{
	static const struct http_handler_ops ops = { on_body, on_body_end, NULL, on_gone };
	struct upload *u = calloc(1, sizeof(*u));
	struct api *a = c->g->api;

	if (!u)
		return NULL;
	*u = (struct upload){ .kind = kind, .handler = { &ops }, .rq = c->rq, .api = a, .fd = -1 };
	snprintf(kind == &of_import ? u->build : u->team, sizeof(u->team), "%.*s", NODE_ID_MAX,
		 c->params[0]);
	u->bytes = http_request_head(c->rq)->length;
	list_add(&a->uploads, u);
	a->n_uploads++;
	http_request_take(c->rq, NULL);
	http_request_take(c->rq, &u->handler);
	c->rq = NULL;
	return u;
}

/* 0: it may be sent. */
static unsigned int check_length(const struct api_call *c, uint64_t max, struct err *err)
{
	const struct http1_head *head = http_request_head(c->rq);

	if (head->body != HTTP1_BODY_LENGTH) {
		err_set(err, ERR_INVALID, 0, "an upload needs a Content-Length");
		return 411;
	}
	if (head->length > max) {
		err_set(err, ERR_INVALID, 0, "an upload has at most %" PRIu64 " bytes", max);
		return 413;
	}
	if (c->g->api->n_uploads < UPLOADS_MAX)
		return 0;
	err_set(err, ERR_EXHAUSTED, 0, "too many uploads at once");
	return 429;
}

/* `text` is what node is told of it; its length is added. */
static void receive(struct api_call *c, const struct upload_kind *kind, json_t *text)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_TEXT_MAX);
	json_int_t size = (json_int_t)http_request_head(c->rq)->length;
	struct upload *u = NULL;
	struct err err;

	if (json_object_set_new(text, "size", json_integer(size)) == 0 &&
	    json_encode(text, &out, &err) == 0)
		u = take_over(c, kind);
	if (!u) {
		api_fail(c, 503, "no memory");
		return;
	}
	api_call_free(c);
	if (ask(u, kind->open, buf_view(&out), API_NODE_MS, on_opened, &err) < 0)
		refuse(u, api_status_of(err.code), err.msg);
}

static void upload_put(struct api_call *c)
{
	AUTO(json_decrefp) json_t *text = json_pack("{s:s}", "hash", c->params[1]);
	unsigned int status = 403;
	struct err err;

	if (!have_key(c))
		return;
	if (upload_url_check(c->params[0], c->params[1], c->query, key_of(c->g->api),
			     clock_wall_ns() / NSEC_PER_SEC, &err) == 0)
		status = check_length(c, UPLOAD_MAX, &err);
	if (status)
		api_fail(c, status, "%s", err.msg);
	else
		receive(c, &of_step, text);
}

/* A command that is to run in what is imported. */
static int add_command(json_t *text, struct bytes query, const char *name, struct err *err)
{
	AUTO(buf_done) struct buf command = BUF_MAX(COMMAND_MAX);

	if (target_param(query, name, &command, err) < 0)
		return err_set(err, ERR_INVALID, 0, "%s is broken, or longer than %d bytes", name,
			       COMMAND_MAX);
	if (command.len > 0 && json_object_set_new(text, name, json_text(buf_view(&command))) < 0)
		return err_set(err, ERR_INVALID, 0, "%s is no text", name);
	return 0;
}

/* How large it may be is node's to say. */
static void archive_put(struct api_call *c)
{
	AUTO(json_decrefp) json_t *text = json_object();
	struct err err;
	unsigned int status = check_length(c, INT64_MAX, &err);

	if (!status && (add_command(text, c->query, "startCmd", &err) < 0 ||
			add_command(text, c->query, "readyCmd", &err) < 0))
		status = 400;
	if (status)
		api_fail(c, status, "%s", err.msg);
	else
		receive(c, &of_import, text);
}

const struct route upload_routes[] = {
	{ "GET", "/templates/{templateID}/files/{hash}", AUTH_KEY, upload_find },
	{ "PUT", "/uploads/{team}/{hash}", AUTH_NONE, upload_put },
	{ "PUT", "/admin/builds/{buildID}/archive", AUTH_ADMIN, archive_put },
	{ 0 },
};
