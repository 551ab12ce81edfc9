/* access.c - tokens are compared in constant time. */
#include "agent/access.h"

#include "wire/base64.h"

static bool holds(const char *token, const struct http1_head *h, const char *field)
{
	struct bytes given;

	if (token[0] == '\0')
		return true;
	return http1_find(h, field, &given) == 1 && bytes_eq_secret(given, bytes_str(token));
}

bool access_client(const struct session *s, const struct http1_head *h)
{
	return holds(s->access_token, h, "x-access-token");
}

bool access_control(const struct session *s, const struct http1_head *h)
{
	return holds(s->control_token, h, "x-hotcell-control");
}

int access_user(const struct http1_head *h, struct buf *out, struct err *err)
{
	AUTO(buf_done) struct buf plain = BUF_MAX(out->max + 256);
	struct bytes value, scheme, rest, name;
	size_t n = http1_find(h, "authorization", &value);

	if (n == 0)
		return 0;
	rest = value;
	if (n > 1 || !bytes_cut(&rest, ' ', &scheme))
		return err_set(err, ERR_INVALID, 0, "malformed authorization");
	if (!bytes_eq_nocase(scheme, BYTES_LIT("basic")))
		return 0;
	if (base64_decode(bytes_trim(rest), &plain, err) < 0)
		return err_wrap(err, "malformed authorization");
	rest = buf_view(&plain);
	if (!bytes_cut(&rest, ':', &name))
		return err_set(err, ERR_INVALID, 0, "malformed authorization");
	return buf_add(out, name, err);
}
