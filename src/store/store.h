/* store.h - teams, keys and secrets, kept on disk. No call waits: answers come from the loop.
 *
 * One thread runs the requests in the order in which they were made.
 */
#pragma once

#include "net/watch.h"
#include "store/secrets.h"

enum {
	STORE_ID_SIZE = 37,   /* a UUID as text, and a NUL */
	STORE_NAME_SIZE = 64, /* of a team or a key, with its NUL */
	STORE_HASH_SIZE = 65, /* SHA-256 in hexadecimal, and a NUL */
	STORE_MASK_SIZE = 8,
	STORE_SERVICES_SIZE = 512, /* names with a space between them, and a NUL */
	STORE_TEAMS_MAX = 10000,
	STORE_KEYS_MAX = 1000,  /* of one team */
	STORE_QUEUE_MAX = 4096, /* requests without an answer; more are refused */
};

struct store_limits { /* of all sandboxes of a family of keys, or of a team, together; 0: none */
	uint32_t sandboxes, vcpus, memory_mib, disk_mib;
	uint32_t paused; /* of those that are paused, their number */
};

struct store_team {
	char id[STORE_ID_SIZE];
	char name[STORE_NAME_SIZE];
	char slug[STORE_NAME_SIZE];
	uint64_t created_ns; /* since 1970 */
	struct store_limits limits;
};

struct store_key {
	char id[STORE_ID_SIZE];
	char team_id[STORE_ID_SIZE];
	char name[STORE_NAME_SIZE];
	char hash[STORE_HASH_SIZE];
	char head[STORE_MASK_SIZE], tail[STORE_MASK_SIZE]; /* what is shown of it */
	uint64_t created_ns, used_ns;                      /* used_ns 0: never */
	char maker[STORE_ID_SIZE];                         /* the key that made it, if one did */
	char family[STORE_ID_SIZE]; /* the first of the makers, or itself: its limits count */
	struct store_limits limits; /* of the family */
	char services[STORE_SERVICES_SIZE]; /* the operator's that its sandboxes may reach */
};

enum store_verb {
	STORE_TEAM_ADD,    /* team: id and created_ns are filled in -> the team; ERR_EXISTS */
	STORE_TEAM_FIND,   /* team.id, or else team.name -> the team; ERR_NOT_FOUND */
	STORE_TEAM_LIST,   /* -> teams by name */
	STORE_TEAM_REMOVE, /* team.id; its keys go with it; ERR_NOT_FOUND */
	STORE_TEAM_LIMIT,  /* team.id, team.limits -> the team; ERR_NOT_FOUND */
	STORE_KEY_ADD,     /* key: id, created_ns, family are filled in -> the key; ERR_NOT_FOUND:
			    * team or maker */
	STORE_KEY_LIST,    /* key.team_id -> keys, oldest first */
	STORE_KEY_FIND,    /* key.hash -> the key and its team; ERR_NOT_FOUND */
	STORE_KEY_RENAME,  /* key.id, key.team_id, key.name; ERR_NOT_FOUND */
	STORE_KEY_REMOVE,  /* key.id, key.team_id (empty: any) -> what it was. The keys that it made
			    * go with it; ERR_NOT_FOUND */
	STORE_KEY_ROTATE,  /* key.id, hash, head, tail -> the key; ERR_NOT_FOUND */
	STORE_KEY_USED,    /* key.id, key.used_ns */
	STORE_KEY_GET,     /* key.id -> the key; ERR_NOT_FOUND */
	STORE_KEY_LIMIT,   /* key.id, key.limits -> the key; ERR_NOT_FOUND; ERR_EXISTS: a key made
			    * it, and it has the limits of its family */
	STORE_KEY_SERVICES, /* key.id, key.services -> the key; ERR_NOT_FOUND */
	/* Of secret.team_id; each answers with the secret but where it says otherwise. */
	STORE_SECRET_ADD,    /* name, metadata, sealed; ERR_EXISTS, ERR_EXHAUSTED */
	STORE_SECRET_GET,    /* id, or else name; ERR_NOT_FOUND, as the next two */
	STORE_SECRET_UPDATE, /* id, sealed, metadata (NULL: as it was) */
	STORE_SECRET_REMOVE, /* id -> nothing */
	STORE_SECRET_LIST,   /* id: those after it; count -> secrets by id */
	STORE_SECRET_FIND,   /* names, with a space between them -> those that are there */
	STORE_UPLOAD_KEY,    /* key.hash: 64 digits -> key.hash: the first that was ever sent */
	STORE_VERBS,
};

struct store_request {
	enum store_verb verb;
	struct store_team team;
	struct store_key key;
	struct store_secret *secret; /* taken by store_ask(), also when that fails; else NULL */
	uint32_t count;
};

struct store_result { /* borrowed for the call */
	const struct store_team *teams;
	size_t n_teams;
	const struct store_key *keys;
	size_t n_keys;
	const struct store_secret *secrets;
	size_t n_secrets;
};

struct store;
struct store_job;
struct store_call;
typedef void store_done_fn(struct store_call *c, const struct store_result *ret,
			   const struct err *err);
struct store_call { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop: a result, or NULL and why. The call is over. */
	store_done_fn *on_done;
	struct store_job *job;
};

/* Opens or makes the database `store.db` in `dir` and brings it up to date: this one call waits.
 * The thread starts here, so a filter that forbids threads may come after it. */
int store_open(struct loop *l, const char *dir, struct store **ret, struct err *err) NODISCARD;

/* What is under way ends, what is queued is lost; no callback follows. NULL is fine. */
void store_close(struct store *s);

/* Failure (-1): on_done will not come. */
int store_ask(struct store *s, struct store_call *c, const struct store_request *rq,
	      store_done_fn *on_done, struct err *err) NODISCARD;
void store_forget(struct store_call *c); /* it is still done, but on_done will not come */
