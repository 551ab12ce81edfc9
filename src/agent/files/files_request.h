/* files_request.h - what a request to /files is about: whose path, and which; and whether it may.
 */
#pragma once

#include "agent/agent.h"
#include "agent/user_path.h"

struct files_request {
	struct account who;
	char path[USER_PATH_MAX]; /* absolute */
	bool has_path;            /* given by the client, not the default */
};

/* From the query's `path` and `username`. Allowed by the token, or by a signature in the query for
 * this operation ("read", "write"). False: answered with an error. */
bool files_request_read(struct agent *a, struct http_request *rq, const char *operation,
			struct files_request *ret);
