/* h1_response.h - what leaves an HTTP/1.1 connection of a server. */
#pragma once

#include "http/request_ops.h"

extern const struct http_request_ops h1_request_ops;
