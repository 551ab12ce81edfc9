/* view.h - all that jobs and their children see of the host's files: programs and libraries, what
 * names and certificates need, and the store. Everything has the path that it has on the host.
 */
#pragma once

#include "images/places.h"

/* In a mount namespace of its own, as root: this is all there is from now on. What is written there
 * is the store, and auth/, which is in memory. */
int view_enter_images(const struct config_value *set, const struct places *p,
		      struct err *err) NODISCARD;
