/* secrets.h - a team's secrets as the database has them: sealed, so that nobody who reads it learns
 * a value. Requests about them are those of store.h.
 */
#pragma once

#include <stdint.h>

enum {
	STORE_SECRET_ID_SIZE = 31,    /* sec_, 26 characters, and a NUL */
	STORE_SECRET_NAME_SIZE = 129, /* with its NUL */
	STORE_SECRETS_MAX = 1000,     /* of one team */
	STORE_SECRETS_FOUND_MAX = 512,
};

struct store_secret { /* its texts are its own */
	char id[STORE_SECRET_ID_SIZE];
	char team_id[37];
	char name[STORE_SECRET_NAME_SIZE];
	uint64_t version;                /* 1, 2, ... */
	uint64_t created_ns, updated_ns; /* since 1970 */
	char *metadata;                  /* a JSON object */
	char *sealed;
	char *names; /* STORE_SECRET_FIND only */
};

struct store_secret *store_secret_new(const char *team_id); /* NULL: no memory */
void store_secret_clear(struct store_secret *s);            /* frees its texts only */
void store_secret_free(struct store_secret *s);             /* NULL is fine */
