/* identity_parse.c - the identity message: all of it is checked before any of it is done. */
#include "agent/machine/identity.h"

#include "wire/base64.h"

static int take_offset(const json_t *v, struct identity *ret, struct err *err)
{
	return json_want_int(v, "clockOffsetNs", INT64_MIN, INT64_MAX, &ret->clock_offset_ns, err);
}

static int take_entropy(const json_t *v, struct identity *ret, struct err *err)
{
	AUTO(buf_done) struct buf raw = BUF_MAX(IDENTITY_ENTROPY_BYTES);
	struct bytes text;

	if (json_want_string(v, "entropy", &text, err) < 0)
		return -1;
	if (base64_decode(text, &raw, err) < 0)
		return err_wrap(err, "entropy");
	if (raw.len != sizeof(ret->entropy))
		return err_set(err, ERR_INVALID, 0, "entropy has %zu bytes, not %d", raw.len,
			       IDENTITY_ENTROPY_BYTES);
	memcpy(ret->entropy, raw.ptr, raw.len);
	explicit_bzero(raw.ptr, raw.len);
	return 0;
}

static bool is_hex(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_machine_id(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++)
		if (!is_hex(b.ptr[i]))
			return false;
	return b.len == 32;
}

static bool is_uuid(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? b.ptr[i] != '-' : !is_hex(b.ptr[i]))
			return false;
	}
	return b.len == 36;
}

static bool is_hostname(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++) {
		uint8_t c = b.ptr[i];
		bool inner = i > 0 && i + 1 < b.len && (c == '-' || c == '.');

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		      inner))
			return false;
	}
	return b.len > 0;
}

static int take_text(const json_t *v, const char *name, bool (*ok)(struct bytes), char *ret,
		     size_t size, struct err *err)
{
	struct bytes b;

	if (json_want_string(v, name, &b, err) < 0)
		return -1;
	if (!ok(b) || !bytes_to_str(b, ret, size))
		return err_set(err, ERR_INVALID, 0, "%s is malformed", name);
	return 0;
}

static int take_names(const json_t *v, struct identity *ret, struct err *err)
{
	if (take_text(v, "hostname", is_hostname, ret->hostname, sizeof(ret->hostname), err) < 0 ||
	    take_text(v, "machineId", is_machine_id, ret->machine_id, sizeof(ret->machine_id),
		      err) < 0)
		return -1;
	return take_text(v, "bootId", is_uuid, ret->boot_id, sizeof(ret->boot_id), err);
}

/* Whoever was never given a token is nobody yet, and cannot be that again. */
static int check_host(const json_t *v, const struct session *base, struct err *err)
{
	struct bytes token;

	if (json_want_string(v, "controlToken", &token, err) < 0)
		return -1;
	if (!base->control_token[0] || !bytes_eq_secret(token, bytes_str(base->control_token)))
		return err_set(err, ERR_DENIED, 0, "not the host of this sandbox");
	return 0;
}

static int take_rest(const json_t *v, const struct session *base, struct identity *ret,
		     struct err *err)
{
	if (json_may_bool(v, "resume", &ret->resume, err) < 0)
		return -1;
	if (ret->resume)
		return json_may_bool(v, "inPlace", &ret->in_place, err) < 0
			       ? -1
			       : check_host(v, base, err);
	if (take_names(v, ret, err) < 0 ||
	    json_may_bool(v, "stayFrozen", &ret->stay_frozen, err) < 0 ||
	    json_may_bool(v, "leftBehind", &ret->left_behind, err) < 0)
		return -1;
	return session_parse(v, base, &ret->session, err);
}

int identity_parse(struct bytes json, const struct session *base, struct identity *ret,
		   struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	*ret = (struct identity){ 0 };
	if (json_decode(json, SESSION_JSON_MAX, SESSION_JSON_DEPTH, &v, err) < 0 ||
	    take_offset(v, ret, err) < 0 || take_entropy(v, ret, err) < 0 ||
	    take_rest(v, base, ret, err) < 0) {
		identity_done(ret);
		return err_wrap(err, "identity");
	}
	return 0;
}

void identity_done(struct identity *id)
{
	session_done(&id->session);
	explicit_bzero(id->entropy, sizeof(id->entropy));
}
