/* cert_dir.h - the folder with the certificates of an installation: one folder for each,
 *
 *	NAME/fullchain.pem   the certificate and those above it; the gateway reads it
 *	NAME/privkey.pem     its key; the signer alone reads it
 *
 * Looked at now and then: two looks at an unchanged file give the same stamp. A file is replaced by
 * renaming another over it. Links are not followed.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"

enum {
	CERT_DIR_MAX = 128,     /* certificates of an installation */
	CERT_NAME_MAX = 128,    /* of a folder */
	CERT_LOOK_MS = 1000,    /* between two looks */
	CERT_GONE_MS = 5 * 1000 /* a file that is not there for so long is taken for removed */
};

#define CERT_CHAIN_FILE "fullchain.pem"
#define CERT_KEY_FILE   "privkey.pem"

struct cert_stamp { /* all zero: there is no such file */
	uint64_t ino, size;
	int64_t changed_ns, written_ns;
};

struct cert_file {
	char name[CERT_NAME_MAX + 1]; /* of its folder */
	struct cert_stamp stamp;
	mode_t mode;
};

struct cert_files {
	struct cert_file file[CERT_DIR_MAX];
	size_t n;
	size_t left_out; /* there was no room, or the name is too long */
};

/* Every NAME that has a `file`, in the order of their names. Folders that begin with a dot are left
 * alone. */
int cert_dir_look(int dir, const char *file, struct cert_files *ret, struct err *err) NODISCARD;
bool cert_stamp_eq(const struct cert_stamp *a, const struct cert_stamp *b);

/* All of NAME/file. */
int cert_dir_read(int dir, const char *name, const char *file, struct buf *ret,
		  struct err *err) NODISCARD;
