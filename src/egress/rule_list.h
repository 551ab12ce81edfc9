/* rule_list.h - names and ranges of addresses, in the order in which somebody wrote them. */
#pragma once

#include "wire/domain.h"
#include "wire/ip.h"

enum { RULES_MAX = 1000 };

struct rule {
	char *text; /* as it is compared and told: example.com, *.example.com, 10.0.0.0/8 */
	size_t len; /* of it */
	bool is_range;
	struct cidr range;
};

struct rule_list {
	struct rule *all; /* owned */
	size_t n;
};

/* A range when it reads as one, else a pattern of names. */
int rule_list_add(struct rule_list *l, struct bytes entry, struct err *err) NODISCARD;
void rule_list_done(struct rule_list *l);

const struct rule *rule_list_name(const struct rule_list *l, const char *name); /* the closest */
const struct rule *rule_list_ip(const struct rule_list *l, uint32_t ip); /* the first; NULL: none */
bool rule_list_has_all(const struct rule_list *l); /* is 0.0.0.0/0 among them? */
