/* fetch_error.h - what skopeo said when it failed, in words for who waits for the image. Pure.
 *
 * What it prints goes to the daemon's log: it names addresses of the operator's that are nobody
 * else's business. A client reads one of the sentences made here.
 */
#pragma once

#include "base/bytes.h"

/* `said`: the end of its standard error. `host`: the registry that was spoken to. Returns -1. */
int fetch_error(struct bytes said, const char *image, const char *host, struct err *err);
