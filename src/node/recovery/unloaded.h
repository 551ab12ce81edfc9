/* unloaded.h - what is saved and could not be loaded when somebody wanted it: damaged, unreadable,
 * or saved by another QEMU.
 *
 * It stays as it is, and so do its files. An operator is told of it until it was loaded, or is no
 * more. After a restart it is not known before somebody wants it again.
 */
#pragma once

#include "node/files/lost.h"
#include "wire/json.h"

enum {
	UNLOADED_MAX = 64, /* then the longest known is forgotten */
	UNLOADED_WHY_MAX = 160,
};

struct unloaded {
	struct unloaded_one {
		enum lost_kind kind;
		char id[NODE_ID_MAX + 1], why[UNLOADED_WHY_MAX];
	} all[UNLOADED_MAX]; /* the longest known first */
	size_t n;
};

struct node;

/* `why`: NULL: it was loaded. What is told of elsewhere is no news: a template that is lost, files
 * that are not there, a full disk. */
void unloaded_note(struct node *n, enum lost_kind kind, const char *id, const struct err *why);
json_t *unloaded_json(const struct node *n); /* [{"id", "kind", "why"}]; NULL: no memory */
