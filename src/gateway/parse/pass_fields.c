/* pass_fields.c - see pass_fields.h. */
#include "gateway/parse/pass_fields.h"

#include "wire/http1_host.h"
#include "wire/target.h"

enum { NAME_MAX_BYTES = 64 };

/* However its name is spelt: what a guest would take for it must not reach it. */
static bool is_param(struct bytes raw)
{
	AUTO(buf_done) struct buf name = BUF_MAX(NAME_MAX_BYTES);
	struct err err;

	return target_decode_param(raw, &name, &err) == 0 &&
	       bytes_eq(buf_view(&name), BYTES_LIT(PASS_PARAM));
}

bool pass_in_query(struct bytes query, struct bytes *ret)
{
	struct bytes name;

	while (target_next_param(&query, &name, ret))
		if (is_param(name))
			return true;
	return false;
}

int pass_drop_param(struct bytes path, struct bytes query, struct buf *out, struct err *err)
{
	struct bytes one, rest, name;
	bool first = true;

	while (path.len > 0 && (path.ptr[0] == '/' || path.ptr[0] == '\\'))
		path = bytes_tail(path, 1);
	if (buf_add(out, BYTES_LIT("/"), err) < 0 || buf_add(out, path, err) < 0)
		return -1;
	while (bytes_next(&query, '&', &one)) {
		rest = one;
		if (is_param(bytes_cut(&rest, '=', &name) ? name : one))
			continue;
		if (buf_add(out, first ? BYTES_LIT("?") : BYTES_LIT("&"), err) < 0 ||
		    buf_add(out, one, err) < 0)
			return -1;
		first = false;
	}
	return 0;
}

bool pass_next_cookie(struct bytes *cookies, const char *name, struct bytes *ret)
{
	struct bytes one, key;

	while (bytes_next(cookies, ';', &one)) {
		one = bytes_trim(one);
		if (bytes_cut(&one, '=', &key) && bytes_eq(bytes_trim(key), bytes_str(name))) {
			*ret = bytes_trim(one);
			return true;
		}
	}
	return false;
}

bool pass_has_cookie(struct bytes cookies)
{
	struct bytes plain = cookies, secure = cookies, value;

	return pass_next_cookie(&plain, PASS_COOKIE_PLAIN, &value) ||
	       pass_next_cookie(&secure, PASS_COOKIE_SECURE, &value);
}

int pass_drop_cookies(struct bytes cookies, struct buf *out, struct err *err)
{
	struct bytes one;

	while (bytes_next(&cookies, ';', &one)) {
		one = bytes_trim(one);
		if (one.len == 0 || pass_has_cookie(one))
			continue;
		if ((out->len > 0 && buf_add(out, BYTES_LIT("; "), err) < 0) ||
		    buf_add(out, one, err) < 0)
			return -1;
	}
	return 0;
}

bool pass_same_origin(struct bytes origin, bool secure, struct bytes host)
{
	const struct bytes scheme = secure ? BYTES_LIT("https://") : BYTES_LIT("http://");

	return bytes_eq_nocase(bytes_head(origin, scheme.len), scheme) && host.len > 0 &&
	       bytes_eq_nocase(bytes_tail(origin, scheme.len), host);
}

bool pass_own_name(struct bytes host, const char *domain)
{
	struct bytes rest = bytes_str(domain), end = rest, name;
	uint16_t port;

	if (!http1_split_host(host, &name, &port))
		return false;
	if (end.len == 0)
		return true;
	(void)bytes_cut(&rest, ':', &end);
	if (name.len > 0 && name.ptr[name.len - 1] == '.')
		name.len--;
	return name.len > end.len + 1 && name.ptr[name.len - end.len - 1] == '.' &&
	       bytes_eq_nocase(bytes_tail(name, name.len - end.len), end);
}
