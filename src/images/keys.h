/* keys.h - what credentials for registries are sealed for: made at the first start, in a file that
 * nobody else can read. A lost one costs nothing but the credentials that are under way.
 */
#pragma once

#include "tls/seal.h"

/* `folder` exists. One that cannot be used is an error and not replaced. */
int keys_open(const char *folder, struct seal_key **ret, struct err *err) NODISCARD;
/* {"sealKey":"<base64>", "agent":"sha256:..."}: what everybody may know. */
int keys_facts(const struct seal_key *k, const char *agent, struct buf *out,
	       struct err *err) NODISCARD;
