/* catalog_change.h - a change of the catalog: made in memory at once, so that the next request sees
 * it; answered when it is on disk; undone in memory when it cannot be written. */
#pragma once

#include "node/catalog/catalog.h"

struct catalog_change {
	struct node *node;
	struct door_asked *asked;          /* NULL: nobody waits */
	char template_id[NODE_ID_MAX + 1]; /* of what is changed */
	char build_id[BUILD_ID_SIZE];      /* "": no build is */
	bool made_template, made_build;    /* it is new */
	bool removes;                      /* the template goes; it is `going` */
	struct journal_template before;    /* as they were, to be undone */
	struct template_tags before_tags;
	enum build_status before_status;
	void (*on_written)(struct catalog_change *c); /* NULL: answered, and that is all */
	json_t *answer;                               /* NULL: an empty one */
	struct journal_write write;
	struct catalog_change *next, **prev;
};

/* `t` and `b` (may be NULL) are about to be changed. NULL: no memory, and `a` was refused. */
struct catalog_change *change_begin(struct template *t, struct build *b, struct door_asked *a);
/* They were changed. Takes the change. */
void change_write(struct catalog_change *c);
void change_drop(
	struct catalog_change *c); /* nothing was changed after all; `asked` is the caller's */
void changes_close(struct node *n);
