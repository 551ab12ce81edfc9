/* keys.h - the installation's own: the root of its certificates, and what its secrets are sealed
 * for. Made at the first start, kept in files that nobody else can read.
 */
#pragma once

#include "tls/authority.h"
#include "tls/seal.h"

struct keys {
	struct authority *root;
	struct seal_key *seal;
};

/* `folder` exists. Files: root.key, root.crt (written last: without it both are made anew),
 * seal.key. One that cannot be used is an error and not replaced: guests trust the one certificate,
 * secrets open with the one key. */
int keys_open(const char *folder, struct keys *ret, struct err *err) NODISCARD;
void keys_done(struct keys *k);

/* {"ca":"<PEM>", "sealKey":"<base64>"}: what everybody may know. */
int keys_facts(const struct keys *k, struct buf *out, struct err *err) NODISCARD;
