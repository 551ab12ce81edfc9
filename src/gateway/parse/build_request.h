/* build_request.h - what a client wants built: an image or a template to begin with, and steps.
 * Pure.
 */
#pragma once

#include "gateway/parse/template_ref.h"
#include "wire/json.h"

enum {
	BUILD_REQUEST_MAX = 1024 * 1024,
	BUILD_ARG_MAX = 96 * 1024, /* bytes of an argument: Linux runs no longer command */
	BUILD_STEPS_MAX = 256,
	BUILD_STEP_ARGS_MAX = 64,
	BUILD_IMAGE_MAX = 512,             /* bytes of an image's name */
	BUILD_CREDENTIAL_MAX = 4096,       /* bytes of a user's name, or of a password */
	BUILD_CREDENTIALS_MAX = 60 * 1024, /* bytes of both, as JSON with whatever is escaped */
	BUILD_HASH_LENGTH = 64,            /* of what was uploaded for a step */
};

struct build_request {
	json_t *text;           /* for node, see node/build/builds.h: nothing of a password */
	struct buf credentials; /* {"username":,"password":} of fromImageRegistry; empty: none */
};

/* The body of POST /v2/templates/{id}/builds/{id}, of a client of the team `slug`: checked, and
 * without what is the client's own business. ERR_INVALID; what it says holds nothing of a password.
 * On success the caller owns what is in *ret. */
int build_request_parse(struct bytes body, const char *slug, struct build_request *ret,
			struct err *err) NODISCARD;
void build_request_done(struct build_request *r); /* credentials are wiped */
bool build_hash_ok(struct bytes hash); /* BUILD_HASH_LENGTH lower-case hexadecimal digits */
