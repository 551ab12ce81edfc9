/* why.h - `hotcell-why HOST[:PORT]`: may this sandbox reach that, and if not, who would have to
 * change what? For anybody inside; who answers is the resolver (egress/why.h).
 */
#pragma once

#include <stdbool.h>

#define WHY_PROGRAM "hotcell-why" /* a link to the agent, in every image (unpack/furnish.c) */

enum { WHY_ALLOWED = 0, WHY_REFUSED = 1, WHY_NOT_TOLD = 2 }; /* how it exits */

bool why_is_meant(const char *argv0);
int why_main(int argc, char **argv);
