/* kernel_message.c - see kernel_message.h. */
#include "interp/kernel_message.h"

#include "base/clock.h"
#include "interp/json_bound.h"
#include "interp/json_mend.h"
#include "wire/hmac.h"
#include "wire/rfc3339.h"

enum { HEADER_MAX = 4096, CONTENT_MAX = 96 * 1024 * 1024, SIGNED = 4 };

#define DELIMITER BYTES_LIT("<IDS|MSG>")
#define NOTHING   BYTES_LIT("{}")

static void sign(struct bytes key, const struct bytes pieces[static SIGNED], char ret[static 65])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t mac[SHA256_SIZE];

	hmac_sha256_pieces(key, pieces, SIGNED, mac);
	for (size_t i = 0; i < SHA256_SIZE; i++) {
		ret[2 * i] = digits[mac[i] >> 4];
		ret[2 * i + 1] = digits[mac[i] & 15];
	}
	ret[2 * SHA256_SIZE] = '\0';
}

/* As it is, or with floating numbers where integers are too large. */
static json_t *load_any(struct bytes in, enum json_error_code *ret_why)
{
	json_error_t why;
	json_t *v = json_bound_load(in, JSON_ALLOW_NUL, &why);

	if (!v && json_error_code(&why) == json_error_numeric_overflow)
		v = json_bound_load(in, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &why);
	*ret_why = v ? json_error_unknown : json_error_code(&why);
	return v;
}

/* NULL: it is nothing that can be read. */
static json_t *load(struct bytes in)
{
	AUTO(buf_done) struct buf mended = BUF_MAX(3 * in.len); /* a byte for three */
	enum json_error_code why;
	json_t *v = load_any(in, &why);
	struct err err;

	if (why != json_error_invalid_utf8 && why != json_error_invalid_syntax &&
	    why != json_error_null_byte_in_key)
		return v;
	if (json_mend(in, &mended, &err) == 0 && !bytes_eq(in, buf_view(&mended)))
		v = load_any(buf_view(&mended), &why);
	return v;
}

/* Too long, not text, or not there: empty. */
static void take_text(const json_t *object, const char *name, char *ret, size_t size)
{
	const json_t *v = json_object_get(object, name);

	if (!json_is_string(v) || !bytes_to_str(json_bytes(v), ret, size))
		ret[0] = '\0';
}

static json_t *nothing_readable(void)
{
	return json_pack("{s:s, s:s, s:s}", "status", "error", "ename", "UnreadableMessage",
			 "evalue", "The kernel sent a message that cannot be read");
}

static int take_apart(const struct bytes f[static SIGNED], struct kernel_message *ret,
		      struct err *err)
{
	AUTO(json_decrefp) json_t *header = load(f[0]);
	AUTO(json_decrefp) json_t *parent = load(f[1]);

	*ret = (struct kernel_message){ .content = load(f[3]) };
	if (!json_is_object(ret->content)) {
		json_decref(ret->content);
		ret->content = nothing_readable();
		ret->unreadable = true;
	}
	if (!json_is_object(header) || !ret->content) {
		kernel_message_done(ret);
		return err_set(err, ERR_INVALID, 0, "a message without a header");
	}
	take_text(header, "msg_type", ret->type, sizeof(ret->type));
	take_text(header, "date", ret->date, sizeof(ret->date));
	take_text(parent, "msg_id", ret->parent, sizeof(ret->parent));
	return 0;
}

int kernel_message_decode(struct bytes key, const struct bytes *frames, size_t n,
			  struct kernel_message *ret, struct err *err)
{
	char signature[65];
	size_t at = 0;

	while (at < n && !bytes_eq(frames[at], DELIMITER))
		at++;
	if (n - at < 2 + SIGNED)
		return err_set(err, ERR_INVALID, 0, "a message of %zu frames", n);
	sign(key, frames + at + 2, signature);
	if (!bytes_eq_secret(frames[at + 1], bytes_str(signature)))
		return err_set(err, ERR_DENIED, 0, "a message with a wrong signature");
	return take_apart(frames + at + 2, ret, err);
}

void kernel_message_done(struct kernel_message *m)
{
	json_decref(m->content);
	m->content = NULL;
}

int kernel_message_encode(struct bytes key, const char *type, const char *id, const char *session,
			  const json_t *content, struct kernel_frames *ret, struct err *err)
{
	char now[RFC3339_SIZE];

	*ret = (struct kernel_frames){ BUF_MAX(HEADER_MAX), BUF_MAX(CONTENT_MAX) };
	rfc3339_put(clock_wall_ns(), 6, now);
	if (buf_printf(&ret->header, err,
		       "{\"msg_id\":\"%s\",\"session\":\"%s\",\"username\":\"hotcell\","
		       "\"date\":\"%s\",\"msg_type\":\"%s\",\"version\":\"5.3\"}",
		       id, session, now, type) < 0 ||
	    json_encode(content, &ret->content, err) < 0) {
		kernel_frames_done(ret);
		return -1;
	}
	ret->frames[0] = DELIMITER;
	ret->frames[2] = buf_view(&ret->header);
	ret->frames[3] = ret->frames[4] = NOTHING;
	ret->frames[5] = buf_view(&ret->content);
	sign(key, ret->frames + 2, ret->signature);
	ret->frames[1] = bytes_str(ret->signature);
	return 0;
}

void kernel_frames_done(struct kernel_frames *f)
{
	buf_done(&f->header);
	buf_done(&f->content);
}
