/* connect.c - envelopes, and the words of the Connect protocol for failure. */
#include "wire/connect.h"

#include <assert.h>

#include "wire/json.h"

/* "error", "code", the longest name, and a message in which every byte became \u00XX */
enum { ERROR_BODY_MAX = 256 + 6 * CONNECT_MESSAGE_MAX };

static uint32_t be32_load(const uint8_t p[static 4])
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int check_flags(uint8_t flags, struct err *err)
{
	if (flags & ENVELOPE_COMPRESSED)
		return err_set(err, ERR_INVALID, 0, "compressed messages are not supported");
	if (flags & ~ENVELOPE_END)
		return err_set(err, ERR_INVALID, 0, "unknown envelope flags 0x%02x", flags);
	return 0;
}

enum decode envelope_decode(struct bytes in, size_t max, struct envelope *ret, size_t *ret_used,
			    struct err *err)
{
	uint32_t len;

	if (in.len >= 1 && check_flags(in.ptr[0], err) < 0)
		return DECODE_BAD;
	if (in.len < ENVELOPE_HEAD)
		return DECODE_MORE;
	len = be32_load(&in.ptr[1]);
	if (len > max) {
		err_set(err, ERR_EXHAUSTED, 0, "message of %u bytes, limit is %zu", len, max);
		return DECODE_BAD;
	}
	if (in.len - ENVELOPE_HEAD < len)
		return DECODE_MORE;
	ret->end = in.ptr[0] & ENVELOPE_END;
	ret->body = bytes_head(bytes_tail(in, ENVELOPE_HEAD), len);
	*ret_used = ENVELOPE_HEAD + (size_t)len;
	return DECODE_OK;
}

int envelope_open(struct buf *out, size_t *ret_at, struct err *err)
{
	*ret_at = out->len;
	return buf_add(out, (struct bytes){ (const uint8_t[ENVELOPE_HEAD]){ 0 }, ENVELOPE_HEAD },
		       err);
}

void envelope_close(struct buf *out, size_t at)
{
	size_t n = out->len - at - ENVELOPE_HEAD;

	assert(n <= UINT32_MAX);
	for (size_t i = ENVELOPE_HEAD - 1; i > 0; i--, n >>= 8)
		out->ptr[at + i] = (uint8_t)n;
}

int envelope_put(struct buf *out, const struct envelope *e, struct err *err)
{
	size_t before = out->len;
	uint8_t head[ENVELOPE_HEAD];

	if (e->body.len > UINT32_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "message of %zu bytes does not fit",
			       e->body.len);
	head[0] = e->end ? ENVELOPE_END : 0;
	head[1] = (uint8_t)(e->body.len >> 24);
	head[2] = (uint8_t)(e->body.len >> 16);
	head[3] = (uint8_t)(e->body.len >> 8);
	head[4] = (uint8_t)e->body.len;
	if (buf_add(out, (struct bytes){ head, sizeof(head) }, err) < 0)
		return -1;
	if (buf_add(out, e->body, err) < 0) {
		out->len = before;
		return -1;
	}
	return 0;
}

void envelope_follow(struct envelope_place *p, struct bytes in)
{
	while (in.len > 0) {
		size_t n = p->left < in.len ? p->left : in.len;

		in = bytes_tail(in, n);
		p->left -= (uint32_t)n;
		while (p->left == 0 && in.len > 0 && p->in_head < ENVELOPE_HEAD) {
			p->head[p->in_head++] = in.ptr[0];
			in = bytes_tail(in, 1);
		}
		if (p->in_head < ENVELOPE_HEAD)
			continue;
		p->in_head = 0;
		p->left = be32_load(&p->head[1]);
		p->ended = p->ended || (p->head[0] & ENVELOPE_END);
	}
}

bool envelope_between(const struct envelope_place *p)
{
	return p->in_head == 0 && p->left == 0 && !p->ended;
}

static const struct {
	const char *name;
	unsigned int status;
} codes[] = {
	[CONNECT_CANCELED] = { "canceled", 499 },
	[CONNECT_UNKNOWN] = { "unknown", 500 },
	[CONNECT_INVALID_ARGUMENT] = { "invalid_argument", 400 },
	[CONNECT_DEADLINE_EXCEEDED] = { "deadline_exceeded", 504 },
	[CONNECT_NOT_FOUND] = { "not_found", 404 },
	[CONNECT_ALREADY_EXISTS] = { "already_exists", 409 },
	[CONNECT_PERMISSION_DENIED] = { "permission_denied", 403 },
	[CONNECT_RESOURCE_EXHAUSTED] = { "resource_exhausted", 429 },
	[CONNECT_FAILED_PRECONDITION] = { "failed_precondition", 400 },
	[CONNECT_ABORTED] = { "aborted", 409 },
	[CONNECT_OUT_OF_RANGE] = { "out_of_range", 400 },
	[CONNECT_UNIMPLEMENTED] = { "unimplemented", 501 },
	[CONNECT_INTERNAL] = { "internal", 500 },
	[CONNECT_UNAVAILABLE] = { "unavailable", 503 },
	[CONNECT_DATA_LOSS] = { "data_loss", 500 },
	[CONNECT_UNAUTHENTICATED] = { "unauthenticated", 401 },
};
static_assert(COUNT(codes) == CONNECT_CODES, "a code without a name");

const char *connect_code_name(enum connect_code code)
{
	assert(code >= CONNECT_CANCELED && code < CONNECT_CODES);
	return codes[code].name;
}

unsigned int connect_code_status(enum connect_code code)
{
	assert(code >= CONNECT_CANCELED && code < CONNECT_CODES);
	return codes[code].status;
}

enum connect_code connect_code_of(enum err_code code)
{
	static const enum connect_code of[] = {
		[ERR_NONE] = CONNECT_UNKNOWN,
		[ERR_INVALID] = CONNECT_INVALID_ARGUMENT,
		[ERR_NOT_FOUND] = CONNECT_NOT_FOUND,
		[ERR_EXISTS] = CONNECT_ALREADY_EXISTS,
		[ERR_DENIED] = CONNECT_PERMISSION_DENIED,
		[ERR_EXHAUSTED] = CONNECT_RESOURCE_EXHAUSTED,
		[ERR_MISMATCH] = CONNECT_FAILED_PRECONDITION,
		[ERR_TIMEOUT] = CONNECT_DEADLINE_EXCEEDED,
		[ERR_UNAVAILABLE] = CONNECT_UNAVAILABLE,
		[ERR_VERSION] = CONNECT_UNAVAILABLE,
		[ERR_INTERNAL] = CONNECT_INTERNAL,
		[ERR_NO_SPACE] = CONNECT_RESOURCE_EXHAUSTED,
		[ERR_NO_FILES] = CONNECT_UNAVAILABLE,
		[ERR_BASE_LOST] = CONNECT_FAILED_PRECONDITION,
	};
	static_assert(COUNT(of) == ERR_CODES, "an error without a Connect code");

	assert(code < ERR_CODES);
	return of[code];
}

static json_t *error_object(enum connect_code code, struct bytes message)
{
	return json_pack("{s:s, s:o}", "code", connect_code_name(code), "message",
			 json_text(bytes_head(message, CONNECT_MESSAGE_MAX)));
}

int connect_put_error(struct buf *out, enum connect_code code, struct bytes message,
		      struct err *err)
{
	AUTO(json_decrefp) json_t *body = error_object(code, message);

	if (!body)
		return err_set(err, ERR_EXHAUSTED, 0, "build an error body");
	return json_encode(body, out, err);
}

int connect_put_end(struct buf *out, struct err *err)
{
	return envelope_put(out, &(struct envelope){ true, BYTES_LIT("{}") }, err);
}

int connect_put_end_error(struct buf *out, enum connect_code code, struct bytes message,
			  struct err *err)
{
	AUTO(json_decrefp) json_t *body = json_pack("{s:o}", "error", error_object(code, message));
	AUTO(buf_done) struct buf text = BUF_MAX(ERROR_BODY_MAX);

	if (!body)
		return err_set(err, ERR_EXHAUSTED, 0, "build an error body");
	if (json_encode(body, &text, err) < 0)
		return -1;
	return envelope_put(out, &(struct envelope){ true, buf_view(&text) }, err);
}
