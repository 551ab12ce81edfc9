/* http1_body.c - the one place that decides where a body ends. Two answers are no answer. */
#include "wire/http1_body.h"

struct framing {
	bool length, chunked;
};

static int take_length(struct http1_head *h, struct bytes value, struct framing *f, struct err *err)
{
	if (f->length)
		return err_set(err, ERR_INVALID, 0, "repeated content-length");
	if (!bytes_to_u64(value, &h->length))
		return err_set(err, ERR_INVALID, 0, "malformed content-length");
	f->length = true;
	return 0;
}

static int take_coding(const struct http1_head *h, struct bytes value, struct framing *f,
		       struct err *err)
{
	if (f->chunked)
		return err_set(err, ERR_INVALID, 0, "repeated transfer-encoding");
	if (h->minor == 0)
		return err_set(err, ERR_INVALID, 0, "transfer-encoding in HTTP/1.0");
	if (!bytes_eq_nocase(value, BYTES_LIT("chunked")))
		return err_set(err, ERR_INVALID, 0, "transfer-encoding is not exactly `chunked`");
	f->chunked = true;
	return 0;
}

static int read_framing(struct http1_head *h, struct framing *ret, struct err *err)
{
	for (size_t i = 0; i < h->n_fields; i++) {
		struct http1_field f = h->fields[i];

		if (bytes_eq_nocase(f.name, BYTES_LIT("content-length")) &&
		    take_length(h, f.value, ret, err) < 0)
			return -1;
		if (bytes_eq_nocase(f.name, BYTES_LIT("transfer-encoding")) &&
		    take_coding(h, f.value, ret, err) < 0)
			return -1;
	}
	if (ret->length && ret->chunked)
		return err_set(err, ERR_INVALID, 0, "both content-length and transfer-encoding");
	return 0;
}

int http1_decide_request(struct http1_head *h, struct err *err)
{
	struct framing f = { 0 };

	if (read_framing(h, &f, err) < 0)
		return -1;
	h->body = f.chunked ? HTTP1_BODY_CHUNKED : f.length ? HTTP1_BODY_LENGTH : HTTP1_BODY_NONE;
	return 0;
}

int http1_decide_response(struct http1_head *h, struct bytes method, struct err *err)
{
	/* after these there is never a body, and saying otherwise is an attempt to confuse */
	bool bare = h->status < 200 || h->status == 204 ||
		    (h->status < 300 && bytes_eq(method, BYTES_LIT("CONNECT")));
	/* these may describe the body that another request would have got */
	bool described = h->status == 304 || bytes_eq(method, BYTES_LIT("HEAD"));
	struct framing f = { 0 };

	if (read_framing(h, &f, err) < 0)
		return -1;
	if (bare && (f.chunked || h->length > 0))
		return err_set(err, ERR_INVALID, 0, "a body announced by status %u", h->status);
	if (bare || described) {
		h->body = HTTP1_BODY_NONE;
		h->length = 0;
		return 0;
	}
	h->body = f.chunked ? HTTP1_BODY_CHUNKED : f.length ? HTTP1_BODY_LENGTH : HTTP1_BODY_CLOSE;
	return 0;
}
