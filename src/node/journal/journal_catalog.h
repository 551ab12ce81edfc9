/* journal_catalog.h - the rows of users' templates and of their builds. */
#pragma once

#include "node/journal/journal.h"

/* As it is in rows: only ever add at the end. */
enum build_status { BUILD_WAITING, BUILD_BUILDING, BUILD_READY, BUILD_ERROR, BUILD_STATUSES };

struct journal_template {
	char id[NODE_ID_MAX + 1];
	char team[NODE_ID_MAX + 1];
	char namespace[NODE_ID_MAX + 1]; /* of its team, in names: namespace/name */
	char name[NODE_ID_MAX + 1];      /* one of a team has it */
	uint64_t created_ns, updated_ns; /* since 1970 */
	uint64_t spawned_ns, spawns;     /* 0: never; as of the last write */
	uint32_t public;                 /* 1: other teams may make sandboxes of it */
	char *tags; /* "TAG BUILD CREATED_NS\n" each; NULL: none. Borrowed by calls */
};

struct journal_build {
	char id[NODE_ID_MAX + 1]; /* a UUID */
	char template_id[NODE_ID_MAX + 1];
	char snapshot_id[NODE_ID_MAX + 1]; /* BUILD_READY: what came of it */
	char step[NODE_ID_MAX + 1];        /* BUILD_ERROR: where; may be empty */
	uint64_t created_ns, finished_ns;  /* since 1970; 0: not yet */
	uint32_t status;                   /* enum build_status */
	uint32_t vcpus, memory_mib, disk_mib, free_disk_mib;
	uint32_t copied; /* 1: it is a snapshot of a sandbox that was given the template's name */
	char *tags;      /* that it gets when it is ready, with a space between them; or NULL */
	char *reason;    /* BUILD_ERROR: why; or NULL. Both borrowed by calls */
};

/* Insert or replace both or none of them, durable; each may be NULL. */
int journal_put_template(struct journal *j, struct journal_write *w,
			 const struct journal_template *t, const struct journal_build *b,
			 journal_done_fn *on_done, struct err *err) NODISCARD;
/* Its builds go with it. */
int journal_remove_template(struct journal *j, struct journal_write *w, const char *id,
			    journal_done_fn *on_done, struct err *err) NODISCARD;
int journal_remove_build(struct journal *j, struct journal_write *w, const char *id,
			 journal_done_fn *on_done, struct err *err) NODISCARD;

/* All, the oldest first; block (at start only). Odd ones as of journal_each(). */
typedef int journal_each_template_fn(const struct journal_template *row, void *context,
				     struct err *err);
typedef int journal_each_build_fn(const struct journal_build *row, void *context, struct err *err);
int journal_each_template(struct journal *j, journal_each_template_fn *each, journal_odd_fn *odd,
			  void *context, struct err *err) NODISCARD;
int journal_each_build(struct journal *j, journal_each_build_fn *each, journal_odd_fn *odd,
		       void *context, struct err *err) NODISCARD;
