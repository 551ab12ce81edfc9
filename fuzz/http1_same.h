/* http1_same.h - promises that requests and responses share. */
#pragma once

#include "fuzz/must.h"
#include "wire/http1_encode.h"
#include "wire/http1_field.h"

/* Where a simpler reader would see the end, or the first line that does not end in CRLF. */
static inline void must_end_rightly(struct bytes in, enum decode got, size_t used)
{
	const uint8_t *end = in.len ? memmem(in.ptr, in.len, "\r\n\r\n", 4) : NULL;
	struct bytes lines = got == DECODE_OK ? bytes_head(in, used) : in, line;

	if (got == DECODE_OK)
		MUST(end && (size_t)(end - in.ptr) + 4 == used);
	while (got != DECODE_BAD && bytes_cut(&lines, '\n', &line))
		MUST(line.len > 0 && line.ptr[line.len - 1] == '\r');
}

/* However the bytes are split on the wire, the head ends at the same place or is refused. */
static inline enum decode must_end_alike(struct bytes in, size_t *ret_used)
{
	struct err err = { 0 }, why = { 0 };
	size_t scanned = 0, used = 0, step = in.len > 512 ? in.len / 256 : 1, n = 0;
	enum decode whole = http1_head_end(in, &scanned, &used, &err), part;

	MUST(used <= in.len && used <= HTTP1_HEAD_MAX);
	must_end_rightly(in, whole, used);
	if (whole == DECODE_BAD)
		must_say_why(&err);
	else
		MUST(err.code == ERR_NONE);

	scanned = *ret_used = 0;
	do {
		part = http1_head_end(bytes_head(in, n), &scanned, ret_used, &why);
		n += step;
	} while (part == DECODE_MORE && n < in.len + step);
	MUST(part == whole && *ret_used == used && strcmp(why.msg, err.msg) == 0);
	return whole;
}

static inline bool is_plain(struct bytes b) /* no control byte but the tab */
{
	for (size_t i = 0; i < b.len; i++)
		if ((b.ptr[i] < ' ' && b.ptr[i] != '\t') || b.ptr[i] == 127)
			return false;
	return true;
}

/* A field stands at the start of a line, and its name ends at the colon. */
static inline bool is_anchored(struct bytes name, struct bytes in)
{
	size_t at = (size_t)(name.ptr - in.ptr);

	return in.ptr[at - 1] == '\n' && in.ptr[at + name.len] == ':';
}

/* Every part lies inside the input and holds nothing that could end a line. */
static inline void must_be_plain(const struct http1_head *h, struct bytes in)
{
	MUST(h->n_fields <= HTTP1_FIELDS_MAX && h->minor <= 1);
	MUST(inside(h->method, in) && inside(h->target, in) && inside(h->reason, in));
	MUST(is_plain(h->method) && is_plain(h->target) && is_plain(h->reason));
	for (size_t i = 0; i < h->n_fields; i++) {
		MUST(inside(h->fields[i].name, in) && inside(h->fields[i].value, in));
		MUST(h->fields[i].name.len > 0 && is_anchored(h->fields[i].name, in));
		MUST(is_plain(h->fields[i].name) && is_plain(h->fields[i].value));
	}
	MUST(h->body == HTTP1_BODY_LENGTH || h->length == 0);
}

/* One field at most says where the body ends, and it is the one that was believed. */
static inline void must_frame_once(const struct http1_head *h)
{
	struct bytes length = { 0 }, coding = { 0 };
	size_t lengths = http1_find(h, "content-length", &length);
	size_t codings = http1_find(h, "transfer-encoding", &coding);
	uint64_t n;

	MUST(lengths + codings <= 1);
	if (h->body == HTTP1_BODY_LENGTH)
		MUST(lengths == 1 && bytes_to_u64(length, &n) && n == h->length);
	if (h->body == HTTP1_BODY_CHUNKED)
		MUST(codings == 1 && h->minor == 1 &&
		     bytes_eq_nocase(coding, BYTES_LIT("chunked")));
	if (h->body == HTTP1_BODY_CLOSE)
		MUST(lengths + codings == 0 && !http1_keep_alive(h));
}

/* Whoever says nothing but `close` on any line is closed on. */
static inline void must_close_when_told(const struct http1_head *h)
{
	for (size_t i = 0; i < h->n_fields; i++)
		if (bytes_eq_nocase(h->fields[i].name, BYTES_LIT("connection")) &&
		    bytes_eq_nocase(h->fields[i].value, BYTES_LIT("close")))
			MUST(!http1_keep_alive(h));
}

static inline void must_be_same(const struct http1_head *a, const struct http1_head *b)
{
	MUST(bytes_eq(a->method, b->method) && bytes_eq(a->target, b->target));
	MUST(a->form == b->form && a->status == b->status);
	MUST(a->body == b->body && a->length == b->length && a->n_fields == b->n_fields);
	for (size_t i = 0; i < a->n_fields; i++) {
		MUST(bytes_eq(a->fields[i].name, b->fields[i].name));
		MUST(bytes_eq(a->fields[i].value, b->fields[i].value));
	}
	MUST(bytes_eq(http1_upgrade(a), http1_upgrade(b)) || a->minor != b->minor);
}

/* After its first line: the fields of a head that was read, and its end. */
static inline void must_put_fields(struct buf *out, const struct http1_head *h)
{
	struct err err = { 0 };

	for (size_t i = 0; i < h->n_fields; i++)
		MUST(http1_put_field(out, h->fields[i].name, h->fields[i].value, &err) == 0);
	MUST(http1_put_end(out, &err) == 0);
}
