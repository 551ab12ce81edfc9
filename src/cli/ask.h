/* ask.h - one request over the gateway's admin socket, and its answer. */
#pragma once

#include "cli/cli.h"
#include "wire/json.h"

enum {
	ANSWER_MAX = 16 * 1024 * 1024, /* bytes of one answer of the gateway */
	ANSWER_DEPTH = 16,
	ASK_CONNECT_MS = 5 * 1000,
	ASK_MS = 360 * 1000, /* a pause is answered when all is on the disk */
	TARGET_MAX = 512,
	PAGES_MAX = 1000,
};

/* One request to the gateway, and its answer: *ret is NULL when it has no body. An answer that is
 * an error comes as that error. */
int cli_ask(const struct cli *c, const char *method, const char *target, const json_t *body,
	    json_t **ret, struct err *err) NODISCARD;

/* The same for a list that comes in pages: all of it. `path` may have a query. */
int cli_list(const struct cli *c, const char *path, json_t **ret, struct err *err) NODISCARD;

/* PREFIX, an id as typed, SUFFIX, a value: both are encoded. */
int cli_target(char ret[static TARGET_MAX], const char *prefix, const char *id, const char *suffix,
	       const char *value, struct err *err) NODISCARD;
