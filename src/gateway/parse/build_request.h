/* build_request.h - what a client wants built: an image or a template to begin with, and steps.
 * Pure.
 */
#pragma once

#include "gateway/parse/template_ref.h"
#include "wire/json.h"

enum {
	BUILD_REQUEST_MAX = 64 * 1024,
	BUILD_STEPS_MAX = 256,
	BUILD_STEP_ARGS_MAX = 64,
	BUILD_IMAGE_MAX = 512,       /* bytes of an image's name */
	BUILD_CREDENTIAL_MAX = 4096, /* bytes of a user's name, or of a password */
	BUILD_HASH_LENGTH = 64,      /* of what was uploaded for a step */
};

/* The body of POST /v2/templates/{id}/builds/{id}, of a client of the team `slug`. *ret is what
 * node is given, see node/build/builds.h: checked, and without what is the client's own business.
 * ERR_INVALID; what it says holds nothing of a password. On success the caller owns *ret. */
int build_request_parse(struct bytes body, const char *slug, json_t **ret,
			struct err *err) NODISCARD;
bool build_hash_ok(struct bytes hash); /* BUILD_HASH_LENGTH lower-case hexadecimal digits */
