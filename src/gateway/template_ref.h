/* template_ref.h - how clients name a template: [namespace/]alias[:tag]. Pure. */
#pragma once

#include "base/bytes.h"
#include "node/protocol.h"

struct template_ref {
	char name[NODE_ID_MAX + 1]; /* an id or an alias, in lower case */
	char tag[NODE_ID_MAX + 1];  /* empty: none given */
	bool has_namespace;
};

/* ERR_INVALID when it breaks the grammar. */
int template_ref_parse(struct bytes in, struct template_ref *ret, struct err *err) NODISCARD;

/* Templates have one build and no namespaces yet: ERR_NOT_FOUND for any other tag or namespace. */
int template_ref_check(const struct template_ref *t, struct err *err) NODISCARD;
