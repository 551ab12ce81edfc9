/* sweep_rows.h - rows of what is saved: is the folder there, and described? */
#pragma once

#include "node/lost.h"

struct node;

struct saved_row {
	char id[NODE_ID_MAX + 1];
	enum lost_kind kind;
	bool missing, undescribed; /* no folder; a folder without a description */
};

struct rows_look {
	struct saved_row *all;
	size_t n;
};

int rows_list(struct node *n, struct rows_look *ret, struct err *err) NODISCARD;
void rows_look(struct rows_look *r, int sandboxes, int snapshots); /* blocks */
size_t rows_look_missing(const struct rows_look *r);
void rows_look_done(struct rows_look *r);

/* Those that lack a description get one, one after the other. Takes `r`. */
void rows_describe(struct node *n, struct rows_look *r);
void rows_describe_close(struct node *n);
