/* sweep_rows.h - rows of what is saved: is the folder there, or was it set aside? is it described?
 */
#pragma once

#include "node/files/lost.h"

struct node;

struct saved_row {
	char id[NODE_ID_MAX + 1];
	enum lost_kind kind;
	struct lost_save save;
	bool missing, undescribed; /* no folder; a folder without a description */
	bool back;                 /* it was missing */
};

struct needed_id {
	char id[NODE_ID_MAX + 1];
};

struct rows_look {
	struct saved_row *all;
	size_t n;
	struct needed_id *needed; /* snapshots without a row that sandboxes were made of */
	size_t n_needed;
};

int rows_list(struct node *n, struct rows_look *ret, struct err *err) NODISCARD;
void rows_look(struct rows_look *r, int sandboxes, int snapshots); /* blocks */
size_t rows_look_missing(const struct rows_look *r);
bool rows_look_need(const struct rows_look *r, const char *snapshot);
/* Those that are missing, of `all` that is lost, get their folders back, which are no longer lost:
 * an older journal had no rows of them. Another save of the same stays where it is. Blocks. */
void rows_bring_back(struct rows_look *r, int sandboxes, int snapshots, int lost,
		     struct lost_list *all);
void rows_are_back(struct node *n, const struct rows_look *r); /* on the loop, after it */
struct sandbox;
struct snapshot;
struct lost_save rows_save(const struct sandbox *s);
struct lost_save rows_save_snapshot(const struct snapshot *p);
void rows_look_done(struct rows_look *r);

/* Those that lack a description get one, one after the other. Takes `r`. */
void rows_describe(struct node *n, struct rows_look *r);
void rows_describe_close(struct node *n);
