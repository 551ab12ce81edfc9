/* base_packages.h - where sandboxes may fetch packages: what their template says. */
#pragma once

#include "vm/manifest.h"
#include "wire/json.h"

struct node;

void base_packages_open(struct node *n);
void base_packages_learn(struct node *n, const struct manifest *m);
/* The hosts that its package managers use, an array of names and addresses for the rules of a
 * network. NULL: out of memory. They may be others when it is ready again. */
json_t *base_packages(const struct node *n);
