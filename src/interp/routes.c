/* routes.c - who asks for what: bodies are read, checked and handed to contexts. */
#include "base/list.h"
#include "interp/answer.h"
#include "interp/interp.h"
#include "interp/language.h"
#include "wire/target.h"

enum { BODY_DEPTH = 8 };

struct body_call;
typedef void body_fn(struct interp *in, struct http_request *rq, const json_t *body);
struct body_call { /* a request whose body is being read */
	struct http_handler handler;
	struct http_request *rq;
	struct interp *in;
	struct buf body;
	body_fn *run;
};

static void body_free(struct body_call *b)
{
	b->in->contexts.held -= b->body.len;
	buf_done(&b->body);
	free(b);
}

static void on_body(struct http_handler *h, struct bytes piece)
{
	struct body_call *b = CONTAINER_OF(h, struct body_call, handler);
	struct err err;

	if (b->in->contexts.held + piece.len > CONTEXTS_HELD_MAX) {
		http_fail(b->rq, 429, "Too much at a time");
		body_free(b);
	} else if (buf_add(&b->body, piece, &err) < 0) {
		http_fail(b->rq, 413, err.msg);
		body_free(b);
	} else {
		b->in->contexts.held += piece.len;
	}
}

static void on_body_end(struct http_handler *h)
{
	struct body_call *b = CONTAINER_OF(h, struct body_call, handler);
	AUTO(json_decrefp) json_t *body = NULL;
	struct http_request *rq = b->rq;
	struct err err;

	if (json_decode(buf_view(&b->body), INTERP_BODY_MAX, BODY_DEPTH, &body, &err) < 0)
		answer_text(rq, 422, err.msg);
	else if (!json_is_object(body))
		answer_text(rq, 422, "the body is not an object");
	else
		b->run(b->in, rq, body);
	body_free(b);
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	(void)err;
	body_free(CONTAINER_OF(h, struct body_call, handler));
}

static void read_body(struct interp *in, struct http_request *rq, body_fn *run)
{
	static const struct http_handler_ops ops = { on_body, on_body_end, NULL, on_gone };
	struct body_call *b = calloc(1, sizeof(*b));

	if (!b) {
		answer_text(rq, 500, "out of memory");
		return;
	}
	*b = (struct body_call){ { &ops }, rq, in, BUF_MAX(INTERP_BODY_MAX), run };
	http_request_take(rq, &b->handler);
	http_body_start(rq, INTERP_BODY_MAX);
}

static unsigned int status_of(const struct err *err)
{
	return err->code == ERR_EXHAUSTED ? 429 : 500;
}

/* --- POST /execute --------------------------------------------------------------------------- */

struct wish {
	struct bytes code, context, language;
	json_t *env; /* borrowed; NULL: none */
};

static int read_wish(const json_t *body, struct wish *ret, struct err *err)
{
	const char *name;
	json_t *value;

	*ret = (struct wish){ 0 };
	if (json_want_string(body, "code", &ret->code, err) < 0 ||
	    json_may_string(body, "contextId", &ret->context, err) < 0 ||
	    json_may_string(body, "language", &ret->language, err) < 0 ||
	    json_may_object(body, "envVars", &ret->env, err) < 0)
		return -1;
	json_object_foreach(ret->env, name, value)
	{
		if (!json_is_string(value))
			return err_set(err, ERR_INVALID, 0, "env_vars: %s is not a string", name);
	}
	return 0;
}

/* That of the language, which is started if there is none; NULL: *rq was answered. */
static struct context *default_of(struct interp *in, struct http_request *rq, struct bytes name)
{
	char language[KERNEL_NAME_MAX + 1];
	struct context *c;
	struct err err;

	if (!language_normalize(name, language)) {
		answer_text(rq, 500, "Failed to create context: no such language");
		return NULL;
	}
	c = context_default(&in->contexts, language);
	if (c)
		return c;
	if (context_new(&in->contexts, language, bytes_str(in->options->cwd), &c, &err) < 0) {
		err_wrap(&err, "Failed to create context");
		answer_text(rq, status_of(&err), err.msg);
		return NULL;
	}
	c->is_default = true;
	return c;
}

static void answer_no_context(struct http_request *rq, struct bytes id)
{
	char text[128];

	snprintf(text, sizeof(text), "Context %.*s not found", (int)(id.len < 64 ? id.len : 64),
		 (const char *)id.ptr);
	answer_text(rq, 404, text);
}

static void execute(struct interp *in, struct http_request *rq, const json_t *body)
{
	struct context *c;
	struct wish w;
	struct err err;

	if (read_wish(body, &w, &err) < 0) {
		answer_text(rq, 422, err.msg);
		return;
	}
	if (w.context.len > 0 && w.language.len > 0) {
		answer_text(rq, 400, "Only one of context_id or language can be provided");
		return;
	}
	if (w.context.len > 0) {
		c = context_find(&in->contexts, w.context);
		if (!c)
			answer_no_context(rq, w.context);
	} else {
		c = default_of(in, rq, w.language);
	}
	if (c)
		context_execute(c, rq, json_text(w.code), json_incref(w.env));
}

/* --- /contexts ---------------------------------------------------------------------------------
 */

static void create(struct interp *in, struct http_request *rq, const json_t *body)
{
	struct bytes name = { 0 }, cwd = bytes_str(in->options->cwd);
	char language[KERNEL_NAME_MAX + 1];
	struct context *c;
	struct err err;

	if (json_may_string(body, "language", &name, &err) < 0 ||
	    json_may_string(body, "cwd", &cwd, &err) < 0) {
		answer_text(rq, 422, err.msg);
		return;
	}
	if (cwd.len == 0)
		cwd = bytes_str(in->options->cwd);
	if (!language_normalize(name, language)) {
		answer_text(rq, 500, "Failed to create context: no such language");
	} else if (context_new(&in->contexts, language, cwd, &c, &err) < 0) {
		err_wrap(&err, "Failed to create context");
		answer_text(rq, status_of(&err), err.msg);
	} else {
		context_wait(c, rq);
	}
}

static void list(struct interp *in, struct http_request *rq)
{
	json_t *all = json_array();

	list_each(struct context, c, in->contexts.list.first)
		json_array_append_new(all, context_json(c));
	answer_json(rq, 200, all);
}

/* /contexts/ID and /contexts/ID/restart */
static void one_context(struct interp *in, struct http_request *rq, struct bytes path)
{
	struct bytes method = http_request_head(rq)->method, id, rest = path;
	struct context *c;

	if (!bytes_cut(&rest, '/', &id)) {
		id = path;
		rest = (struct bytes){ 0 };
	}
	c = context_find(&in->contexts, id);
	if (!c) {
		answer_no_context(rq, id);
	} else if (rest.len == 0 && bytes_eq(method, BYTES_LIT("DELETE"))) {
		context_delete(c);
		answer_json(rq, 200, json_null());
	} else if (bytes_eq(rest, BYTES_LIT("restart")) && bytes_eq(method, BYTES_LIT("POST"))) {
		context_restart(c, rq);
	} else {
		answer_text(rq, rest.len == 0 ? 405 : 404, "Not Found");
	}
}

/* Has every kernel been ready that should be there from the start? */
static bool is_well(struct interp *in)
{
	for (size_t i = 0; i < in->options->n_eager && !in->well; i++) {
		const struct context *c = context_default(&in->contexts, in->options->eager[i]);

		if (!c || !c->ready)
			return false;
	}
	in->well = true; /* what becomes of them later is the user's business */
	return true;
}

static void health(struct interp *in, struct http_request *rq)
{
	if (is_well(in))
		answer_json(rq, 200, json_string("OK"));
	else
		answer_text(rq, 503, "kernels are being started");
}

void interp_route(struct http_server *sv, struct http_request *rq)
{
	struct interp *in = CONTAINER_OF(sv, struct interp, http);
	const struct http1_head *h = http_request_head(rq);
	const struct bytes below = BYTES_LIT("/contexts/");
	bool post = bytes_eq(h->method, BYTES_LIT("POST"));
	bool get = bytes_eq(h->method, BYTES_LIT("GET"));
	struct target t;
	struct err err;

	if (target_split(h->target, &t, &err) < 0)
		answer_text(rq, 400, err.msg);
	else if (bytes_eq(h->method, BYTES_LIT("OPTIONS")))
		answer_preflight(rq);
	else if (bytes_eq(t.path, BYTES_LIT("/health")) && get)
		health(in, rq);
	else if (bytes_eq(t.path, BYTES_LIT("/execute")) && post)
		read_body(in, rq, execute);
	else if (bytes_eq(t.path, BYTES_LIT("/contexts")) && post)
		read_body(in, rq, create);
	else if (bytes_eq(t.path, BYTES_LIT("/contexts")) && get)
		list(in, rq);
	else if (bytes_starts(t.path, below))
		one_context(in, rq, bytes_tail(t.path, below.len));
	else
		answer_text(rq, 404, "Not Found");
}
