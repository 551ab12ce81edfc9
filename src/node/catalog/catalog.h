/* catalog.h - users' templates: their names, builds and tags.
 *
 *	template   a name of a team. It has builds
 *	build      waiting -> building -> ready: a snapshot; or error: a reason
 *	tag        a name of one build of a template that is ready
 *
 * A build that has a tag holds its snapshot. One that lost its last tag lets go of it: the snapshot
 * goes with the last sandbox that was made of it. All of it is in the journal, and here in memory.
 */
#pragma once

#include "base/uuid.h"
#include "node/build/refreeze.h"
#include "node/catalog/build_archive.h"
#include "node/catalog/build_log.h"
#include "node/catalog/catalog_sizes.h"
#include "node/door/gateway_door.h"
#include "node/journal/journal_catalog.h"
#include "wire/json.h"

enum {
	TEMPLATES_MAX = 1000,
	TEMPLATES_TEAM_MAX = TEMPLATES_MAX / 2, /* of one team */
	TEMPLATE_BUILDS_MAX = 32, /* then the oldest that ended and has no tag is forgotten */
	TEMPLATE_TAGS_MAX = 32,
	TEMPLATE_TAGS_TEXT_MAX = TEMPLATE_TAGS_MAX * 128 + 1, /* as a row has them */
	TEMPLATE_ID_LENGTH = 20,
	TEMPLATE_UNDER_WAY_MAX = 32, /* builds of one team that were begun and did not end */
	BUILD_ID_SIZE = UUID_SIZE,
	BUILD_REASON_MAX = 2048,
	BUILD_SPECS_TEAM_MAX =
		8 * 1024 * 1024,   /* bytes of what its builds under way are asked for */
	BUILD_LOGS_TEAM_MIB = 512, /* of all builds of a team that ended; then the oldest go */
};

#define TEMPLATE_TAG "default" /* when none was given */

struct node;
struct snapshot;
struct template;

struct template_tag {
	char name[NODE_ID_MAX + 1];
	char build_id[BUILD_ID_SIZE];
	uint64_t created_ns;
};

struct template_tags {
	struct template_tag all[TEMPLATE_TAGS_MAX];
	size_t n;
};

struct build {
	struct template *template;
	struct journal_build row;  /* its texts are owned */
	struct snapshot *snapshot; /* what came of it, see snapshot.build; NULL: nothing yet, or it
				    * is gone */
	bool held;                 /* the build holds it */
	size_t n_old; /* those that it had before it was frozen again, and that are not gone */
	struct refreeze refreeze;
	bool begun;  /* builds_begin() was called */
	bool noting; /* that it is ready: it is told when its row says so */
	/* BUILD_BUILDING: what is asked for, as builds.h says; and what it begins with: a snapshot,
	 * held, or an image or `base` (NULL) */
	json_t *spec;
	size_t spec_bytes;
	struct snapshot *from;
	struct build_archive archive; /* what an operator imports */
	struct build_log log;
	uint64_t log_bytes; /* of one that ended: what is there of its log */
	struct journal_write write;
	struct build *next, **prev; /* of its template, the newest first */
};

struct template
{
	struct node *node;
	struct journal_template row; /* without its tags, which are here: */
	struct template_tags tags;
	struct build *builds;
	size_t n_builds;
	bool going;                    /* it is being removed */
	struct template *next, **prev; /* the newest first */
};

struct catalog {
	struct template *all;
	size_t n;
	uint64_t last_ns; /* no two were created at the same time: lists are cut by it */
	struct catalog_change *changes;
	struct catalog_sizes sizes;
	int rows_dir;   /* data_dir/catalog: a folder with the description of each template */
	int builds_dir; /* data_dir/builds: the same of builds, and their logs */
};

/* At start, first: where templates and builds are described. */
int catalog_open(struct node *n, struct err *err) NODISCARD;
/* At start, after snapshots are loaded and before sandboxes are. A build that was under way is not
 * any more. */
int catalog_load(struct node *n, struct err *err) NODISCARD;
void catalog_close(struct node *n);

/* What NAME[:TAG] means to a team: `base` (*ret is NULL), a build of its own template, a snapshot
 * of its own, a build of somebody's public template. NAME is an id, NAMESPACE/NAME, or a name
 * alone: that is one of its own. */
int catalog_lookup(struct node *n, const char *team, const char *name, const char *tag,
		   struct snapshot **ret, struct err *err) NODISCARD;
/* A team's own, by id or name; "" as team: an operator's, by id. NULL: *err. */
struct template *catalog_own(struct node *n, const char *team, const char *name, struct err *err);
/* Anybody's that the name can mean; the team's own and public ones before others. NULL: none. */
struct template *catalog_any(const struct node *n, const char *team, const char *name);
struct template *catalog_by_id(const struct node *n, const char *id);        /* going ones, too */
struct build *catalog_build(const struct template *t, const char *build_id); /* NULL: none */
struct build *catalog_tagged(const struct template *t, const char *tag);     /* "": default */
struct build *catalog_build_anywhere(const struct node *n, const char *build_id); /* the same */

/* Sandboxes, and whoever else uses what came of its builds. */
size_t template_users(const struct template *t);
size_t build_users(const struct build *b);
size_t catalog_under_way(const struct node *n, const char *team);

/* --- changes of the table; the journal is told by catalog_change.h --- */

struct template *template_add(struct node *n, const struct journal_template *row); /* NULL: no
										       memory */
struct build *build_add(struct template *t, const struct journal_build *row);      /* the same */
void template_forget(struct template *t);
void build_forget(struct build *b);
/* Its tags name this build from now on. ERR_EXHAUSTED: too many. */
int template_tag(struct template *t, const char *tag, const struct build *b,
		 struct err *err) NODISCARD;
bool template_untag(struct template *t, const char *tag); /* false: there is none */
/* Tags were changed, for good: builds without one let go of their snapshots. */
void template_settle(struct template *t);
void template_tags_text(const struct template *t, struct buf *out); /* as a row has them */
/* It has room for one more build, after forgetting an old one. Else ERR_EXHAUSTED. */
int template_make_room(struct template *t, struct err *err) NODISCARD;
uint64_t catalog_now(struct catalog *c); /* later than all before */
/* Makes its folder, so that it can be described. A failure is logged: then it is not. */
void catalog_make_folder(int dir, const char *id);
void build_unprepare(struct build *b);              /* it is not begun after all, or is over */
void build_is(struct build *b, struct snapshot *p); /* p came of it */
/* It was frozen again: p is in the place of what it had, which goes with its last sandbox. The row
 * says so already. */
void build_replace(struct build *b, struct snapshot *p);
bool build_holds(const struct snapshot *p); /* is it what a build has, and holds? */

/* For snapshots.c. */
void catalog_snapshot_gone(struct snapshot *p);
/* One was taken with a name: when a template has it, it is a build of that. */
void catalog_snapshot_taken(struct snapshot *p);
/* A sandbox was made of it. */
void catalog_spawned(struct snapshot *p);
