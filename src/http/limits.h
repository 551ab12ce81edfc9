/* limits.h - how long and how much a conversation may take. Times in milliseconds, 0 for never. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HTTP_HEAD_MS = 15 * 1000,        /* a head, from its first byte to its last */
	HTTP_IDLE_MS = 5 * 60 * 1000,    /* between requests; clients pool for as long as this */
	HTTP_LAST_MS = 10 * 1000,        /* the same while the server drains */
	HTTP_BODY_STALL_MS = 60 * 1000,  /* a body wanted, and not one byte of it came */
	HTTP_WRITE_STALL_MS = 60 * 1000, /* bytes to send, and not one was taken */
	HTTP_REPLY_MS = 120 * 1000,      /* client: from the whole request to the reply's head */
	HTTP_DRAIN_MAX = 256 * 1024,     /* bytes of a body nobody reads, to keep the connection */
	HTTP_INTERIM_MAX = 8,            /* 1xx replies before the final one */
	HTTP_INPUT_MAX = 80 * 1024,      /* received and not yet given on, per connection */
	HTTP_WHOLE_MAX = 192 * 1024,     /* a body given in one piece; what is larger is streamed */
	/* What one connection may take of one turn of the loop; then the others have theirs. */
	HTTP_TURN_BYTES = 48 * 1024,
	HTTP_TURN_CHUNKS = 256,    /* of a body, and other pieces of one */
	HTTP_TURN_REQUESTS = 2,    /* that came one behind the other */
	HTTP_FIELDS_OUT_MAX = 108, /* fields of a handler or a caller: those that came, and a few */
};

enum { HTTP_CHUNKED = -1 }; /* the length of a body that is not known yet */

struct http_limits {
	uint64_t head_ms, idle_ms, body_stall_ms, write_stall_ms, reply_ms;
	uint64_t drain_max;
	bool half_close;  /* server: a client that finished writing still waits for its answer.
			   * Off, that is taken for a client gone, as it nearly always is. */
	uint64_t last_ms; /* server: instead of idle_ms while it drains */
};

#define HTTP_LIMITS                                                                       \
	((struct http_limits){ HTTP_HEAD_MS, HTTP_IDLE_MS, HTTP_BODY_STALL_MS,            \
			       HTTP_WRITE_STALL_MS, HTTP_REPLY_MS, HTTP_DRAIN_MAX, false, \
			       HTTP_LAST_MS })
