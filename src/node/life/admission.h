/* admission.h - which creates and resumes are let in, and how many sandboxes there are on their
 * way. */
#pragma once

#include "node/life/creates.h"

/* Sandboxes that are somebody's and have a VM, or are promised to somebody. */
size_t admission_owned(const struct node *n);
size_t admission_starting(const struct node *n); /* begun for nobody in particular */
size_t admission_busy(const struct node *n);     /* what keeps this host's processors busy */

/* Guest memory of all that have a VM, or are promised one: so much, and at most so much. */
uint64_t admission_promised_mib(const struct node *n);
uint64_t admission_promise_max_mib(const struct node *n);

/* Is there memory for one more that is nobody's? */
bool admission_pool(const struct node *n, const struct pool *pool);
/* May it be resumed now? *ret_mib is what it takes at first: `memory`, with what was saved. */
int admission_resume(const struct sandbox *s, bool memory, uint64_t *ret_mib,
		     struct err *err) NODISCARD;

/* Fill in a new create. What it holds is freed with it, also after a failure. */
int admission_create(struct create *c, const struct node_request *rq, struct bytes text,
		     struct err *err) NODISCARD;
int admission_copy(struct create *c, const struct create_copy *of, struct err *err) NODISCARD;
/* One that waits: of `p` from now on. */
void admission_change(struct create *c, struct snapshot *p);
struct builder_spec;
/* No limit of its team counts, the host's do. */
int admission_build(struct create *c, const struct builder_spec *spec, struct err *err) NODISCARD;
