/* grounds.h - templates of other disks than `base`: one for each image that builds begin with.
 *
 *	image-INPUTS-BUILD: as base-INPUTS-BUILD, see base_template.h
 *
 * A ground is found again by what its disk was made of, or built: one at a time, when `base` is
 * ready. The rules of `base` hold: one that is damaged is kept and not used, one that a sandbox, a
 * snapshot or a step differs from is never dropped. Of those that nothing needs a few are kept for
 * the next build: for `grounds_unused_h`, and while there is room on the disk.
 */
#pragma once

#include "node/template/template_build.h"
#include "node/template/base_find.h"

enum {
	GROUND_SOURCE_MAX = 511, /* bytes of a source */
	GROUNDS_SPARE = 4,       /* that nothing needs; those needed last are kept */
	GROUNDS_SCAN_MAX = 1024, /* looked at, to find what may go */
};

/* Whatever decides what is on the disk: the digest of the image, the agent in it, its size. In
 * words of whoever makes the disk: others mean another ground. */
struct ground_spec { /* borrowed for the call */
	const char *source;
	int disk; /* of it, read; taken in any case */
};

struct ground_want;
/* Once, from the loop. `id`: of a template for builder_spec.ground, to be used before this returns
 * or nothing keeps it. */
typedef void ground_done_fn(struct ground_want *w, const char *id, const struct err *err);
struct ground_want { /* embedded by its owner; all zero: nothing under way */
	ground_done_fn *on_done;
	struct node *node;
	char inputs[GROUND_INPUTS_SIZE]; /* "" until its turn */
	char source[GROUND_SOURCE_MAX + 1];
	int disk;
	struct ground_want *next, **prev;
};

struct grounds {
	struct ground_want *wants; /* the newest first */
	struct timer turn;
	/* What is built now, also when nobody waits for it any more: */
	struct template_build *build; /* NULL: nothing */
	struct template_build_user build_user;
	char inputs[GROUND_INPUTS_SIZE], id[NODE_ID_MAX + 1];
	struct buf ca;
	struct link_call drop;
};

/* Is there one, and which? So that nobody makes a disk in vain. False also before warden was
 * reached. */
bool grounds_find(struct node *n, const char *source, char ret_id[static NODE_ID_MAX + 1]);
/* Found or built. Failure (-1): no callback follows. */
int grounds_want(struct ground_want *w, struct node *n, const struct ground_spec *spec,
		 ground_done_fn *on_done, struct err *err) NODISCARD;
/* No callback; a build goes on, for the next; fine when nothing is under way. */
void ground_want_cancel(struct ground_want *w);

void grounds_open(struct node *n);
void grounds_close(struct node *n); /* wants are cancelled */
void grounds_soon(struct node *n);  /* something changed: see whether anything is to be done */
bool ground_is(const char *id);     /* by its name */
bool grounds_builds(const struct node *n, const char *vm_id); /* is that the VM of a build? */
