/* shed.h - for a server with more clients than connections. */
#pragma once

#include "http/server.h"

/* Resets the connection that has waited for its client the longest, if for `ms`: for the next
 * request, for the rest of one that does not rest, or to take an answer. Its handler gets on_gone
 * from inside this call. False: none has. */
bool http_server_shed(struct http_server *sv, uint64_t ms);

/* Answers without having been asked, and closes: to somebody who is not served. Takes the stream.
 */
void http_refuse(struct stream *s, unsigned int status, const char *message);
