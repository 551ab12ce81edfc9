/* lossy.h - a file system that forgets on command what was never synced.
 *
 * Every file has two contents and every folder two tables of names: what processes see, and what is
 * durable. fsync of a file makes its bytes and its length durable, fsync of a folder its names, and
 * nothing else does: less than any real file system keeps. Owner, mode and times are durable at
 * once.
 *
 * Below the store's folder: live/N and durable/N are contents by number, tree/ is what the next
 * mount starts with, and what a cut leaves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { LOSSY_BLOCK = 4096, LOSSY_SECTOR = 512, LOSSY_NAME_MAX = 255, LOSSY_NODES_MAX = 1 << 20 };

struct node;

struct name {
	char *text;
	struct node *to;
	uint64_t place; /* in a listing: the same for as long as it is there */
	struct name *next;
};

struct node {
	uint64_t number; /* of its inode, and of its contents */
	struct stat st;  /* mode, owner, times; what else is in it is of the live content */
	struct name *names, *durable_names; /* of a folder */
	int live;                           /* its content; -1: a folder or a socket */
	int durable;       /* -1: `same`, or never synced, which is an empty file */
	bool same;         /* since the mount nothing was written: live is durable */
	uint8_t *dirty;    /* one for each block */
	size_t n_dirty;    /* how many it has */
	int64_t shrunk_to; /* the shortest it was since it was synced; -1: never shorter */
	bool changed;      /* since it was synced */
	uint64_t lookups;  /* the kernel's */
	uint64_t holds;    /* names of both tables and of unsynced changes */
};

/* A change of names that no folder's fsync has covered yet. A rename is one change of two names. */
struct change {
	struct change_part {
		struct node *folder; /* NULL: covered */
		char *name;
		struct node *to; /* NULL: removed */
	} parts[2];
	struct change *next;
};

struct store {
	int live, durable, tree; /* folders */
	struct node **nodes;     /* by number; 1 is the root */
	uint64_t n_nodes, n_names;
	struct change *changes, **changes_end;
	char lie[LOSSY_NAME_MAX + 1]; /* fsync of it, or of it.new, says yes and does nothing */
};

/* 0 or -errno, all of them. */
int store_open(struct store *s, const char *folder);
struct node *store_node(struct store *s, uint64_t number);
int node_make(struct store *s, mode_t mode, uid_t uid, gid_t gid, struct node **ret);
void node_put(struct store *s, struct node *n); /* frees what nobody knows any more */
void node_stat(const struct node *n, struct stat *ret);

int content_will_change(struct store *s, struct node *n); /* before its first write */
void content_changed(struct node *n, uint64_t at, uint64_t length);
int content_truncate(struct store *s, struct node *n, int64_t size);
int content_sync(struct store *s, struct node *n);

struct node *names_find(const struct node *folder, const char *name);
int names_add(struct store *s, struct node *folder, const char *name, struct node *to);
int names_remove(struct store *s, struct node *folder, const char *name);
int names_move(struct store *s, struct node *from, const char *old, struct node *to,
	       const char *new);
int names_sync(struct store *s, struct node *folder);
void names_apply(struct store *s, struct change *c, const struct node *folder); /* NULL: all */
/* Straight into both tables: when a tree is read. */
int names_found(struct store *s, struct node *folder, const char *name, struct node *to);

int tree_read(struct store *s);
/* `how`: none of what was not synced is kept; `first`: of changes and of each file's blocks the
 * first few, the last block torn; `some`: any. */
int cut(struct store *s, const char *how, uint64_t seed);
