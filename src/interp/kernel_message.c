/* kernel_message.c - see kernel_message.h. */
#include "interp/kernel_message.h"

#include "base/clock.h"
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

static json_t *load(struct bytes in, size_t flags)
{
	json_error_t why;

	return json_loadb((const char *)in.ptr, in.len, JSON_ALLOW_NUL | flags, &why);
}

/* Too long, not text, or not there: empty. */
static void take_text(const json_t *object, const char *name, char *ret, size_t size)
{
	const json_t *v = json_object_get(object, name);

	if (!json_is_string(v) || !bytes_to_str(json_bytes(v), ret, size))
		ret[0] = '\0';
}

static int take_apart(const struct bytes f[static SIGNED], struct kernel_message *ret,
		      struct err *err)
{
	AUTO(json_decrefp) json_t *header = load(f[0], 0);
	AUTO(json_decrefp) json_t *parent = load(f[1], 0);
	json_t *content = load(f[3], 0);

	if (!content)
		content = load(f[3], JSON_DECODE_INT_AS_REAL);
	*ret = (struct kernel_message){ .content = content };
	if (!json_is_object(header) || !json_is_object(content)) {
		kernel_message_done(ret);
		return err_set(err, ERR_INVALID, 0, "a message that is no JSON");
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
