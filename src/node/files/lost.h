/* lost.h - what is on the disk and in no row, set aside: nothing that was saved is removed by us.
 *
 *	data_dir/lost/20261116t104800z-sandbox-ID      the folder as it was found; a week
 *	              20261116t104800z-snapshot-ID     the same
 *	              20261116t104800z-disk-ID         of one that lost its VM; a day, lost_disks.h
 *	              .gone-...                        being removed
 *
 * Its name says how long it stays. Until then it can be brought back, if its description is whole.
 * All of these block.
 */
#pragma once

#include "base/bytes.h"
#include "node/protocol.h"

enum lost_kind { LOST_SANDBOX, LOST_SNAPSHOT, LOST_DISK, LOST_KINDS };

enum {
	LOST_KEEP_S = 7 * 24 * 3600,
	LOST_KEEP_DISK_S = 24 * 3600,
	LOST_NAME_SIZE = 96,  /* with the usual ids a name fits where an id does */
	LOST_MAX = 32 * 1024, /* entries that are looked at; more wait for these to go */
};

#define LOST_SINCE_MIN_NS 1767225600000000000ull /* 2026: no name was made before */

struct lost_save {       /* one id may have been saved often: which of these? */
	uint64_t number; /* of its pauses; of a snapshot, when it was made. 0: not known */
	uint32_t pages_crc, state_crc;
};

struct lost_entry {
	char name[LOST_NAME_SIZE]; /* in data_dir/lost */
	enum lost_kind kind;
	char id[NODE_ID_MAX + 1];
	uint64_t since_ns, bytes; /* since 1970; that it takes of the disk */
	bool described;           /* it can be brought back, as far as is known */
	/* Of a sandbox or a disk: the snapshot it was made of, as it is described; or empty */
	char made_of[NODE_ID_MAX + 1];
	char team[NODE_ID_MAX + 1]; /* whose it is, as it is described; or empty */
	struct lost_save save;      /* as it is described */
};

struct lost_list {
	bool partial;           /* some were not looked at, or cannot be looked into now */
	struct lost_entry *all; /* the oldest first */
	size_t n;
	uint64_t bytes; /* of all */
};

const char *lost_word(enum lost_kind kind); /* "sandbox" */
/* data_dir/lost, made if need be; `root` is a folder in data_dir. */
int lost_open(int root, struct err *err) NODISCARD;
void lost_name(enum lost_kind kind, const char *id, uint64_t now_ns,
	       char ret[static LOST_NAME_SIZE]);
bool lost_parse(const char *name, struct lost_entry *ret); /* false: none of ours */

/* Folder `id` of `root` goes to `lost`, for good when it returns. */
int lost_move(int root, const char *id, enum lost_kind kind, int lost, uint64_t now_ns,
	      struct err *err) NODISCARD;
/* And back, under its own name; ERR_EXISTS: something has it. */
int lost_move_back(int lost, const struct lost_entry *e, int root, struct err *err) NODISCARD;

int lost_list(int lost, struct lost_list *ret, struct err *err) NODISCARD;
void lost_list_done(struct lost_list *l);
/* The newest of that id that is described, else the newest; NULL: none. */
const struct lost_entry *lost_find(const struct lost_list *l, const char *id);
const struct lost_entry *lost_find_name(const struct lost_list *l, const char *name);
size_t lost_count(const struct lost_list *l, const char *id);
bool lost_is_save(const struct lost_entry *e, const struct lost_save *s);
/* The newest that is this save of it; else as lost_find(). */
const struct lost_entry *lost_find_save(const struct lost_list *l, const char *id,
					const struct lost_save *s);
bool lost_holds(const struct lost_list *l,
		const char *snapshot); /* one was made of it, or may be */
uint64_t lost_until_ns(const struct lost_entry *e);
bool lost_is_old(const struct lost_entry *e, uint64_t now_ns);
int lost_stamp(int lost, struct lost_entry *e, uint64_t now_ns, struct err *err) NODISCARD;
/* Gone; nobody brings it back meanwhile. One that is not there any more: ERR_NOT_FOUND. */
int lost_drop(int lost, const struct lost_entry *e, struct err *err) NODISCARD;
void lost_tidy(int lost); /* what a node that died was removing */
