/* aside.h - who asks for what is set aside is told so, not that there is no such thing.
 *
 * Of what is in no row node knows whose it is when it has looked at it, on a thread (sweep.h).
 * Until then all who ask are told to ask again; after that its own team is told, and nobody else.
 */
#pragma once

#include "node/files/lost.h"

struct orphans;

struct aside {
	struct aside_one {
		enum lost_kind kind;
		char id[NODE_ID_MAX + 1];
		char team[NODE_ID_MAX + 1]; /* "": not known yet */
	} *all;                             /* by id; owned */
	size_t n;
};

struct node;
void aside_expect(struct node *n, const struct orphans *found); /* at start */
void aside_learn(struct node *n, const struct lost_list *all);  /* in place of what was known */
/* From now on: what ends was saved, which a journal of before did not know. */
void aside_add(struct node *n, enum lost_kind kind, const char *id, const char *team);
void aside_forget(struct node *n, const char *id); /* brought back, or dropped */
void aside_close(struct node *n);

/* True: it is, and *err says so: ERR_UNAVAILABLE. No team: an operator asks. */
bool aside_tells(const struct node *n, enum lost_kind kind, const char *team, const char *id,
		 struct err *err);
