/* rule.h - what a worker adds to requests for which hosts. */
#pragma once

#include "injector/rules.h"
#include "wire/domain.h"
#include "wire/http1_head.h"

struct rule {
	char host[DOMAIN_SIZE]; /* a pattern */
	bool secret;            /* never over a connection that others can read */
	char refuse[RULES_WHY_MAX];
	struct http1_field fields[RULES_FIELDS_MAX]; /* borrowed from the JSON */
	size_t n_fields;
};

struct rules {
	struct rule *all; /* owned */
	size_t n;
};

/* `array` as rules_fill() makes it, to be kept as long as the rules; it may be empty. */
int rules_read(const json_t *array, struct rules *ret, struct err *err) NODISCARD;
void rules_done(struct rules *r);

const struct rule *rules_find(const struct rules *r,
			      const char *name); /* the closest; NULL: none */
