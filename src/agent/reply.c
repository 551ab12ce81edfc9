/* reply.c - see reply.h. */
#include "agent/reply.h"

#include <stdarg.h>

#include "wire/json.h"

static const struct http1_field json_field = {
	BYTES_LIT("content-type"),
	BYTES_LIT("application/json"),
};

static void answer(struct http_request *rq, unsigned int status, struct bytes body)
{
	const struct http_response r = {
		.status = status,
		.fields = &json_field,
		.n_fields = 1,
	};

	http_answer(rq, &r, body);
}

void reply_json(struct http_request *rq, struct bytes body)
{
	answer(rq, 200, body);
}

static int error_json(unsigned int status, struct bytes message, struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *text = json_text(message);

	if (buf_printf(out, err, "{\"code\":%u,\"message\":", status) < 0 ||
	    json_encode(text, out, err) < 0)
		return -1;
	return buf_add(out, BYTES_LIT("}"), err);
}

void reply_fail(struct http_request *rq, unsigned int status, const char *fmt, ...)
{
	AUTO(buf_done) struct buf body = BUF_MAX(8 * REPLY_MESSAGE_MAX);
	char message[REPLY_MESSAGE_MAX];
	struct err err;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	if (n < 0 || error_json(status, bytes_str(message), &body, &err) < 0)
		http_fail(rq, status, "out of memory");
	else
		answer(rq, status, buf_view(&body));
}

void reply_rpc_fail(struct http_request *rq, enum connect_code code, const char *message)
{
	AUTO(buf_done) struct buf body = BUF_MAX(8 * REPLY_MESSAGE_MAX);
	struct err err;

	if (connect_put_error(&body, code, bytes_str(message), &err) < 0)
		http_fail(rq, 500, "out of memory");
	else
		answer(rq, connect_code_status(code), buf_view(&body));
}

bool request_is(const struct http_request *rq, const char *media_type)
{
	struct bytes value, type;

	if (http1_find(http_request_head(rq), "content-type", &value) != 1)
		return false;
	if (!bytes_cut(&value, ';', &type))
		type = value;
	return bytes_eq_nocase(bytes_trim(type), bytes_str(media_type));
}
