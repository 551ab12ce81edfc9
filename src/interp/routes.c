/* routes.c - who asks for what: bodies are read, checked and handed to contexts. */
#include "base/list.h"
#include "interp/answer.h"
#include "interp/detail.h"
#include "interp/interp.h"
#include "interp/wish.h"
#include "wire/target.h"

enum { BODY_DEPTH = 8, NAME_SHOWN = 256 };

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
		detail_no_json(rq, err.msg);
	else if (!json_is_object(body))
		detail_no_object(rq, body);
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

/* --- POST /execute --------------------------------------------------------------------------- */

/* As a Jupyter server says it, and E2B's with it. */
static void answer_no_kernel(struct http_request *rq, struct bytes language)
{
	char name[NAME_SHOWN + 1], text[8 * NAME_SHOWN] = "Failed to create context: ";
	size_t begun = strlen(text), n;
	AUTO(json_decrefp) json_t *why = NULL;

	if (!bytes_to_str(bytes_head(bytes_trim(language), NAME_SHOWN), name, sizeof(name)))
		name[0] = '\0';
	for (char *c = name; *c; c++)
		*c = (char)byte_lower((uint8_t)*c);
	why = json_pack("{s:o, s:o}", "message",
			json_sprintf("The '%s' kernel is not available. Please pick another "
				     "suitable kernel instead, or install that kernel.",
				     name),
			"short_message", json_sprintf("%s not found", name));
	n = why ? json_dumpb(why, text + begun, sizeof(text) - begun - 1, JSON_ENSURE_ASCII) : 0;
	text[begun + (n < sizeof(text) - begun ? n : 0)] = '\0';
	answer_text(rq, 500, text);
}

/* NULL: *rq was answered. */
static struct context *begin(struct interp *in, struct http_request *rq, const struct wish *w)
{
	struct bytes cwd = w->cwd.len > 0 ? w->cwd : bytes_str(in->options->cwd);
	struct context *c;
	struct err err;

	if (w->language[0] && context_new(&in->contexts, w->language, cwd, &c, &err) == 0)
		return c;
	if (!w->language[0] || err.code == ERR_NOT_FOUND) {
		answer_no_kernel(rq, w->name);
	} else {
		err_wrap(&err, "Failed to create context");
		answer_text(rq, err.code == ERR_EXHAUSTED ? 429 : 500, err.msg);
	}
	return NULL;
}

/* That of the language, which is started if there is none; NULL: *rq was answered. */
static struct context *default_of(struct interp *in, struct http_request *rq, const struct wish *w)
{
	struct context *c = context_default(&in->contexts, w->language);

	if (c)
		return c;
	c = begin(in, rq, w);
	if (c)
		c->is_default = true;
	return c;
}

static void answer_no_context(struct http_request *rq, struct bytes id)
{
	char text[NAME_SHOWN + 32];

	id = bytes_head(id, NAME_SHOWN);
	snprintf(text, sizeof(text), "Context %.*s not found", (int)id.len, (const char *)id.ptr);
	answer_text(rq, 404, text);
}

static void execute(struct interp *in, struct http_request *rq, const json_t *body)
{
	struct context *c;
	struct detail wrong;
	struct wish w;

	if (!wish_to_execute(body, &w, &wrong)) {
		detail_answer(rq, &wrong);
		return;
	}
	if (w.context.len > 0 && w.name.len > 0) {
		answer_text(rq, 400, "Only one of context_id or language can be provided");
		return;
	}
	if (w.context.len > 0) {
		c = context_find(&in->contexts, w.context);
		if (!c)
			answer_no_context(rq, w.context);
	} else {
		c = default_of(in, rq, &w);
	}
	if (c)
		context_execute(c, rq, json_text(w.code), json_incref(w.env));
}

/* --- /contexts ---------------------------------------------------------------------------------
 */

static void create(struct interp *in, struct http_request *rq, const json_t *body)
{
	struct context *c;
	struct detail wrong;
	struct wish w;

	if (!wish_to_create(body, &w, &wrong)) {
		detail_answer(rq, &wrong);
		return;
	}
	c = begin(in, rq, &w);
	if (c)
		context_wait(c, rq);
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
	bool restart = bytes_cut(&rest, '/', &id);
	const char *allow = restart ? "POST" : "DELETE";
	struct context *c;

	if (!restart)
		id = path;
	if (restart && !bytes_eq(rest, BYTES_LIT("restart"))) {
		detail_no_route(rq, NULL);
		return;
	}
	if (!bytes_eq(method, bytes_str(allow))) {
		detail_no_route(rq, allow);
		return;
	}
	c = context_find(&in->contexts, id);
	if (!c) {
		answer_no_context(rq, id);
	} else if (restart) {
		context_restart(c, rq);
	} else {
		context_delete(c);
		answer_json(rq, 200, json_null());
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

static void contexts(struct interp *in, struct http_request *rq)
{
	struct bytes method = http_request_head(rq)->method;

	if (bytes_eq(method, BYTES_LIT("POST")))
		read_body(in, rq, create);
	else if (bytes_eq(method, BYTES_LIT("GET")))
		list(in, rq);
	else
		detail_no_route(rq, "GET, POST");
}

void interp_route(struct http_server *sv, struct http_request *rq)
{
	struct interp *in = CONTAINER_OF(sv, struct interp, http);
	const struct http1_head *h = http_request_head(rq);
	const struct bytes below = BYTES_LIT("/contexts/");
	struct target t;
	struct err err;

	if (target_split(h->target, &t, &err) < 0)
		answer_text(rq, 400, err.msg);
	else if (bytes_eq(h->method, BYTES_LIT("OPTIONS")))
		answer_preflight(rq);
	else if (bytes_eq(t.path, BYTES_LIT("/contexts")))
		contexts(in, rq);
	else if (bytes_starts(t.path, below))
		one_context(in, rq, bytes_tail(t.path, below.len));
	else if (bytes_eq(t.path, BYTES_LIT("/execute")) && bytes_eq(h->method, BYTES_LIT("POST")))
		read_body(in, rq, execute);
	else if (bytes_eq(t.path, BYTES_LIT("/execute")))
		detail_no_route(rq, "POST");
	else if (bytes_eq(t.path, BYTES_LIT("/health")) && bytes_eq(h->method, BYTES_LIT("GET")))
		health(in, rq);
	else
		detail_no_route(rq, bytes_eq(t.path, BYTES_LIT("/health")) ? "GET" : NULL);
}
