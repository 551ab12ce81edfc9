/* dispatch.c - which plane a request is for: by host name, by headers, or by neither.
 *
 * A host name that names a sandbox wins over the headers: a service inside a sandbox may use
 * headers of these names for itself.
 */
#include "gateway/dispatch.h"

#include "wire/http1_field.h"
#include "wire/http1_host.h"
#include "wire/ip.h"
#include "wire/target.h"

static const char missing_header[] = "missing header";
static const char invalid_id[] = "Invalid sandbox ID";
static const char invalid_port[] = "Invalid sandbox port";
static const char invalid_host[] = "Invalid host";

static void bad(struct dispatch *ret, const char *message)
{
	*ret = (struct dispatch){ .plane = PLANE_BAD, .message = message };
}

static bool is_id(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++)
		if (!(b.ptr[i] >= 'a' && b.ptr[i] <= 'z') && !(b.ptr[i] >= '0' && b.ptr[i] <= '9'))
			return false;
	return b.len > 0 && b.len <= NODE_ID_MAX;
}

static bool is_port(struct bytes b, uint16_t *ret)
{
	uint64_t port;

	if (b.len > 5 || !bytes_to_u64(b, &port) || port < 1 || port > UINT16_MAX)
		return false;
	*ret = (uint16_t)port;
	return true;
}

static void name_sandbox(struct dispatch *ret, struct bytes id, struct bytes port)
{
	*ret = (struct dispatch){ .plane = PLANE_SANDBOX };
	if (!is_id(id) || !bytes_to_str(id, ret->id, sizeof(ret->id)))
		bad(ret, invalid_id);
	else if (!is_port(port, &ret->port))
		bad(ret, invalid_port);
}

static void by_headers(struct bytes id, size_t n_id, struct bytes port, size_t n_port,
		       struct dispatch *ret)
{
	if (n_id == 0 || n_port == 0)
		bad(ret, missing_header);
	else if (n_id > 1)
		bad(ret, invalid_id);
	else if (n_port > 1)
		bad(ret, invalid_port);
	else
		name_sandbox(ret, id, port);
}

static bool all_digits(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++)
		if (b.ptr[i] < '0' || b.ptr[i] > '9')
			return false;
	return b.len > 0;
}

/* The left-most label is <port>-<id>, or <port>-<id>-<anything>. False: it does not look like one.
 */
static bool split_label(struct bytes label, struct bytes *ret_port, struct bytes *ret_id)
{
	if (!bytes_cut(&label, '-', ret_port) || !all_digits(*ret_port))
		return false;
	if (!bytes_cut(&label, '-', ret_id))
		*ret_id = label;
	return true;
}

/* Names of hosts have no case, identifiers have. */
static void by_label(struct bytes port, struct bytes id, struct dispatch *ret)
{
	uint8_t small[NODE_ID_MAX];

	if (id.len > sizeof(small)) {
		bad(ret, invalid_id);
		return;
	}
	for (size_t i = 0; i < id.len; i++)
		small[i] = byte_lower(id.ptr[i]);
	name_sandbox(ret, (struct bytes){ small, id.len }, port);
}

/* A name without its port, and the setting, which may have one: the port that a client used is
 * not always ours, with a proxy or a socket unit in between. */
static bool is_domain(struct bytes host, const char *domain)
{
	struct bytes rest = bytes_str(domain), name = rest;

	(void)bytes_cut(&rest, ':', &name);
	if (host.len > 0 && host.ptr[host.len - 1] == '.')
		host.len--;
	return bytes_eq_nocase(host, name);
}

/* False: the host names no sandbox, nor tries to. */
static bool by_host(const struct http1_head *head, const char *domain, struct dispatch *ret)
{
	struct bytes value = { 0 }, host, label, port_text, id;
	uint16_t port;

	if (http1_find(head, "host", &value) != 1 || !http1_split_host(value, &host, &port) ||
	    is_domain(host, domain))
		return false;
	if (!bytes_cut(&host, '.', &label)) {
		if (!split_label(host, &port_text, &id))
			return false;
		bad(ret, invalid_host);
		return true;
	}
	if (!split_label(label, &port_text, &id))
		return false;
	by_label(port_text, id, ret);
	ret->named = ret->plane == PLANE_SANDBOX;
	return true;
}

static bool is_signed(const struct http1_head *head)
{
	struct bytes name, value;
	struct target t;
	struct err err;

	if (target_split(head->target, &t, &err) < 0 || !bytes_eq(t.path, BYTES_LIT("/files")))
		return false;
	while (target_next_param(&t.query, &name, &value))
		if (bytes_eq(name, BYTES_LIT("signature")))
			return true;
	return false;
}

/* Who calls an address has no names: E2B_SANDBOX_URL, on this host or on the way to a proxy. */
static bool by_address(const struct http1_head *head)
{
	struct bytes value = { 0 }, host;
	uint16_t port;
	uint32_t ip;

	return http1_find(head, "host", &value) == 1 && http1_split_host(value, &host, &port) &&
	       host.len > 0 && (host.ptr[0] == '[' || ip4_parse(host, &ip));
}

void dispatch_find(const struct http1_head *head, const char *domain, struct dispatch *ret)
{
	struct bytes id = { 0 }, port = { 0 };
	size_t n_id = http1_find(head, "e2b-sandbox-id", &id);
	size_t n_port = http1_find(head, "e2b-sandbox-port", &port);
	bool host = by_host(head, domain, ret);

	if (host && ret->plane == PLANE_SANDBOX)
		return;
	if (n_id > 0 || n_port > 0)
		by_headers(id, n_id, port, n_port, ret);
	else if (!host && !is_signed(head))
		*ret = (struct dispatch){ .plane = PLANE_API };
	else if (!host && (domain[0] == '\0' || by_address(head)))
		*ret = (struct dispatch){ .plane = PLANE_SIGNED };
	else if (!host) /* where names lead to sandboxes, a URL has one */
		bad(ret, invalid_host);
}
