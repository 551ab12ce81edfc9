/* pair.h - a server's pair: its certificate with those above it, and its key, as files hold them.
 *
 * Nothing here reads or writes a file. Texts are PEM, from whoever made them.
 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "wire/domain.h"

enum {
	PAIR_TEXT_MAX = 128 * 1024, /* of either text, in bytes */
	PAIR_CHAIN_MAX = 8,         /* as a gateway serves: chain.h */
	PAIR_NAMES_MAX = 128,       /* the same */
	PAIR_ISSUER_SIZE = 128,
	PAIR_SUM_LEN = 32,
	PAIR_RSA_BITS_MIN = 2048,
	PAIR_RSA_BITS_MAX = 4096, /* a signature with more takes the signer too long */
};

struct pair_facts {                              /* of the leaf, which is the first */
	char names[PAIR_NAMES_MAX][DOMAIN_SIZE]; /* of hosts; a name or *.name */
	size_t n_names;
	bool more_names;               /* than that */
	char issuer[PAIR_ISSUER_SIZE]; /* its common name, or its organization */
	int64_t begins_s, ends_s;      /* since 1970 */
	uint8_t sum[PAIR_SUM_LEN];     /* SHA-256 of it, as tools print it */
};

/* What is in a chain. It may be over, or not have begun. */
int pair_read(struct bytes chain, struct pair_facts *ret, struct err *err) NODISCARD;

/* Would a server be believed that shows this? The leaf is first and has names, each is signed by
 * the next, all are valid now, the key is the leaf's and of a kind that the signer has (EC P-256 or
 * P-384, RSA). Both texts come back without what else stood in the files. ret_key: BUF_SECRET(). */
int pair_check(struct bytes chain, struct bytes key, struct buf *ret_chain, struct buf *ret_key,
	       struct err *err) NODISCARD;

/* Did the first certificate of `signer` sign the leaf? False also if one of them cannot be read. */
bool pair_signed_by(struct bytes chain, struct bytes signer);
