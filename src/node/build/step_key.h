/* step_key.h - by which name the result of a step is found again.
 *
 * A step's result depends on its team, on what it began with, on its instruction and on the files
 * it copies: the key is a hash of all of them. The key of what a build begins with names an image
 * by its digest, or a snapshot. Pure.
 */
#pragma once

#include "node/build/recipe.h"

enum { STEP_KEY_LENGTH = 40 }; /* hexadecimal: 160 bits */

void step_key_first(const char *team, const char *ground_or_snapshot,
		    char ret[static STEP_KEY_LENGTH + 1]);
/* In place: from the key of what the step begins with to the key of its result. */
void step_key_next(const struct recipe_step *s, char key[static STEP_KEY_LENGTH + 1]);
