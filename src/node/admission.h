/* admission.h - which creates are let in, and how many sandboxes there are on their way. */
#pragma once

#include "node/creates.h"

/* Sandboxes that are somebody's and have a VM, or are promised to somebody. */
size_t admission_owned(const struct node *n);
size_t admission_starting(const struct node *n); /* begun for nobody in particular */
size_t admission_busy(const struct node *n);     /* what keeps this host's processors busy */

/* Fill in a new create. What it holds is freed with it, also after a failure. */
int admission_create(struct create *c, const struct node_request *rq, struct bytes text,
		     struct err *err) NODISCARD;
int admission_copy(struct create *c, const struct create_copy *of, struct err *err) NODISCARD;
