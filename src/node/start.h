/* start.h - between the parts that start a sandbox and give it to somebody. */
#pragma once

#include "node/sandbox.h"

/* claim.c: it has taken its identity. */
void sandbox_named(struct sandbox *s);
