/* tidy.h - what a node that died left in folders of sandboxes is removed, in the background.
 *
 * It costs room on the disk and does no other harm, so nobody waits for it: one folder after the
 * other, however many there are.
 */
#pragma once

#include "node/files/sandbox_files.h"

enum {
	TIDY_LOOKS = 64, /* sandboxes looked at in one turn: who is on its way comes later */
	TIDY_AGAIN_MS = 1000,
};

struct sandbox;
struct tidy {
	struct sandbox *first, **last; /* whose folders are to come */
	struct files_call call;        /* the one under way */
	struct timer turn;
};

struct node;
void tidy_open(struct node *n);
void tidy_close(struct node *n);
void tidy_later(struct sandbox *s);
void tidy_forget(struct sandbox *s); /* fine when there is nothing to tidy */
