/* image_ref.h - the name of an image, as people write it: [HOST[:PORT]/]NAME[:TAG][@DIGEST]. Pure.
 *
 * What stands before the first slash is a host when it could be nothing else: it has a dot, a colon
 * or a capital letter, or is `localhost`. Which registry is meant without one, and what stands
 * before a name of one word there, is for the caller to say: no host is known here.
 */
#pragma once

#include "base/bytes.h"

enum {
	IMAGE_REF_MAX = 512, /* of the text as it is written */
	IMAGE_HOST_MAX = 259,
	IMAGE_PATH_MAX = 255,
	IMAGE_TAG_MAX = 128,
	IMAGE_HEX = 64,
	IMAGE_DIGEST = 7 + IMAGE_HEX, /* "sha256:" and its digits */
	IMAGE_NAME_MAX = IMAGE_HOST_MAX + 1 + IMAGE_PATH_MAX + 1 + IMAGE_TAG_MAX + 1 + IMAGE_DIGEST,
};

struct image_ref {
	char host[IMAGE_HOST_MAX + 1]; /* in lower case, with its port if it was said */
	char path[IMAGE_PATH_MAX + 1];
	char tag[IMAGE_TAG_MAX + 1];   /* "latest" when neither was said; "" with a digest alone */
	char digest[IMAGE_DIGEST + 1]; /* "" when not said */
};

struct image_defaults {
	const char
		*host; /* of names without one, which has a dot or a port; "": they are refused */
	const char *prefix; /* before a name of one word without a host: "library/" */
};

/* ERR_INVALID: it is no name of an image, and why. */
int image_ref_parse(struct bytes text, const struct image_defaults *d, struct image_ref *ret,
		    struct err *err) NODISCARD;

/* HOST/PATH[:TAG][@DIGEST]; read again it is the same. */
void image_ref_text(const struct image_ref *r, char ret[static IMAGE_NAME_MAX + 1]);

/* "sha256:" and 64 digits in lower case: the only kind of digest there is here. */
bool image_digest_ok(struct bytes text);
/* HOST[:PORT]: a name or an address of IPv4, or one of IPv6 in brackets; in lower case then. */
bool image_host_normal(struct bytes text, char ret[static IMAGE_HOST_MAX + 1]);
