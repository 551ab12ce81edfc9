/* create_request.h - the body of POST /sandboxes and /v2/sandboxes. Pure.
 *
 * What is not there yet is refused by name and never ignored: a client that asked for a sandbox to
 * be paused must not find it killed. So is what belongs to a template and not to a create. A member
 * that nobody knows may be one that a later SDK sends: it is ignored, as E2B's server does, and
 * named.
 */
#pragma once

#include "base/bytes.h"
#include "gateway/parse/template_ref.h"
#include "node/protocol.h"
#include "wire/json.h"

enum {
	CREATE_BODY_MAX = 64 * 1024,
	CREATE_DEPTH_MAX = 16,
	CREATE_TIMEOUT_V1_S = 15,
	CREATE_TIMEOUT_V2_S = 300,
	CREATE_IGNORED_SIZE = 160,
};

enum api_version { API_V1, API_V2 };

struct create_request {
	struct template_ref template; /* whose namespace it is, is not looked at */
	uint32_t timeout_s;
	bool secure;
	bool auto_pause, pause_memory;     /* at the end of its time; with its memory */
	bool auto_resume;                  /* by traffic */
	bool boot;                         /* a snapshot's disk alone: ours */
	bool private;                      /* its ports want a token */
	bool ingress;                      /* how they are spoken to stands in the text */
	char ignored[CREATE_IGNORED_SIZE]; /* "a, b": members that nobody knows, cut; "": none */
	json_t *text;                      /* for node: {"metadata":{},"envVars":{},...} */
};

/* ERR_INVALID; ERR_NOT_FOUND for a template that cannot exist, ERR_DENIED for what nobody may have.
 * On success the caller owns it. */
int create_request_parse(struct bytes body, enum api_version version, struct create_request *ret,
			 struct err *err) NODISCARD;
/* What node is told. Owned by the caller, also when this fails. ERR_INVALID: it is too large. */
int create_request_text(const struct create_request *r, struct buf *ret, struct err *err) NODISCARD;
void create_request_done(struct create_request *r);

/* The member `name`, of one word; *ret stays as it is when it is absent. */
int timeout_take(const json_t *body, const char *name, int64_t *ret, struct err *err) NODISCARD;
/* A lifetime that a client asked for: "Timeout must be greater than 0". Whether it is too long is
 * for node to say; what node cannot even be told comes out as NODE_TIMEOUT_MAX_S + 1. */
int timeout_check(int64_t seconds, int64_t least, uint32_t *ret, struct err *err) NODISCARD;
