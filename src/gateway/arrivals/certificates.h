/* certificates.h - which certificate a client is shown: those in tls_dir (tls/cert_dir.h), by the
 * names in them.
 *
 * The folder is looked at every CERT_LOOK_MS. A chain is taken when it is sound and the signer has
 * its key; until then, and when it is not, the one of before stays, and the reason is logged, once,
 * and in the status. A client is shown the one whose names have the one it asked for, exact before
 * wildcard, of several the one that is valid the longest. Who asks for no name, or for one of
 * nobody's, is shown the one for `domain`, else the first by the name of its folder.
 */
#pragma once

#include "gateway/arrivals/signer_link.h"
#include "tls/cert_dir.h"
#include "tls/chain.h"
#include "wire/json.h"

struct certificates {
	struct tls_chooser chooser; /* for the service */
	struct tls_service *service;
	struct signer_link *signer;
	struct loop *loop;
	const char *domain; /* may have a port; "" */
	int dir;
	struct timer look;
	struct cert_slot *slots; /* CERT_DIR_MAX of them */
	struct cert_files *files;
	void (*on_answer)(struct certificates *c); /* the signer has said what it thinks of one */
	bool told;
};

/* Opens the folder. The service is set later, as it wants to know the chooser. */
int certificates_open(struct certificates *c, struct loop *l, const char *path, const char *domain,
		      struct err *err) NODISCARD;
/* Looks for the first time. `signer` is open; both outlive this. */
void certificates_begin(struct certificates *c, struct tls_service *s, struct signer_link *signer,
			void (*on_answer)(struct certificates *c));
void certificates_look(struct certificates *c);  /* now, besides: something may have changed */
void certificates_close(struct certificates *c); /* fine when it is all zero */

size_t certificates_served(const struct certificates *c);
bool certificates_settled(const struct certificates *c); /* the signer has answered for all */
json_t *certificates_json(const struct certificates *c);
