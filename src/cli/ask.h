/* ask.h - one request over the gateway's admin socket, and its answer. */
#pragma once

#include "cli/cli.h"
#include "wire/json.h"

enum {
	ANSWER_MAX = 16 * 1024 * 1024, /* bytes of one answer of the gateway */
	ANSWER_DEPTH = 16,
	ASK_CONNECT_MS = 5 * 1000,
	ASK_MS = 360 * 1000, /* a pause is answered when all is on the disk */
	ASK_LOOK_MS =
		20 * 1000,     /* what doctor asks for: a daemon that hangs is what it looks for */
	SEND_MS = 3600 * 1000, /* with a file */
	TARGET_MAX = 8 * 1024, /* as the gateway takes it */
	PAGES_MAX = 1000,
};

/* A target in pieces, which may be missing but for the first. */
struct cli_request {
	const char *method; /* NULL: GET */
	const char *path;   /* may have a query */
	const char *id;     /* as typed: it is encoded */
	const char *suffix;
	const char *value;            /* encoded, too */
	const char *suffix2, *value2; /* the same once more */
	const json_t *body;
	const struct cli_file *file; /* in place of `body`; NULL: none */
	uint64_t ms;                 /* until the answer is whole; 0: ASK_MS, or SEND_MS */
};

struct cli_file { /* sent piece by piece */
	int fd;
	uint64_t bytes;
};

/* One request to the gateway, and its answer: *ret is NULL when it has no body. An answer that is
 * an error comes as that error. */
int cli_ask(const struct cli *c, const struct cli_request *rq, json_t **ret,
	    struct err *err) NODISCARD;

/* The same for a list that comes in pages: all of it. */
int cli_list(const struct cli *c, const struct cli_request *rq, json_t **ret,
	     struct err *err) NODISCARD;

enum err_code ask_code_of(unsigned int status); /* of an answer that is an error */
