/* http1_head.c - finding the end of a head, then reading it whole. */
#include "wire/http1_head.h"

#include "wire/http1_body.h"
#include "wire/http1_chars.h"
#include "wire/http1_host.h"

static enum decode bad(struct err *err, enum err_code code, const char *why)
{
	err_set(err, code, 0, "%s", why);
	return DECODE_BAD;
}

enum decode http1_head_end(struct bytes in, size_t *scanned, size_t *ret_used, struct err *err)
{
	struct bytes seen = bytes_head(in, HTTP1_HEAD_MAX);
	struct bytes rest = bytes_tail(seen, *scanned), line;

	while (bytes_cut(&rest, '\n', &line)) {
		size_t end = seen.len - rest.len; /* just past the line feed */

		if (end < 2 || seen.ptr[end - 2] != '\r')
			return bad(err, ERR_INVALID, "a line of the head does not end in CRLF");
		if (end == 2)
			return bad(err, ERR_INVALID, "an empty line before the head");
		if (end >= 4 && seen.ptr[end - 3] == '\n') {
			*ret_used = end;
			return DECODE_OK;
		}
	}
	*scanned = seen.len;
	if (in.len >= HTTP1_HEAD_MAX)
		return bad(err, ERR_EXHAUSTED, "head over 32 KiB");
	return DECODE_MORE;
}

/* Take the longest run accepted by `ok` from the front of *in. */
static struct bytes take_while(struct bytes *in, bool (*ok)(uint8_t))
{
	size_t n = 0;
	struct bytes run;

	while (n < in->len && ok(in->ptr[n]))
		n++;
	run = bytes_head(*in, n);
	*in = bytes_tail(*in, n);
	return run;
}

static bool take_text(struct bytes *in, struct bytes text)
{
	if (!bytes_starts(*in, text))
		return false;
	*in = bytes_tail(*in, text.len);
	return true;
}

static int parse_version(struct bytes *in, struct http1_head *h, struct err *err)
{
	if (take_text(in, BYTES_LIT("HTTP/1.1")))
		h->minor = 1;
	else if (take_text(in, BYTES_LIT("HTTP/1.0")))
		h->minor = 0;
	else
		return err_set(err, ERR_INVALID, 0, "unsupported version");
	return 0;
}

static int classify_target(struct http1_head *h, struct err *err)
{
	if (bytes_eq(h->method, BYTES_LIT("CONNECT")))
		h->form = HTTP1_AUTHORITY;
	else if (h->target.ptr[0] == '/')
		h->form = HTTP1_ORIGIN;
	else if (scheme_len(h->target) > 0)
		h->form = HTTP1_ABSOLUTE;
	else if (bytes_eq(h->target, BYTES_LIT("*")) && bytes_eq(h->method, BYTES_LIT("OPTIONS")))
		h->form = HTTP1_ASTERISK;
	else
		return err_set(err, ERR_INVALID, 0, "target of an unknown form");
	return 0;
}

static int parse_request_line(struct bytes *in, struct http1_head *h, struct err *err)
{
	h->method = take_while(in, is_tchar);
	if (h->method.len == 0 || !take_text(in, BYTES_LIT(" ")))
		return err_set(err, ERR_INVALID, 0, "malformed method");
	if (h->method.len > HTTP1_METHOD_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "method over %d bytes", HTTP1_METHOD_MAX);
	if (bytes_eq(h->method, BYTES_LIT("PRI"))) /* reserved: the HTTP/2 preface */
		return err_set(err, ERR_INVALID, 0, "reserved method");
	h->target = take_while(in, is_target);
	if (h->target.len == 0 || !take_text(in, BYTES_LIT(" ")))
		return err_set(err, ERR_INVALID, 0, "malformed target");
	if (h->target.len > HTTP1_TARGET_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "target over %d bytes", HTTP1_TARGET_MAX);
	if (parse_version(in, h, err) < 0)
		return -1;
	if (!take_text(in, BYTES_LIT("\r\n")))
		return err_set(err, ERR_INVALID, 0, "malformed request line");
	return classify_target(h, err);
}

static int parse_status_line(struct bytes *in, struct http1_head *h, struct err *err)
{
	struct bytes digits;
	uint64_t status;

	if (parse_version(in, h, err) < 0)
		return -1;
	if (!take_text(in, BYTES_LIT(" ")))
		return err_set(err, ERR_INVALID, 0, "malformed status line");
	digits = take_while(in, is_digit);
	if (digits.len != 3 || !bytes_to_u64(digits, &status) || status < 100 || status > 599)
		return err_set(err, ERR_INVALID, 0, "status is not a number from 100 to 599");
	h->status = (unsigned int)status;
	/* many servers leave out the space before an absent reason; it means the same */
	if (take_text(in, BYTES_LIT(" ")))
		h->reason = take_while(in, is_text);
	if (h->reason.len > HTTP1_REASON_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "reason over %d bytes", HTTP1_REASON_MAX);
	if (!take_text(in, BYTES_LIT("\r\n")))
		return err_set(err, ERR_INVALID, 0, "malformed reason");
	return 0;
}

static struct bytes trim_right(struct bytes b)
{
	while (b.len > 0 && is_space(b.ptr[b.len - 1]))
		b.len--;
	return b;
}

/* The RFC takes a tab for a blank too; parsers disagree on it, so it may not stand at an edge. */
static bool has_tab_edge(struct bytes value)
{
	return value.len > 0 && (value.ptr[0] == '\t' || value.ptr[value.len - 1] == '\t');
}

static int parse_field(struct bytes *in, struct http1_head *h, struct err *err)
{
	struct http1_field f;

	if (h->n_fields == HTTP1_FIELDS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d fields", HTTP1_FIELDS_MAX);
	f.name = take_while(in, is_tchar);
	if (f.name.len == 0 || !take_text(in, BYTES_LIT(":")))
		return err_set(err, ERR_INVALID, 0, "malformed field name");
	if (f.name.len > HTTP1_NAME_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "field name over %d bytes", HTTP1_NAME_MAX);
	take_while(in, is_space);
	f.value = trim_right(take_while(in, is_text));
	if (!take_text(in, BYTES_LIT("\r\n")) || has_tab_edge(f.value))
		return err_set(err, ERR_INVALID, 0, "malformed field value");
	h->fields[h->n_fields++] = f;
	return 0;
}

static int parse_fields(struct bytes in, struct http1_head *h, struct err *err)
{
	while (!take_text(&in, BYTES_LIT("\r\n")))
		if (parse_field(&in, h, err) < 0)
			return -1;
	if (in.len != 0)
		return err_set(err, ERR_INVALID, 0, "bytes after the head");
	return 0;
}

/* Who writes a list of very many elements wants others to search it. Empty ones count. */
static int check_list(const struct http1_head *h, struct bytes name, struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n_fields; i++) {
		struct bytes rest = h->fields[i].value, one;

		if (!bytes_eq_nocase(h->fields[i].name, name))
			continue;
		for (n++; n <= HTTP1_LIST_MAX && bytes_cut(&rest, ',', &one);)
			n++;
		if (n > HTTP1_LIST_MAX)
			return err_set(err, ERR_EXHAUSTED, 0, "more than %d elements in %.*s",
				       HTTP1_LIST_MAX, (int)name.len, (const char *)name.ptr);
	}
	return 0;
}

int http1_check_lists(const struct http1_head *h, struct err *err)
{
	static const char *const lists[] = { "connection", "upgrade", "expect" };

	for (size_t i = 0; i < COUNT(lists); i++)
		if (check_list(h, bytes_str(lists[i]), err) < 0)
			return -1;
	return 0;
}

void http1_head_reset(struct http1_head *h)
{
	h->method = h->target = h->reason = (struct bytes){ 0 };
	h->form = HTTP1_ORIGIN;
	h->status = h->minor = 0;
	h->body = HTTP1_BODY_NONE;
	h->length = 0;
	h->n_fields = 0; /* the fields beyond it are never looked at */
}

int http1_parse_request(struct bytes in, struct http1_head *ret, struct err *err)
{
	http1_head_reset(ret);
	if (parse_request_line(&in, ret, err) < 0 || parse_fields(in, ret, err) < 0 ||
	    http1_check_lists(ret, err) < 0 || http1_check_host(ret, err) < 0)
		return -1;
	return http1_decide_request(ret, err);
}

int http1_parse_response(struct bytes in, struct bytes method, struct http1_head *ret,
			 struct err *err)
{
	http1_head_reset(ret);
	if (parse_status_line(&in, ret, err) < 0 || parse_fields(in, ret, err) < 0 ||
	    http1_check_lists(ret, err) < 0)
		return -1;
	return http1_decide_response(ret, method, err);
}

bool http1_has_body(const struct http1_head *h)
{
	return h->body == HTTP1_BODY_CHUNKED || h->length > 0;
}
