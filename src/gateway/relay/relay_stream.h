/* relay_stream.h - what flows between a client and a guest. */
#pragma once

#include "http/server.h"

struct relay;

/* Send the request over r->client and let both bodies flow. */
int relay_ask(struct relay *r, struct err *err) NODISCARD;
extern const struct http_handler_ops relay_handler_ops;
