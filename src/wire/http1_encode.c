/* http1_encode.c - writing heads that cannot be made to say more than they were asked to. */
#include "wire/http1_encode.h"

#include <assert.h>

#include "wire/http1_chars.h"

static int add_all(struct buf *out, const struct bytes *parts, size_t n, struct err *err)
{
	size_t before = out->len;

	for (size_t i = 0; i < n; i++)
		if (buf_add(out, parts[i], err) < 0) {
			out->len = before;
			return -1;
		}
	return 0;
}

int http1_put_request_line(struct buf *out, struct bytes method, struct bytes target,
			   struct err *err)
{
	const struct bytes line[] = { method, BYTES_LIT(" "), target, BYTES_LIT(" HTTP/1.1\r\n") };

	if (method.len == 0 || method.len > HTTP1_METHOD_MAX || !bytes_all(method, is_tchar))
		return err_set(err, ERR_INVALID, 0, "refuse to write a malformed method");
	if (target.len == 0 || target.len > HTTP1_TARGET_MAX || !bytes_all(target, is_target))
		return err_set(err, ERR_INVALID, 0, "refuse to write a malformed target");
	return add_all(out, line, COUNT(line), err);
}

int http1_put_status_line(struct buf *out, unsigned int status, struct err *err)
{
	assert(status >= 100 && status <= 599);
	if (buf_add(out, BYTES_LIT("HTTP/1.1 "), err) < 0 || buf_add_u64(out, status, err) < 0 ||
	    buf_add(out, BYTES_LIT(" "), err) < 0 ||
	    buf_add(out, bytes_str(http1_reason(status)), err) < 0)
		return -1;
	return buf_add(out, BYTES_LIT("\r\n"), err);
}

static bool is_value(struct bytes v)
{
	return bytes_all(v, is_text) && bytes_trim(v).len == v.len;
}

int http1_put_field(struct buf *out, struct bytes name, struct bytes value, struct err *err)
{
	const struct bytes line[] = { name, BYTES_LIT(": "), value, BYTES_LIT("\r\n") };

	if (name.len == 0 || name.len > HTTP1_NAME_MAX || !bytes_all(name, is_tchar))
		return err_set(err, ERR_INVALID, 0, "refuse to write a malformed field name");
	if (!is_value(value))
		return err_set(err, ERR_INVALID, 0, "refuse to write a malformed value of %.*s",
			       (int)name.len, (const char *)name.ptr);
	return add_all(out, line, COUNT(line), err);
}

int http1_put_end(struct buf *out, struct err *err)
{
	return buf_add(out, BYTES_LIT("\r\n"), err);
}

int http1_put_body(struct buf *out, enum http1_body body, uint64_t length, struct err *err)
{
	switch (body) {
	case HTTP1_BODY_NONE:
	case HTTP1_BODY_CLOSE:
		return 0;
	case HTTP1_BODY_LENGTH:
		if (buf_add(out, BYTES_LIT("content-length: "), err) < 0 ||
		    buf_add_u64(out, length, err) < 0)
			return -1;
		return buf_add(out, BYTES_LIT("\r\n"), err);
	case HTTP1_BODY_CHUNKED:
		return buf_add(out, BYTES_LIT("transfer-encoding: chunked\r\n"), err);
	}
	abort();
}

static const struct {
	unsigned int status;
	const char *reason;
} reasons[] = {
	{ 100, "Continue" },
	{ 101, "Switching Protocols" },
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 421, "Misdirected Request" },
	{ 422, "Unprocessable Content" },
	{ 426, "Upgrade Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 499, "Client Closed Request" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
};

const char *http1_reason(unsigned int status)
{
	for (size_t i = 0; i < COUNT(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}
