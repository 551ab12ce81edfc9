/* http1_field.h - questions about the fields of a parsed head. */
#pragma once

#include "wire/http1_head.h"

/* How often the field occurs; *ret is the first value when it does. Names ignore case. A field
 * that must be unambiguous (a credential) is one for which this answers 1. */
size_t http1_find(const struct http1_head *h, const char *name, struct bytes *ret);

/* Is `token` an element of the comma-separated field `name`, over all its lines? Ignores case. */
bool http1_list_has(const struct http1_head *h, const char *name, const char *token);

/* May the connection carry another message after this one? Ask the request and its response:
 * both must agree. */
bool http1_keep_alive(const struct http1_head *h);

/* The client waits for `100 Continue` before it sends the body. */
bool http1_expects_continue(const struct http1_head *h);

/* The protocol asked for, or agreed to, by Upgrade together with Connection: upgrade.
 * Empty when there is none. */
struct bytes http1_upgrade(const struct http1_head *h);

/* What Connection names, cut once for all the fields that are looked for in it. */
struct http1_hops {
	struct bytes at[HTTP1_LIST_MAX];
	size_t n;
};
void http1_hops_cut(const struct http1_head *h, struct http1_hops *ret);

/* Does the field speak of this connection only? A relay must not pass it on: the fixed ones
 * (Connection, Transfer-Encoding, Upgrade ...) and those that Connection names. */
bool http1_is_hop_field(const struct http1_hops *hops, struct bytes name);
