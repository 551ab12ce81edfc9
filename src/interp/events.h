/* events.h - what a kernel publishes, as the lines that clients of the interpreter read.
 *
 * One JSON object in a line, in ASCII: clients cut what they receive anywhere.
 */
#pragma once

#include "interp/kernel_message.h"

enum { EVENT_LINE_MAX = 512 * 1024 * 1024 }; /* a frame, escaped */

/* Append the line of a message: execute_input, stream, display_data, execute_result, error.
 * *ret_error: it was an error, or could not be read, which is told as one. What clients are not
 * told of adds nothing. `apart`: the newline at the end of an output is an event of its own, as
 * clients of Java know it. */
int event_of_message(const struct kernel_message *m, bool apart, struct buf *out, bool *ret_error,
		     struct err *err) NODISCARD;

/* `why` is where a traceback would be. */
int event_error(const char *name, const char *value, const char *why, struct buf *out,
		struct err *err) NODISCARD;
/* Of the reply to a request that failed; one without a name gets that of its status. */
int event_of_reply(const json_t *content, struct buf *out, struct err *err) NODISCARD;

#define EVENT_KEEPALIVE BYTES_LIT("{\"type\":\"keepalive\"}\n")
#define EVENT_END       BYTES_LIT("{\"type\":\"end_of_execution\"}\n")
