/* accounts.h - who a name is: /etc/passwd and /etc/group, read without NSS.
 *
 * The program is static, so there is no NSS to ask; and the files belong to whoever is root in the
 * sandbox, so they are hostile. Lines that are not well-formed are skipped.
 */
#pragma once

#include <sys/types.h>

#include "base/bytes.h"

enum {
	ACCOUNT_NAME_MAX = 64,
	ACCOUNT_HOME_MAX = 1024,
	ACCOUNT_GROUPS_MAX = 256,            /* more are left out */
	ACCOUNTS_FILE_MAX = 4 * 1024 * 1024, /* in bytes; a larger one is an error */
};

struct account {
	uid_t uid;
	gid_t gid;
	size_t n_groups;
	gid_t groups[ACCOUNT_GROUPS_MAX]; /* the primary one first */
	char name[ACCOUNT_NAME_MAX + 1];
	char home[ACCOUNT_HOME_MAX + 1]; /* absolute */
};

/* From the texts of passwd and group. ERR_NOT_FOUND: no such user. */
int account_parse(struct bytes passwd, struct bytes group, struct bytes name, struct account *ret,
		  struct err *err) NODISCARD;

/* From `dir`/passwd and `dir`/group. A missing group file means no further groups. */
int account_find(const char *dir, struct bytes name, struct account *ret,
		 struct err *err) NODISCARD;
