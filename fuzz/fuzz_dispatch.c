/* fuzz_dispatch.c - promises of the dispatch: who is named is named well, and by somebody.
 *
 * The input is the head of a request; its first byte says whether a domain is configured.
 */
#include "fuzz/must.h"
#include "gateway/dispatch.h"
#include "wire/http1_field.h"

static bool says(const struct http1_head *h, const char *name, const char *value)
{
	struct bytes got;

	return http1_find(h, name, &got) == 1 && bytes_eq(got, bytes_str(value));
}

/* The host begins with <port>-<id>, in any case of letters. */
static bool is_by_host(const struct http1_head *h, const struct dispatch *d)
{
	struct bytes host, port, id;
	uint64_t n;

	if (http1_find(h, "host", &host) != 1 || !bytes_cut(&host, '-', &port) ||
	    !bytes_to_u64(port, &n) || n != d->port)
		return false;
	id = bytes_head(host, strlen(d->id));
	host = bytes_tail(host, id.len);
	return bytes_eq_nocase(id, bytes_str(d->id)) && host.len > 0 &&
	       (host.ptr[0] == '.' || host.ptr[0] == '-') && memchr(host.ptr, '.', host.len);
}

static bool is_by_headers(const struct http1_head *h, const struct dispatch *d)
{
	struct bytes port;
	uint64_t n;

	return says(h, "e2b-sandbox-id", d->id) && http1_find(h, "e2b-sandbox-port", &port) == 1 &&
	       bytes_to_u64(port, &n) && n == d->port;
}

static void check_sandbox(const struct http1_head *h, const struct dispatch *d)
{
	size_t len = strnlen(d->id, sizeof(d->id));

	MUST(len > 0 && len <= NODE_ID_MAX && d->port > 0);
	MUST(strspn(d->id, "abcdefghijklmnopqrstuvwxyz0123456789") == len);
	MUST(is_by_host(h, d) || is_by_headers(h, d));
}

/* The host is an address, and a port: IPv4, or IPv6 in brackets. */
static bool is_by_address(const struct http1_head *h)
{
	struct bytes host = { 0 };

	if (http1_find(h, "host", &host) != 1 || host.len == 0)
		return false;
	for (size_t i = 0; i < host.len && host.ptr[0] != '['; i++)
		if (!memchr("0123456789.:", host.ptr[i], 12))
			return false;
	return true;
}

static void check_bad(const struct dispatch *d)
{
	static const char *const messages[] = {
		"missing header",
		"Invalid sandbox ID",
		"Invalid sandbox port",
		"Invalid host",
	};
	bool known = false;

	for (size_t i = 0; i < COUNT(messages); i++)
		known = known || strcmp(d->message, messages[i]) == 0;
	MUST(known);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_tail((struct bytes){ data, size }, 1), value;
	struct err err = { 0 };
	struct http1_head h;
	struct dispatch d, again;
	size_t scanned = 0, used = 0;

	if (http1_head_end(in, &scanned, &used, &err) != DECODE_OK ||
	    http1_parse_request(bytes_head(in, used), &h, &err) < 0)
		return 0;
	memset(&d, 0x5a, sizeof(d));
	dispatch_find(&h, data[0] & 1 ? "box.test" : "", &d);
	dispatch_find(&h, data[0] & 1 ? "box.test" : "", &again);
	MUST(d.plane == again.plane && d.port == again.port);
	MUST(d.plane != PLANE_SIGNED || !(data[0] & 1) || is_by_address(&h));
	if (d.plane == PLANE_SANDBOX)
		check_sandbox(&h, &d);
	else if (d.plane == PLANE_BAD)
		check_bad(&d);
	else
		MUST(http1_find(&h, "e2b-sandbox-id", &value) == 0 &&
		     http1_find(&h, "e2b-sandbox-port", &value) == 0);
	return 0;
}
