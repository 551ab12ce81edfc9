/* client.h - requests to the gateway as any client makes them: with a key, over HTTPS, under the
 * names that E2B_DOMAIN gives.
 *
 *	E2B_API_URL, else https://api.DOMAIN              the API
 *	E2B_SANDBOX_URL, else https://PORT-ID.DOMAIN      a port of a sandbox
 */
#pragma once

#include "cli/cli.h"
#include "http/call.h"
#include "net/dial.h"

enum {
	CLIENT_HOST_MAX = 253,
	CLIENT_ADDRESSES_MAX = 8, /* of one name, each is tried */
	CLIENT_CONNECT_MS = 10 * 1000,
	CLIENT_FIELDS_MAX = 8,
};

struct client_place { /* where a server is */
	bool tls;
	uint16_t port;
	char host[CLIENT_HOST_MAX + 1];      /* a name or an address, without [] */
	char field[CLIENT_HOST_MAX + 1 + 8]; /* of a request: with the port, unless it is usual */
};

/* "http://127.0.0.1:3000", "https://[::1]/"; no path, no user. */
int client_place_url(const char *url, struct client_place *ret, struct err *err) NODISCARD;
/* "LABEL.DOMAIN", over HTTPS; a domain may have a port. */
int client_place_name(const char *label, const char *domain, struct client_place *ret,
		      struct err *err) NODISCARD;

struct tls_context;
struct client {
	struct loop *loop;
	struct tls_context *tls; /* made when it is first needed */
	const char *trust;       /* a file of certificates; NULL: the system's */
};
int client_open(struct client *c, const char *trust, struct err *err) NODISCARD;
void client_close(struct client *c);

/* --- one request ---------------------------------------------------------------------------- */

struct client_ask { /* what it points to is borrowed until on_done */
	const struct client_place *to;
	const char *method, *target;
	struct http1_field fields[CLIENT_FIELDS_MAX];
	size_t n_fields;
	struct bytes body;
	int file; /* in place of `body` where file_bytes is not 0: what it has from its */
	uint64_t file_bytes; /* beginning on; the same */
	uint64_t reply_ms;   /* to the head of the answer; 0: the caller looks at the clock */
};

struct client_exchange;
struct client_exchange_ops {
	/* `status` is set. May be NULL. */
	void (*on_body)(struct client_exchange *x, struct bytes piece);
	/* Once; err is NULL when a whole answer came, whatever its status. */
	void (*on_done)(struct client_exchange *x, const struct err *err);
};
struct client_exchange { /* embedded by the caller */
	const struct client_exchange_ops *ops;
	unsigned int status; /* 0: no answer yet */
	/* inside: */
	struct client *client;
	struct client_ask ask;
	struct addr at[CLIENT_ADDRESSES_MAX];
	size_t n, tried;
	struct dial dial;
	struct http_client *http;
	struct http_exchange *exchange;
	struct http_reply reply;
	size_t sent;
};

/* Looks up the name, which blocks, and begins. On failure no callback comes. */
int client_start(struct client_exchange *x, struct client *c, const struct client_ask *ask,
		 struct err *err) NODISCARD;
/* No callback comes; the other side sees that nobody listens. Fine when it is over. */
void client_cancel(struct client_exchange *x);
