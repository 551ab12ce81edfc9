/* network_request.h - the network a client asks for, at a create or for one that runs. Pure.
 *
 * Checked here as E2B does, with its words. What comes out has one spelling of every member, names
 * in lower case, and nothing that is not known.
 */
#pragma once

#include "wire/json.h"

enum {
	NETWORK_LIST_MAX = 999,  /* entries; egress holds 1000, and one may be its own */
	NETWORK_SHOWN_MAX = 128, /* bytes of what was given, in a message */
};

/* allowOut, denyOut and rules of `network` to *ret, owned by the caller. ERR_DENIED: an
 * egressProxy; `where` is what the message calls it. */
int network_request_take(const json_t *network, const char *where, json_t **ret,
			 struct err *err) NODISCARD;

/* allowInternetAccess of `body` to `to`, if it is given. */
int network_request_internet(const json_t *body, json_t *to, struct err *err) NODISCARD;

/* The body of PUT /sandboxes/{id}/network: {"allowInternetAccess":, "network":{}} to *ret. What is
 * absent is no more. */
int network_request_update(const json_t *body, json_t **ret, struct err *err) NODISCARD;
