/* arrivals.h - clients that come over TLS: the doors they knock at, their handshakes, and where
 * they go when those are over.
 *
 * A client is an arrival until its handshake is over; then it is one of the HTTP server's. Arrivals
 * are limited: ARRIVALS_MAX in all, but one of ARRIVALS_SHARE connections at most, so that a small
 * gateway is not filled by them; the oldest gives way to the next one. ARRIVALS_ADDRESS_MAX of one
 * address, which has one turn in a round (tls_service.h). On this host, and of a listed proxy, it
 * has no such limit: they bring the clients of many.
 */
#pragma once

#include "gateway/arrivals/certificates.h"
#include "gateway/gateway.h"
#include "gateway/proxies.h"
#include "gateway/relay/crowd.h"
#include "net/address_counts.h"
#include "net/listen.h"

enum {
	ARRIVALS_MAX = 2048,
	ARRIVALS_SHARE = 4, /* of connections_max */
	ARRIVALS_ADDRESS_MAX = 256,
	ARRIVALS_DOORS_MAX = 8,
	ARRIVALS_SAY_MS = 60 * 1000, /* how often it is logged that nobody can be served */
};

struct arrivals_terms {     /* borrowed for as long as it is open */
	const char *listen; /* addresses, with commas or spaces between them */
	int given; /* a socket that listens, which is taken; -1: none. With neither there is no TLS
		    */
	struct proxies *proxies;
	const char *tls_dir, *signer_socket;
	const char *domain;
	uint64_t ticket_ms;
	size_t connections_max, address_connections_max;
};

struct arrivals_door {
	struct listener listener;
	struct gateway *g; /* whose arrivals these are */
};

struct arrivals { /* all zero: there is no TLS */
	struct gateway *g;
	struct http_server *http;
	struct crowd *crowd;
	struct certificates certificates;
	struct signer_link signer;
	struct tls_service *service;
	struct arrivals_door doors[ARRIVALS_DOORS_MAX];
	size_t n_doors;
	struct timer opening; /* they are closed until then */
	struct {
		struct arrival *first, **last;
	} shaking; /* the oldest first */
	size_t n_shaking, shaking_max;
	struct address_counts addresses;
	uint64_t n_open, n_failed, n_refused;
	uint64_t said_ms;
	const struct arrivals_terms *terms;
};

/* Opens what a confined process cannot: sockets and the folder. Nobody is let in yet. */
int arrivals_open(struct arrivals *a, struct gateway *g, struct http_server *http,
		  struct crowd *crowd, const struct arrivals_terms *terms,
		  struct err *err) NODISCARD;
/* After it is confined: looks at certificates, asks the signer, and lets clients in when that has
 * answered, or after SIGNER_WAIT_MS: who comes with the first gateway waits outside. */
void arrivals_begin(struct arrivals *a);
void arrivals_close(struct arrivals *a); /* fine when it is all zero */

bool arrivals_on(const struct arrivals *a);
size_t arrivals_doors(const struct arrivals *a);
struct listener *arrivals_door(struct arrivals *a, size_t i);
uint16_t arrivals_port(const struct arrivals *a); /* of the first door */
json_t *arrivals_json(const struct arrivals *a);  /* for the status */
