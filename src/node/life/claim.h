/* claim.h - a machine that waits becomes somebody's sandbox. */
#pragma once

#include "node/life/sandbox.h"

/* A WAITING one. */
void sandbox_claim(struct sandbox *s, struct create *c);
void sandbox_named(struct sandbox *s); /* it has taken its identity */
