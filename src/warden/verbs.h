/* verbs.h - what a request means. */
#pragma once

#include "warden/warden.h"

void verbs_handle(struct warden *w, struct call *c);
