/* network_text.h - the rules of a network, from what a gateway said about a sandbox. Pure.
 */
#pragma once

#include "wire/json.h"

enum {
	NETWORK_RULES_MAX = 256 * 1024, /* as egress takes them */
	NETWORK_KNOWN_MAX = 64,         /* pairs of a name and an address that are kept */
};

/* What the rules are made of, all borrowed; each but `text` may be NULL. */
struct network_from {
	const char *text;  /* of a create, see protocol.h; NULL: it said nothing */
	json_t *packages;  /* an array: the hosts of its template */
	const char *known; /* an array as text: see EGRESS_KNOWN */
};

/* For EGRESS_RULE, appended: {"packages":, "services":, "allowInternetAccess":, "refusalPages":,
 * "network":{}, "known":}. Of network.rules the hosts alone: what is in them is for nobody but the
 * injector. */
int network_text_rules(const struct network_from *from, struct buf *out, struct err *err) NODISCARD;

/* For INJECTOR_START, appended: {"rules":{}, "sealed":{}, "refusalPages":}. Nothing: it has no
 * rules of headers, nor, if `pages` count, does it show what is refused. */
int network_text_opened(const char *text, bool pages, struct buf *out, struct err *err) NODISCARD;

/* `text` with another network, of NODE_NETWORK, NUL-terminated, owned by the caller. What is said
 * of traffic outwards is cleared where `put` does not say it; what the network is told for other
 * purposes stays unless `put` says otherwise, and so do the services. */
int network_text_put(const char *text, struct bytes put, size_t max, char **ret,
		     struct err *err) NODISCARD;

/* `text` with another value of a secret that its rules name, or without it (`sealed` NULL); owned
 * by the caller. NULL: it names none of that name, or has that value already. */
int network_text_secret(const char *text, const char *name, json_t *sealed, char **ret,
			struct err *err) NODISCARD;

/* Secrets that its rules name and that have no value yet, "a, b", cut to `size`; "": none. */
void network_text_missing(const char *text, char *ret, size_t size);

/* The newest NETWORK_KNOWN_MAX of what egress said, which has the oldest first; as text, owned by
 * the caller. NULL: there are none. ERR_INVALID: that is not what egress says. */
int network_text_known(struct bytes said, char **ret, struct err *err) NODISCARD;
