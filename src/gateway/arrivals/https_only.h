/* https_only.h - where TLS is on, plain HTTP is for this host alone: whoever comes from elsewhere
 * is shown the way.
 *
 * GET and HEAD, as a browser sends them, are redirected. Anything else is refused with 403: it has
 * sent its key in clear already, and a redirect would hide that from whoever wrote the client.
 */
#pragma once

#include "gateway/arrivals/arrivals.h"

/* True: it was answered. */
bool https_only(const struct arrivals *a, struct http_request *rq);
