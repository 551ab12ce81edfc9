/* secret_request.c - a secret's name, value and metadata, each within its limits. */
#include "gateway/parse/secret_request.h"

enum { DEPTH_MAX = 4 };

/* Values end up in headers: what could end one there is refused here, where somebody listens. */
static bool value_ok(struct bytes value)
{
	for (size_t i = 0; i < value.len; i++)
		if ((value.ptr[i] < ' ' && value.ptr[i] != '\t') || value.ptr[i] == 127)
			return false;
	return value.len > 0 && value.len <= SECRET_VALUE_MAX;
}

static int take_value(const json_t *body, struct buf *ret, struct err *err)
{
	struct bytes value;

	if (json_want_string(body, "value", &value, err) < 0)
		return -1;
	if (!value_ok(value))
		return err_set(err, ERR_INVALID, 0,
			       "value must be 1 to %d bytes without control characters",
			       SECRET_VALUE_MAX);
	*ret = BUF_SECRET(SECRET_VALUE_MAX);
	return buf_add(ret, value, err);
}

static int check_metadata(const json_t *metadata, struct err *err)
{
	size_t all = 0;
	const char *key;
	json_t *value;

	if (json_object_size(metadata) > SECRET_METADATA_MAX)
		return err_set(err, ERR_INVALID, 0, "metadata has at most %d entries",
			       SECRET_METADATA_MAX);
	json_object_foreach((json_t *)(uintptr_t)metadata, key, value)
	{
		size_t n = strlen(key), m = json_string_length(value);

		all += n + m;
		if (!json_is_string(value) || n > SECRET_METADATA_KEY_MAX ||
		    m > SECRET_METADATA_VALUE_MAX || all > SECRET_METADATA_BYTES_MAX)
			return err_set(err, ERR_INVALID, 0,
				       "metadata is of strings, keys of at most %d bytes, values "
				       "of at most %d, %d together",
				       SECRET_METADATA_KEY_MAX, SECRET_METADATA_VALUE_MAX,
				       SECRET_METADATA_BYTES_MAX);
	}
	return 0;
}

static int take_metadata(const json_t *body, struct buf *ret, struct err *err)
{
	json_t *metadata = NULL;

	*ret = BUF_MAX(SECRET_METADATA_TEXT_MAX);
	if (json_may_object(body, "metadata", &metadata, err) < 0)
		return -1;
	if (!metadata)
		return 0;
	if (check_metadata(metadata, err) < 0)
		return -1;
	return json_encode(metadata, ret, err);
}

static int take_name(const json_t *body, char ret[static SECRET_NAME_SIZE], struct err *err)
{
	struct bytes name;

	if (json_want_string(body, "name", &name, err) < 0)
		return -1;
	if (!secret_name_normal(name, ret))
		return err_set(err, ERR_INVALID, 0,
			       "name must be 1 to %d letters, digits, _ or -, and not begin with "
			       "sec_",
			       SECRET_NAME_MAX);
	return 0;
}

int secret_request_parse(struct bytes body, bool named, struct secret_request *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;
	int rc;

	*ret = (struct secret_request){ 0 };
	/* its own words may quote the text */
	if (json_decode(body, SECRET_BODY_MAX, DEPTH_MAX, &all, err) < 0 || !json_is_object(all))
		return err_set(err, ERR_INVALID, 0, "the body must be a JSON object");
	rc = !named ? take_name(all, ret->name, err) : 0;
	if (rc == 0)
		rc = take_value(all, &ret->value, err);
	if (rc == 0)
		rc = take_metadata(all, &ret->metadata, err);
	if (rc < 0)
		secret_request_done(ret);
	return rc;
}

void secret_request_done(struct secret_request *r)
{
	buf_done(&r->value);
	buf_done(&r->metadata);
}

static bool id_ok(const char *id)
{
	/* the first of 26 digits holds three bits */
	return strlen(id) == STORE_SECRET_ID_SIZE - 1 && id[4] <= '7' &&
	       strspn(id + 4, "0123456789abcdefghjkmnpqrstvwxyz") == STORE_SECRET_ID_SIZE - 5;
}

bool secret_selector(struct bytes text, char ret_id[static STORE_SECRET_ID_SIZE],
		     char ret_name[static SECRET_NAME_SIZE])
{
	struct bytes trimmed = bytes_trim(text);

	ret_id[0] = ret_name[0] = '\0';
	if (!bytes_eq_nocase(bytes_head(trimmed, 4), BYTES_LIT("sec_")))
		return secret_name_normal(text, ret_name);
	if (!bytes_to_str(trimmed, ret_id, STORE_SECRET_ID_SIZE))
		return false;
	for (char *at = ret_id; *at; at++)
		*at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
	return id_ok(ret_id);
}
