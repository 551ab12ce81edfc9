/* http1_host.c - one host per request. Two answers are no answer. */
#include "wire/http1_host.h"

#include "wire/http1_chars.h"
#include "wire/http1_field.h"

static bool is_name(uint8_t c)
{
	return is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static bool is_ipv6(uint8_t c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' ||
	       c == '.';
}

/* The length of the host at the front: a name, or brackets and what is between them. 0: none. */
static size_t host_len(struct bytes b)
{
	size_t n = 0;

	if (b.len > 0 && b.ptr[0] == '[') {
		for (n = 1; n < b.len && is_ipv6(b.ptr[n]); n++)
			;
		return n > 1 && n < b.len && b.ptr[n] == ']' ? n + 1 : 0;
	}
	while (n < b.len && is_name(b.ptr[n]))
		n++;
	return n;
}

bool http1_split_host(struct bytes value, struct bytes *ret_host, uint16_t *ret_port)
{
	size_t n = host_len(value);
	struct bytes rest = bytes_tail(value, n);
	uint64_t port = 0;

	if (n == 0)
		return false;
	if (rest.len > 0 && (rest.ptr[0] != ':' || rest.len > 6 ||
			     !bytes_to_u64(bytes_tail(rest, 1), &port) || port < 1 || port > 65535))
		return false;
	*ret_host = bytes_head(value, n);
	*ret_port = (uint16_t)port;
	return true;
}

/* What a target names: all of CONNECT's, or what stands between // and the path. */
static struct bytes target_authority(const struct http1_head *h)
{
	size_t from = scheme_len(h->target);

	if (h->form == HTTP1_AUTHORITY)
		return h->target;
	return bytes_tail(bytes_head(h->target, authority_end(h->target, from)), from);
}

static int check_target(const struct http1_head *h, struct bytes *ret, struct err *err)
{
	struct bytes name;
	uint16_t port;

	*ret = target_authority(h);
	if (!http1_split_host(*ret, &name, &port))
		return err_set(err, ERR_INVALID, 0, "malformed host in the target");
	if (h->form == HTTP1_AUTHORITY && port == 0)
		return err_set(err, ERR_INVALID, 0, "CONNECT without a port");
	return 0;
}

int http1_check_host(const struct http1_head *h, struct err *err)
{
	bool named = h->form == HTTP1_ABSOLUTE || h->form == HTTP1_AUTHORITY;
	struct bytes host = { 0 }, name, target = { 0 };
	size_t n = http1_find(h, "host", &host);
	uint16_t port;

	if (n > 1)
		return err_set(err, ERR_INVALID, 0, "repeated host");
	if (n == 0 && h->minor > 0)
		return err_set(err, ERR_INVALID, 0, "missing host");
	if (n > 0 && !http1_split_host(host, &name, &port))
		return err_set(err, ERR_INVALID, 0, "malformed host");
	if (named && check_target(h, &target, err) < 0)
		return -1;
	if (n > 0 && named && !bytes_eq_nocase(host, target))
		return err_set(err, ERR_INVALID, 0, "host and target disagree");
	return 0;
}
