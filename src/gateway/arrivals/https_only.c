/* https_only.c - see https_only.h. */
#include "gateway/arrivals/https_only.h"

#include <stdio.h>

#include "wire/http1_host.h"

enum { HTTPS_PORT = 443, URL_MAX = 8 * 1024 };

/* What clients are told as the domain may have a port: that of a socket unit, say. */
static uint16_t port_of(const struct arrivals *a)
{
	struct bytes domain = bytes_str(a->terms->domain), host;
	uint16_t port;

	if (domain.len > 0 && http1_split_host(domain, &host, &port))
		return port ? port : HTTPS_PORT;
	return arrivals_port(a);
}

static int make_url(const struct arrivals *a, const struct http1_head *h, struct buf *ret,
		    struct err *err)
{
	struct bytes value = { 0 }, host;
	uint16_t port = port_of(a), unused;

	if (http1_find(h, "host", &value) != 1 || !http1_split_host(value, &host, &unused) ||
	    h->target.len == 0 || h->target.ptr[0] != '/')
		return err_set(err, ERR_INVALID, 0, "no host");
	if (buf_printf(ret, err, "https://%.*s", (int)host.len, (const char *)host.ptr) < 0 ||
	    (port != HTTPS_PORT && buf_printf(ret, err, ":%u", port) < 0))
		return -1;
	return buf_add(ret, h->target, err);
}

static void redirect(const struct arrivals *a, struct http_request *rq)
{
	AUTO(buf_done) struct buf url = BUF_MAX(URL_MAX);
	struct http1_field to = { .name = BYTES_LIT("location") };
	struct http_response r = { .status = 308, .fields = &to, .n_fields = 1 };
	struct err err;

	if (make_url(a, http_request_head(rq), &url, &err) < 0) {
		http_fail(rq, 400, "https is spoken here");
		return;
	}
	to.value = buf_view(&url);
	http_answer(rq, &r, (struct bytes){ 0 });
}

bool https_only(const struct arrivals *a, struct http_request *rq)
{
	const struct http1_head *h = http_request_head(rq);
	const struct addr *peer = http_request_peer(rq);

	if (!arrivals_on(a) || http_request_secure(rq) || http_request_proxied(rq) || !peer ||
	    addr_is_local(peer))
		return false; /* what a proxy does with plain HTTP is the proxy's affair */
	if (bytes_eq(h->method, BYTES_LIT("GET")) || bytes_eq(h->method, BYTES_LIT("HEAD")))
		redirect(a, rq);
	else
		http_fail(rq, 403,
			  "plain HTTP is for this host alone: use https. What was sent, a key "
			  "among it, could be read on its way: replace it");
	return true;
}
