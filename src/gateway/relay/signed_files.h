/* signed_files.h - signed URLs of files: node is asked which sandbox signed. */
#pragma once

#include "gateway/dispatch.h"

struct gateway;
struct http_request;

/* No sandbox is named. Takes or answers the request. */
void signed_request(struct gateway *g, struct http_request *rq);

/* One is named that is paused, and only a token resumes it. False: nothing is signed, and the
 * request is still the caller's. */
bool signed_wake(struct gateway *g, struct http_request *rq, const struct dispatch *to);
