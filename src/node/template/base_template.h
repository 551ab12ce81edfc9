/* base_template.h - the template `base`: checked when node starts, built when it does not fit.
 *
 * Its id is base-INPUTS-BUILD. INPUTS says what it was made of: another kernel, disk, QEMU or
 * machine gives another template. BUILD is drawn for each build, for no two are the same: what was
 * saved as a difference from one is nonsense on the other. One built before there was a BUILD is
 * called base-INPUTS.
 */
#pragma once

#include "node/protocol.h"
#include "node/template/base_known.h"
#include "node/template/base_trust.h"
#include "node/template/template_build.h"

#define BASE_ALIAS "base"

/* Run in it before it is taken: what a sandbox's first command reads and needs is in the memory
 * that all share then (decision 0018). A disk without Python is fine. */
#define BASE_FIRST_COMMAND "python3 -c pass || true"

enum {
	BASE_INPUTS_LENGTH = sizeof(BASE_ALIAS "-") - 1 + 12,
	BASE_BUILD_LENGTH = 8,
	BASE_AGAIN_MS = 5 * 1000, /* after a failure, twice as long after the next, */
	BASE_AGAIN_MAX_MS = 80 * 1000,
};

enum base_state {
	BASE_UNKNOWN,  /* warden has not been asked yet */
	BASE_CHECKING, /* its files are read */
	BASE_BUILDING,
	BASE_WARMING,
	BASE_READY,
	BASE_FAILED, /* `why`; tried again after a while */
};

struct base_template {
	enum base_state state;
	char inputs[BASE_INPUTS_LENGTH + 1]; /* "" until warden's facts are known */
	char id[NODE_ID_MAX + 1];            /* the same; its name, or that of its build */
	uint64_t again_ms;                   /* the last pause after a failure */
	struct base_known *known;
	struct files_call reading; /* of `read_id`, base_read_used() */
	char read_id[NODE_ID_MAX + 1];
	struct manifest manifest;
	struct manifest_facts facts; /* of this host */
	int kernel,
		disk; /* what it is made of, opened before node gave up its power; -1: not there */
	bool stale;   /* what it is made of has changed while it was made */
	uint32_t disk_mib;
	char packages[MANIFEST_PACKAGES_MAX + 1]; /* of the last one that was ready */
	struct base_trust trust;
	struct err why;
	struct link_call call;
	struct link_call drop;
	struct template_watcher watcher;
	struct template_job *job;
	struct template_build *build;
	struct template_build_user build_user;
	struct timer again;
	uint64_t spawned_ns, spawns; /* sandboxes made of it, since node began; 0: none */
};

struct node;
void base_open(struct node *n);
void base_close(struct node *n);

/* Something changed (warden is up, VMs of nobody are gone): see whether anything is to be done. */
void base_turn(struct node *n);
void base_warden_up(struct node *n);                   /* its facts may be others now */
void base_look_again(struct node *n, const char *why); /* what it is made of has changed */

/* What a snapshot must fit to be loaded here. All zero before warden was reached. */
void base_facts_here(const struct node *n, struct manifest_facts *ret);
void base_facts_sized(const struct node *n, uint32_t vcpus, uint32_t memory_mib,
		      struct manifest_facts *ret);         /* the same, of a VM of these sizes */
bool base_is(const struct node *n, const char *name);      /* its alias, or any id of its inputs */
bool base_builds(const struct node *n, const char *vm_id); /* is that the VM of its build? */
/* The text of NODE_TEMPLATES, appended; for an operator with what it takes and who uses it. */
int base_describe(const struct node *n, bool operator, struct buf * out, struct err *err) NODISCARD;
