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

/* What node is asked for: the name, or namespace/name when that is another team's. ERR_NOT_FOUND:
 * nobody has a name that long. */
int template_ref_name(const struct template_ref *t, const char *slug,
		      char ret[static NODE_ID_MAX + 1], struct err *err) NODISCARD;

/* A tag by itself, in lower case. False: it breaks the grammar, or is a UUID, which names a build.
 */
bool template_tag_parse(struct bytes in, char ret[static NODE_ID_MAX + 1]);

/* A team sees its own only: ERR_NOT_FOUND for any other namespace. */
int template_ref_check(const struct template_ref *t, const char *slug, struct err *err) NODISCARD;
