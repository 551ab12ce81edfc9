/* registries.h - the operator's settings as a registries.conf for skopeo. Pure. */
#pragma once

#include "images/settings.h"
#include "wire/image_ref.h"

enum { REGISTRIES_TEXT_MAX = 64 * 1024, REGISTRIES_MAX = 64 };

/* Appends. ERR_INVALID: what a setting says makes no sense. */
int registries_conf(const struct config_value *set, struct buf *ret, struct err *err) NODISCARD;

/* Which registry is spoken to for an image: HOST[:PORT], as `map` says. Credentials are for it, and
 * for no mirror. */
void registries_host(const struct config_value *set, const struct image_ref *r,
		     char ret[static IMAGE_HOST_MAX + 1]);

/* What skopeo reads credentials from. `credentials` is what was sealed. `ret` is a BUF_SECRET. */
int registries_auth(const char *host, struct bytes credentials, struct buf *ret,
		    struct err *err) NODISCARD;
