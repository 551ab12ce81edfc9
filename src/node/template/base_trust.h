/* base_trust.h - whom the guests of the template `base` are made to trust: the injector's
 * authority, and the operator's own. */
#pragma once

#include "base/bytes.h"

struct node;

struct base_trust {   /* PEM, checked */
	bool awaited; /* set before base_open(): there is an injector, and it has an authority */
	struct buf own, extra; /* the installation's authority, the operator's others */
	struct buf all;        /* both, while a template is named or built */
	struct err why;        /* what is wrong with the operator's files */
};

void base_trust_open(struct node *n);
void base_trust_close(struct node *n);
/* The injector has told its authority, PEM. Another one than before makes another template. */
void base_trust_learn(struct node *n, struct bytes pem);
bool base_trust_ready(const struct node *n); /* false: nothing is built before the injector is up */
int base_trust_text(struct node *n, struct bytes *ret, struct err *err) NODISCARD;
