/* account_names.h - what a number is called: owners and groups of files, without NSS. */
#pragma once

#include "agent/accounts.h"

enum { ACCOUNT_NAMES_KEPT = 8 }; /* numbers remembered; most trees have one owner */

struct account_name {
	bool known;
	uint32_t id;
	char name[ACCOUNT_NAME_MAX + 1];
};

struct account_names {
	struct buf passwd, group;
	struct account_name users[ACCOUNT_NAMES_KEPT], groups[ACCOUNT_NAMES_KEPT];
};

/* From `dir`/passwd and `dir`/group as they are now; what cannot be read has no names in it. */
void account_names_load(struct account_names *n, const char *dir);
void account_names_done(struct account_names *n);

/* The name, or the number in digits when it has none. Valid until the next call. */
const char *account_names_user(struct account_names *n, uid_t uid);
const char *account_names_group(struct account_names *n, gid_t gid);
