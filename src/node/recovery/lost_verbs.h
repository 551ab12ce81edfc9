/* lost_verbs.h - what an operator may do with what is lost; see lost.h. */
#pragma once

#include "node/life/requests.h"

enum {
	LOST_PAGE = 200,   /* of one list */
	LOST_JOBS_MAX = 8, /* under way; more are refused */
};

verb_fn lost_list_ask;    /* NODE_LOST_LIST */
verb_fn lost_restore_ask; /* NODE_LOST_RESTORE */
verb_fn lost_drop_ask;    /* NODE_LOST_DROP */
void lost_jobs_close(struct node *n);
/* {"lost", "lostBytes", "filesMissing", "savedElsewhere", "unloaded": [], "journalFailure"} are
 * added. */
void lost_status(const struct node *n, json_t *status);
