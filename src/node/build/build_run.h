/* build_run.h - one build, from its recipe to a snapshot that sandboxes are made of.
 *
 *	ground -> steps that are found -> a sandbox: step, step ... -> boot -> start, ready ->
 *snapshot
 *
 * The ground of a build is an image's, or what another build or `base` came to. The result of each
 * step is kept, so a later build begins with the last step that is the same. At the end the disk is
 * booted afresh, with the sizes that were asked for.
 *
 * A build that does not fit this host any more has its last part again: booted from its own disk.
 *
 * Nothing of it survives node: its sandboxes are ended by the next node, its steps stay.
 */
#pragma once

#include "node/build/build_image.h"
#include "node/build/output_lines.h"
#include "node/build/recipe.h"
#include "node/build/step_key.h"
#include "node/catalog/catalog.h"
#include "node/life/builder.h"
#include "node/links/images_client.h"
#include "node/template/grounds.h"
#include "vm/agent_exec.h"
#include "vm/agent_upload.h"

enum {
	BUILD_RUN_MS = 60 * 60 * 1000,       /* all of it */
	BUILD_STEP_MS = 55 * 60 * 1000,      /* one command */
	BUILD_READY_ALL_MS = 10 * 60 * 1000, /* until a ready command works */
	BUILD_READY_AGAIN_MS = 2 * 1000,
	BUILD_BASE_AGAIN_MS = 100,    /* after a look whether the host's template is there */
	BUILD_HEAR_MAX = 256 * 1024,  /* bytes of output in a while */
	BUILD_HEAR_MS = 50,           /* such a while: then more is read */
	BUILD_STEP_KEEP = 256 * 1024, /* bytes kept of what a script prints */
	BUILD_NAME_MAX = 16,          /* "base", "finalize", a step's number */
};

struct build_run;
typedef void build_run_next_fn(struct build_run *r, const struct agent_exec_result *ret,
			       const struct err *err);
struct build_taking;

struct build_run {
	struct node *node;
	struct build *build;       /* the catalog's, which stays until it is told the end */
	char name[BUILD_NAME_MAX]; /* of what is done now, for its log and its failure */
	struct recipe recipe;
	struct build_context context;
	char key[STEP_KEY_LENGTH + 1]; /* of what there is now */
	size_t next;                   /* the step that comes */
	bool forced;                   /* nothing more is looked for */
	bool refreezes;      /* its last part alone, of a build that is ready (refreeze.h) */
	enum err_code why;   /* of the failure that is told */
	struct snapshot *at; /* held: what there is now; NULL: `ground` alone */
	char ground[NODE_ID_MAX + 1]; /* "": `base` */
	struct images_make image;
	struct ground_want ground_want;
	int disk; /* of the image, read; -1: none */
	struct build_image from_image;
	char source[BUILD_SOURCE_MAX + 1];
	struct builder builder;
	struct builder_dial dial;
	struct agent_exec exec, start;
	struct agent_upload upload;
	struct build_taking *taking; /* NULL: none under way */
	struct output_lines out, said;
	struct buf script;
	struct bytes user; /* of the command that is run */
	uint64_t most_ms;  /* that it may take */
	bool logged;       /* what it says goes to the log */
	build_run_next_fn *on_run;
	bool is_start; /* the dialled stream is for the start command */
	uint64_t ready_until_ms;
	size_t heard;                           /* bytes, since it was last calm */
	void (*with_base)(struct build_run *r); /* what waits for the host's own template */
	struct timer deadline, again, calm, base_again;
	void (*on_over)(struct build_run *r); /* the last call: it may be freed */
	uint64_t turn; /* the last that its team had; 0: none that anybody remembers */
	struct build_run *list_next, **list_prev;
};

/* Begins at once; on_over comes later, never from inside. */
void build_run_begin(struct build_run *r);
void build_run_cancel(struct build_run *r); /* the catalog is told, then on_over */
void build_run_drop(struct build_run *r);   /* at node's end: nobody is told */
