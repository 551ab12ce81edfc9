/* template_ref.h - how clients name a template: [namespace/]alias[:tag]. Pure. */
#pragma once

#include "base/bytes.h"
#include "node/protocol.h"

struct template_ref {
	char name[NODE_ID_MAX + 1];      /* an id or an alias, in lower case */
	char tag[NODE_ID_MAX + 1];       /* empty: none given */
	char namespace[NODE_ID_MAX + 1]; /* a team's slug; empty: the caller's own */
	bool has_namespace;
};

/* ERR_INVALID when it breaks the grammar. */
int template_ref_parse(struct bytes in, struct template_ref *ret, struct err *err) NODISCARD;

/* A team sees its own only: ERR_NOT_FOUND for any other namespace. */
int template_ref_check(const struct template_ref *t, const char *slug, struct err *err) NODISCARD;
