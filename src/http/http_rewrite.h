/* http_rewrite.h - the head of a request with fields of ours in the place of its own. Pure. */
#pragma once

#include "wire/http1_head.h"

struct http_rewrite {
	const struct http1_field *add; /* borrowed; written in this order, behind the others */
	size_t n_add;
	bool no_upgrade; /* what asks for another protocol is left out */
};

/* Are these two the same field to a server? Many cannot tell '_' from '-', some no mark from
 * another. */
bool http_rewrite_same(struct bytes a, struct bytes b);

/* May a rule set this field? Not those that say where a message ends, or whom it is for. */
bool http_rewrite_may_set(struct bytes name);

/* Appends to `out`: the first line of `head` as it is, its fields without those that are added,
 * and those; of Connection what is meant for the next hop, and no names of fields. `h` is what
 * http1_parse_request() made of it. */
int http_rewrite_head(const struct http_rewrite *r, struct bytes head, const struct http1_head *h,
		      struct buf *out, struct err *err) NODISCARD;
