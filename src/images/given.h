/* given.h - who gave a blob: a registry, or one repository of it.
 *
 *	data_dir/store/given/HEX   of the blob of that name: a hash of each who gave it
 *
 * The store has a blob once, whoever gave it. But a digest is no secret and no permission: for an
 * image of one registry nothing is used that only others gave. What cannot be noted is fetched
 * again.
 */
#pragma once

#include <stdbool.h>

enum { GIVEN_MAX = 256 }; /* of one blob; then all of them are forgotten */

/* `giver`: any text; "" is nobody, and gave nothing. */
bool given_by(int dir, const char *hex, const char *giver);
void given_note(int dir, const char *hex, const char *giver);
