/* build_image.h - the image that a build begins with: which one it is, and what it brings. Pure. */
#pragma once

#include "images/protocol.h"
#include "node/build/build_context.h"
#include "wire/sha256.h"

enum { BUILD_SOURCE_MAX = 511 };

struct build_image {
	char digest[IMAGES_DIGEST_SIZE];
	char repository[SHA256_HEX + 1]; /* a hash of its name: whose permission was asked */
};

/* What the images daemon has answered. A tag may have moved since it was asked before: all of the
 * image and of *c is what this answer says. Failure: *c is empty. */
int build_image_take(struct build_image *i, const char *digest, struct bytes config,
		     struct build_context *c, struct err *err) NODISCARD;

/* By which a ground is found again: what is on its disk, and of which repository. Who may have an
 * image of one may not have the same one of another. */
void build_image_source(const struct build_image *i, uint32_t disk_mib, const char *agent,
			char ret[static BUILD_SOURCE_MAX + 1]);
