/* base_known.h - which templates are whole, damaged or gone, who needs them, and which may go. */
#pragma once

#include "node/files/sandbox_files.h"
#include "wire/json.h"

enum {
	BASE_READ_AGAIN_MS = 10 * 1000, /* a damaged one: not more often, however many ask */
	BASE_KNOWN_MAX = 256,           /* templates; of more nothing is remembered */
};

struct base_known { /* of one, as long as node lives */
	char id[NODE_ID_MAX + 1];
	bool read, absent; /* what sandboxes need of it: was read; is not there */
	uint32_t bad;      /* which of it is damaged: bits of enum manifest_file */
	bool unfit;        /* no new sandbox is made of it: something of it is damaged */
	uint64_t at_ms;    /* when it was read, by the loop's clock */
	char why[128];     /* for people: what is wrong; "" nothing */
	char vmm[MANIFEST_TEXT_MAX + 1]; /* which it was made with; "": not known */
	struct base_known *next;
};

struct node;
void base_fill_order(const struct node *n, struct files_order *o); /* of o->template_id */
void base_learn(struct node *n, const char *id, const struct files_opened *got);
/* False: it cannot be remembered. */
bool base_learn_unfit(struct node *n, const char *id, const struct err *why);
void base_learn_whole(struct node *n, const char *id);    /* all of it was read, or just made */
bool base_is_unfit(const struct node *n, const char *id); /* or damaged */
bool base_has_row(const char *id,
		  void *node); /* a folder of what is saved: for files_all_known() */
bool base_in_use(const struct node *n, const char *id);
void base_drop_old(struct node *n);
void base_read_used(struct node *n); /* those in use that were not read yet, one after the other */
/* Paused sandboxes of templates whose memory fits another VMM than the one here: those of which it
 * is known, which says nothing of those of snapshots. */
size_t base_saved_elsewhere(const struct node *n);
void base_known_close(struct node *n);
/* Those that are damaged, or in use and gone: as entries of NODE_TEMPLATES, appended. */
int base_describe_lost(const struct node *n, json_t *to, struct err *err) NODISCARD;
json_t *base_lost_ids(const struct node *n); /* an array; NULL: no memory */
