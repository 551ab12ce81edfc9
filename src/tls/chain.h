/* chain.h - a certificate that a service shows, with those above it, as it is in a file.
 *
 * Its key is elsewhere: it is known by its id (sign_key.h). Whose it is is said by the names in it,
 * and by nothing else.
 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "tls/sign_key.h"
#include "tls/tls_service.h"
#include "wire/domain.h"

enum {
	CHAIN_MAX = 8,         /* certificates in a file */
	CHAIN_NAMES_MAX = 128, /* names in a certificate */
	CHAIN_TEXT_MAX = 128 * 1024,
};

struct chain;

/* PEM: the certificate, then each that signed the one before it; a root is left out. ERR_INVALID
 * says what is wrong with it: not a certificate, not a server's, its time is over or has not come,
 * a key that is not served, in the wrong order. */
int chain_load(struct tls_service *s, struct bytes text, struct chain **ret,
	       struct err *err) NODISCARD;
void chain_free(struct chain *c); /* before its service is closed; NULL is fine */

const uint8_t *chain_key_id(const struct chain *c);
int64_t chain_until(const struct chain *c); /* seconds since 1970 */
const struct identity *chain_identity(const struct chain *c);

/* Names, lower case, *.name among them. */
size_t chain_names(const struct chain *c);
const char *chain_name(const struct chain *c, size_t i);

/* Is this name, lower case, in it? As a wildcard: in place of the first label, and of no more. */
enum chain_fit { CHAIN_NO_FIT, CHAIN_WILDCARD, CHAIN_EXACT };
enum chain_fit chain_fits(const struct chain *c, const char *name);
