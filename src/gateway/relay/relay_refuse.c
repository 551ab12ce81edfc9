/* relay_refuse.c - what a client is told when its request does not reach the sandbox. */
#include "gateway/relay/relay_refuse.h"

#include "gateway/relay/relay.h"
#include "gateway/relay/relay_page.h"
#include "wire/json.h"
#include "wire/target.h"

enum { RELAY_REFUSAL_MAX = 4096, PATH_ANSWER_MAX = 64 * 1024 };

#define LED                                                                      \
	"Another site led here. Its link is not followed as it is: the page of " \
	"this port does what its address says."

static const struct {
	unsigned int status;
	const char *title;
	const char *message; /* as it stands in JSON and in HTML */
	bool names_port;
	const char *way;
} refusals[] = {
	[REFUSE_NOT_FOUND] = { 502, "Sandbox not found", "The sandbox was not found", false },
	[REFUSE_PORT] = { 502, "Closed port", "The sandbox is running but port is not open", true },
	[REFUSE_BROKEN] = { 502, "Not HTTP", "The sandbox gave an answer that is not HTTP", true },
	[REFUSE_TLS] = { 502, "Not HTTPS", "The sandbox gave an answer that is not HTTPS", true },
	[REFUSE_SILENT] = { 502, "No answer", "The sandbox closed the connection without an answer",
			    true },
	[REFUSE_LATE] = { 504, "No answer", "The sandbox did not answer in time", true },
	[REFUSE_NODE] = { 503, "Sandbox out of reach", "The host of the sandbox cannot be reached",
			  false },
	[REFUSE_HEAD] = { 431, "Request too large", "The head of the request is too large", false },
	[REFUSE_BODY] = { 413, "Request too large", "The body of the request is too large", false },
	[REFUSE_METHOD] = { 405, "Method not allowed", "The method is not relayed", false },
	[REFUSE_TOKEN] = { 403, "Paused sandbox",
			   "This sandbox can't be resumed with the credentials provided. Check "
			   "your access token and try again.",
			   false },
	[REFUSE_NO_TRAFFIC_TOKEN] = { 403, "Private sandbox",
				      "Sandbox is secured with traffic access token. Token header "
				      "'" RELAY_TRAFFIC_TOKEN "' is missing",
				      false },
	[REFUSE_TRAFFIC_TOKEN] = { 403, "Private sandbox",
				   "Sandbox is secured with traffic access token. Provided token "
				   "in header '" RELAY_TRAFFIC_TOKEN "' is invalid",
				   false },
	[REFUSE_PASS] = { 403, "Private sandbox",
			  "This port is guarded, and no right pass came: none, one of another "
			  "port, or "
			  "one that is too old. Get a new address, as `hotcell browser` prints it.",
			  true },
	[REFUSE_ORIGIN] = { 403, "Private sandbox",
			    "A page of another site may not use a visit to this port", true },
	[REFUSE_LED_DEVTOOLS] = { 403, "A link of another site", LED, true, "/" },
	[REFUSE_LED_NOVNC] = { 403, "A link of another site", LED, true,
			       "/vnc.html?autoconnect=true&amp;resize=scale#" },
	[REFUSE_BUSY] = { 409, "Sandbox busy",
			  "The sandbox is still transitioning. Try again in a moment.", false },
	[REFUSE_FULL] = { 429, "No room", "The sandbox is paused and there is no room to resume it",
			  false },
	[REFUSE_ELSEWHERE] = { 412, "Saved elsewhere",
			       "The sandbox is paused and its memory was saved by another QEMU or "
			       "for another processor: resume it from its disk",
			       false },
	[REFUSE_CROWD] = { 503, "Too many connections",
			   "The gateway has too many streams into sandboxes. Try again in a "
			   "moment; the operator can raise connections_max.",
			   false },
	[REFUSE_REPLACED] = { 503, "Gateway restarts", "The gateway is being replaced. Try again.",
			      false },
	[REFUSE_ADDRESS] = { 429, "Too many connections",
			     "Your address has too many streams into sandboxes: end some, or ask "
			     "the operator to raise address_connections_max.",
			     false },
	[REFUSE_BASE] = { 412, "Template lost",
			  "The sandbox is paused and the template it differs from is damaged or "
			  "gone: the operator of this host can put it back",
			  false },
};

#define ALLOW_ORIGIN { BYTES_LIT("access-control-allow-origin"), BYTES_LIT("*") }

static void answer(struct http_request *rq, unsigned int status, bool cors, struct bytes type,
		   struct bytes body)
{
	struct http1_field fields[3] = { { BYTES_LIT("content-type"), type } };
	struct http_response r = { .status = status, .fields = fields, .n_fields = 1 };

	if (cors) /* a page may read why it failed */
		fields[r.n_fields++] = (struct http1_field)ALLOW_ORIGIN;
	if (status == 503)
		fields[r.n_fields++] =
			(struct http1_field){ BYTES_LIT("retry-after"), BYTES_LIT("1") };

	http_answer(rq, &r, body);
}

static void answer_json(struct http_request *rq, unsigned int status, bool cors, struct bytes body)
{
	answer(rq, status, cors, BYTES_LIT("application/json; charset=utf-8"), body);
}

static void answer_page(struct http_request *rq, unsigned int status, bool cors, struct bytes body)
{
	answer(rq, status, cors, BYTES_LIT("text/html; charset=utf-8"), body);
}

/* An identifier is of [a-z0-9] only. */
static int refusal_json(const struct dispatch *to, enum relay_refusal why, struct buf *ret,
			struct err *err)
{
	if (buf_printf(ret, err, "{\"sandboxId\":\"%s\",\"message\":\"%s\",", to->id,
		       refusals[why].message) < 0)
		return -1;
	if (refusals[why].names_port &&
	    buf_printf(ret, err, "\"port\":%u,", (unsigned int)to->port) < 0)
		return -1;
	return buf_printf(ret, err, "\"code\":%u}", refusals[why].status);
}

void relay_refuse(struct http_request *rq, const struct dispatch *to, bool is_agent,
		  enum relay_refusal why)
{
	AUTO(buf_done) struct buf body = BUF_MAX(RELAY_REFUSAL_MAX);
	bool page = relay_wants_page(http_request_head(rq));
	unsigned int status = refusals[why].status;
	const struct relay_page_text text = { status, refusals[why].title, refusals[why].message,
					      refusals[why].way };
	struct err err;

	if ((page ? relay_page(to, &text, &body, &err) : refusal_json(to, why, &body, &err)) < 0)
		http_fail(rq, 500, err.msg);
	else if (page)
		answer(rq, status, is_agent, BYTES_LIT("text/html; charset=utf-8"),
		       buf_view(&body));
	else
		answer_json(rq, status, is_agent, buf_view(&body));
}

void relay_refuse_crowd(struct http_request *rq, const struct dispatch *to, size_t limit)
{
	static const char said[] = "The sandbox has too many concurrent incoming connections";
	static const struct relay_page_text text = { 429, "Too many connections", said, NULL };
	AUTO(buf_done) struct buf body = BUF_MAX(RELAY_REFUSAL_MAX);
	bool page = relay_wants_page(http_request_head(rq));
	struct err err;

	if ((page ? relay_page(to, &text, &body, &err)
		  : buf_printf(&body, &err,
			       "{\"sandboxId\":\"%s\",\"message\":\"%s (limit: %zu)\","
			       "\"code\":429,\"connectionLimit\":%zu}",
			       to->id, said, limit, limit)) < 0)
		http_fail(rq, 500, err.msg);
	else if (page)
		answer_page(rq, 429, false, buf_view(&body));
	else
		answer_json(rq, 429, false, buf_view(&body));
}

bool relay_is_grpc(const struct http1_head *h)
{
	const struct bytes grpc = BYTES_LIT("application/grpc");
	struct bytes type = { 0 };

	if (http1_find(h, "content-type", &type) != 1 ||
	    !bytes_eq_nocase(bytes_head(type, grpc.len), grpc))
		return false;
	/* not grpc-web, which is made for HTTP/1.1 */
	return type.len == grpc.len || type.ptr[grpc.len] == '+' || type.ptr[grpc.len] == ';';
}

void relay_refuse_grpc(struct http_request *rq)
{
	const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/grpc") },
		{ BYTES_LIT("grpc-status"), BYTES_LIT("12") }, /* UNIMPLEMENTED */
		{ BYTES_LIT("grpc-message"),
		  BYTES_LIT("gRPC is not relayed to ports of sandboxes; use grpc-web or Connect") },
	};

	http_answer(rq,
		    &(struct http_response){
			    .status = 200, .fields = fields, .n_fields = COUNT(fields) },
		    (struct bytes){ 0 });
}

void relay_refuse_text(struct http_request *rq, unsigned int status, const char *message)
{
	static const struct http1_field text = {
		BYTES_LIT("content-type"),
		BYTES_LIT("text/plain; charset=utf-8"),
	};

	http_answer(rq, &(struct http_response){ .status = status, .fields = &text, .n_fields = 1 },
		    bytes_str(message));
}

static void answer_internal(struct http_request *rq, struct bytes path)
{
	AUTO(buf_done) struct buf body = BUF_MAX(PATH_ANSWER_MAX);
	AUTO(json_decrefp)
	json_t *v = json_pack("{s:s, s:o*, s:i}", "message", "Not found", "path", json_text(path),
			      "code", 404);
	struct err err;

	if (!v || json_encode(v, &body, &err) < 0)
		http_fail(rq, 404, "Not found");
	else
		answer_json(rq, 404, true, buf_view(&body));
}

/* The first segment that is not empty, decoded as an agent would at most decode it. */
static bool is_internal(struct bytes path)
{
	static const char *const names[] = {
		"control",  "init",   "freeze",  "unfreeze", "collapse",
		"fsfreeze", "fsthaw", "upgrade", "tunnel",
	};
	AUTO(buf_done) struct buf name = BUF_MAX(TARGET_SEGMENT_MAX);
	struct bytes raw = { 0 };
	struct err err;

	while (raw.len == 0)
		if (!target_next_segment(&path, &raw))
			return false;
	if (target_decode_segment(raw, &name, &err) < 0)
		return true; /* nothing that the agent offers is spelt like this */
	for (size_t i = 0; i < COUNT(names); i++)
		if (bytes_eq_nocase(buf_view(&name), bytes_str(names[i])))
			return true;
	return false;
}

static bool is_preflight(const struct http1_head *h)
{
	struct bytes value;

	return bytes_eq(h->method, BYTES_LIT("OPTIONS")) && http1_find(h, "origin", &value) > 0 &&
	       http1_find(h, "access-control-request-method", &value) > 0;
}

static void answer_preflight(struct http_request *rq)
{
	struct http1_field fields[] = {
		ALLOW_ORIGIN,
		{ BYTES_LIT("access-control-allow-methods"),
		  BYTES_LIT("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS") },
		{ BYTES_LIT("access-control-allow-headers"), BYTES_LIT("*") },
		{ BYTES_LIT("access-control-max-age"), BYTES_LIT("7200") },
	};
	struct bytes asked;

	/* named one by one: `*` does not stand for Authorization */
	if (http1_find(http_request_head(rq), "access-control-request-headers", &asked) == 1)
		fields[2].value = asked;
	http_answer(rq, &(struct http_response){ .status = 204, .fields = fields, .n_fields = 4 },
		    (struct bytes){ 0 });
}

bool relay_answers_for_agent(struct http_request *rq)
{
	const struct http1_head *h = http_request_head(rq);
	struct target t;
	struct err err;

	if (target_split(h->target, &t, &err) < 0)
		return false;
	if (is_internal(t.path))
		answer_internal(rq, t.path);
	else if (is_preflight(h))
		answer_preflight(rq);
	else
		return false;
	return true;
}
