/* tls_files.h - the files below tls_dir: who may read them, and how they are replaced.
 *
 *	authority/ca.pem      of `tls init`; everybody may read it
 *	authority/ca.key      root alone
 *	NAME/fullchain.pem    what the gateway shows; everybody may read it
 *	NAME/privkey.pem      the signer alone
 *
 * A folder comes whole or not at all, also after a power cut. In one that is there, each file is
 * replaced by a rename. Folders whose names begin with a dot are drafts.
 */
#pragma once

#include <sys/types.h>

#include "cli/cli.h"
#include "tls/pair.h"

#define TLS_AUTHORITY "authority"

struct tls_files {
	const char *path; /* tls_dir */
	int dir;          /* locked: one that writes at a time */
	uid_t owner;      /* of the keys of servers */
};

/* Opens tls_dir; who writes makes it if it is not there, and waits for its lock. */
int tls_files_open(const struct cli *c, bool writes, struct tls_files *ret,
		   struct err *err) NODISCARD;
void tls_files_close(struct tls_files *f);

/* One file, such as "authority/ca.pem", behind what is in `ret`. ERR_NOT_FOUND: it is not there. */
int tls_files_read(const struct tls_files *f, const char *path, struct buf *ret,
		   struct err *err) NODISCARD;

/* What is to be put into a folder. */
struct tls_pair {
	const char *chain_name, *key_name;
	struct bytes chain, key;
	uid_t key_owner;
};
/* One file that everybody may read, in a folder that is there. */
int tls_files_put_text(const struct tls_files *f, const char *folder, const char *name,
		       struct bytes text, struct err *err) NODISCARD;
int tls_files_put(const struct tls_files *f, const char *folder, const struct tls_pair *pair,
		  struct err *err) NODISCARD;
