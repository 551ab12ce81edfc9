/* health.h - can this server create sandboxes? GET /health says, to anybody: 204, or 503 and why
 * not.
 *
 * Node is asked at most once in a second, however many ask.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	HEALTH_FRESH_MS = 1000, /* how long an answer of node's is believed */
	HEALTH_NODE_MS = 2000,  /* how long node has to answer */
};

struct health { /* all zero: node was not asked yet */
	bool known;
	uint64_t known_ms, asked_ms;   /* of the loop; asked_ms 0: nobody waits for node */
	char reason[32], message[256]; /* "": it can */
};

struct api_call;
void health_get(struct api_call *c); /* the handler */
