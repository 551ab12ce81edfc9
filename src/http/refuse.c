/* refuse.c - see refuse.h. */
#include "http/refuse.h"

#include "wire/http1_encode.h"

/* Text as it may stand in a JSON string; what may not is replaced. Messages are ours, in English:
 * this is for the odd quote from a client in one of them. */
static int put_text(struct buf *out, const char *text, struct err *err)
{
	for (size_t i = 0; text[i] != '\0' && i < HTTP_ERROR_MAX; i++) {
		char c = text[i];
		bool plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';

		if (buf_printf(out, err, "%s%c", c == '"' || c == '\\' ? "\\" : "",
			       plain || c == '"' || c == '\\' ? c : '?') < 0)
			return -1;
	}
	return 0;
}

struct buf http_error_body(unsigned int status, const char *message)
{
	struct buf b = BUF_MAX(4 * HTTP_ERROR_MAX);
	struct err err;

	if (buf_printf(&b, &err, "{\"code\":%u,\"message\":\"", status) < 0 ||
	    put_text(&b, message, &err) < 0 || buf_add(&b, BYTES_LIT("\"}"), &err) < 0)
		buf_done(&b); /* out of memory: an answer without a body */
	return b;
}

int http_put_refusal(struct buf *out, unsigned int status, const char *message, struct err *err)
{
	AUTO(buf_done) struct buf body = http_error_body(status, message);

	if (http1_put_status_line(out, status, err) < 0 ||
	    http1_put_field(out, BYTES_LIT("content-type"), BYTES_LIT("application/json"), err) <
		    0 ||
	    http1_put_body(out, HTTP1_BODY_LENGTH, body.len, err) < 0 ||
	    http1_put_field(out, BYTES_LIT("connection"), BYTES_LIT("close"), err) < 0 ||
	    http1_put_end(out, err) < 0)
		return -1;
	return buf_add(out, buf_view(&body), err);
}

void http_refuse(struct stream *s, unsigned int status, const char *message)
{
	AUTO(buf_done) struct buf out = BUF_MAX(HTTP_REFUSAL_MAX);
	struct err err;

	if (http_put_refusal(&out, status, message, &err) < 0 ||
	    stream_write_buf(s, &out, &err) < 0)
		stream_abort(s);
	else
		stream_close(s);
}
