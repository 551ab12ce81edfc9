/* authority.h - certificates: the installation's own root, branches of it, and leaves.
 *
 *	root    one per installation, ten years; its certificate is in every guest's stores
 *	branch  signed by the root; can make leaves for the hosts it was made for, and no others:
 *	        name constraints, which every TLS library checks, say so
 *	leaf    signed by a branch, for one name: what a server shows
 *
 * And, with a root of its own, what the gateway shows to clients: see the end.
 *
 * All keys are P-256. Nothing here reads or writes a file: who keeps a root keeps its two texts.
 * Texts are PEM and come from our own files and processes, but are checked as if they did not.
 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "wire/domain.h"

enum {
	AUTHORITY_ROOT_DAYS = 3650,
	AUTHORITY_BRANCH_DAYS = 32, /* a day more than the longest run */
	AUTHORITY_ANY_DAYS = 2,     /* of a branch for any name, which is worth more to a thief */
	AUTHORITY_LABEL_MAX = 63,
	AUTHORITY_HOSTS_MAX = 256,
	AUTHORITY_CHAIN_MAX = 3,
	AUTHORITY_TEXT_MAX = 128 * 1024, /* of either text, in bytes */
	AUTHORITY_DOMAIN_MAX = 128,      /* PORT-ID fits before it, and a folder may be named so */
};

struct authority;

/* A new root. `label` becomes its common name: "Hotcell 3f9a...". */
int authority_new(const char *label, struct authority **ret, struct err *err) NODISCARD;

/* A branch for hosts as rules name them: "api.example.com", "*.example.com", "*". Names
 * below a host are within its constraint, too: the standard knows no finer one. The one who makes
 * leaves asks the rules first. It begins an hour ago, for guests whose clocks are behind. */
int authority_branch(const struct authority *root, const char *label, const char *const *hosts,
		     size_t n_hosts, struct authority **ret, struct err *err) NODISCARD;

/* A branch for every name, AUTHORITY_ANY_DAYS long. */
int authority_branch_any(const struct authority *root, const char *label, struct authority **ret,
			 struct err *err) NODISCARD;

/* Its certificates, its own first, then those above it; and its key. ret grows; the key's text is
 * secret: BUF_SECRET(). */
int authority_cert_text(const struct authority *a, struct buf *ret, struct err *err) NODISCARD;
int authority_key_text(const struct authority *a, struct buf *ret, struct err *err) NODISCARD;

/* Both texts back. Refuses a key that does not fit, what may not sign, what is not yet or no longer
 * valid (ERR_MISMATCH: time to make a new one). */
int authority_load(struct bytes cert_text, struct bytes key_text, struct authority **ret,
		   struct err *err) NODISCARD;

void authority_free(struct authority *a); /* the key is wiped; NULL is fine */

/* What a server shows: a leaf's key, the leaf, and the branch. Valid as long as the branch. Making
 * one costs about a millisecond: keep it for the next connection to the same name. */
struct identity;
int identity_new(const struct authority *a, const char *name, struct identity **ret,
		 struct err *err) NODISCARD;
void identity_free(struct identity *i); /* streams that use it keep what they need; NULL is fine */

/* The other kind of root: of the names by which clients reach this installation (`hotcell tls
 * init`). It signs leaves itself, and can for nothing but one domain and what is below it.
 *
 * The domain as it stands in certificates: lower case, two labels at least, no address, since
 * clients refuse a wildcard right below a name of one label. The error says what is wrong. */
int authority_domain_normal(const char *text, char ret[static DOMAIN_SIZE],
			    struct err *err) NODISCARD;
int authority_new_for(const char *domain, struct authority **ret, struct err *err) NODISCARD;

/* The one domain it is limited to. False: it is another kind of authority. */
bool authority_domain(const struct authority *a, char ret[static DOMAIN_SIZE]);

/* A leaf for a domain and for *.domain, and its key, as texts; ends with the authority at the
 * latest. ret_key: BUF_SECRET(). */
int authority_issue(const struct authority *a, const char *domain, int days, struct buf *ret_chain,
		    struct buf *ret_key, struct err *err) NODISCARD;
