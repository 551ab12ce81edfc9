/* ingress.h - what the owner of a sandbox said about its ports, in `network` of a create. Pure.
 *
 * The same text is read twice: when it comes from a client, and when node gives back what it kept.
 */
#pragma once

#include "wire/guarded_ports.h"
#include "wire/json.h"

enum {
	INGRESS_HOST_MAX = 255,
	INGRESS_PORTS_MAX = 64,
};

struct ingress {
	bool private;                         /* a token is wanted, at all ports but the agent's */
	char mask_host[INGRESS_HOST_MAX + 1]; /* the Host that services see; empty: what came */
	uint16_t https[INGRESS_PORTS_MAX];    /* ports that speak TLS */
	size_t n_https;
	struct guarded_ports guarded; /* of its template: they want the token in any case */
};

/* `network` may be NULL. ERR_INVALID with the words that E2B's clients know. */
int ingress_read(const json_t *network, struct ingress *ret, struct err *err) NODISCARD;

/* From all that node remembers of a sandbox. */
int ingress_recall(struct bytes text, struct ingress *ret, struct err *err) NODISCARD;

bool ingress_is_https(const struct ingress *in, uint16_t port);

/* Every ${PORT} of the mask replaced: never longer than the mask. */
struct bytes ingress_host(const struct ingress *in, uint16_t port,
			  char ret[static INGRESS_HOST_MAX + 1]);
