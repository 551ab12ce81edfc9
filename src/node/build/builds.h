/* builds.h - the running of a build: what the catalog asks for, and what it is told.
 *
 * A build is one of the catalog's (catalog.h). It is BUILD_BUILDING from builds_begin() until one
 * of build_ready(), build_failed() and build_cancelled(), each of which ends it: then it is not to
 * be touched any more, and may be gone. It stays where it is until then: a template with a build
 * under way is not removed.
 *
 * What is asked for is build->spec, a JSON object that the gateway has checked:
 *	{"fromImage":"debian:stable", "sealed":"<base64>"     or
 *	 "fromTemplate":"name", "fromTag":"tag" or "",        or
 *	 "fromArchive":true,
 *	 "steps":[{"type":"RUN", "args":["..."], "force":false, "filesHash":"<64 hex>"}],
 *	 "startCmd":"", "readyCmd":"", "force":false}
 * Members that do not apply are missing. `sealed` is the registry's user name and password, for the
 * images daemon (images/protocol.h); in clear they are refused.
 * build->from is the snapshot of fromTemplate, held until the build ends; NULL with fromTemplate:
 * it is `base`. Of fromArchive the archive is in build->archive. The sizes that are wanted are in
 *build->row. What was uploaded for a step is opened by uploads_open().
 *
 * A build that is ready may be frozen again (refreeze.h): that runs here, too, within the same
 * number, and behind builds that wait unless somebody waits for a sandbox of it.
 *
 * All of it is called on the loop.
 */
#pragma once

#include "node/catalog/catalog.h"

struct build_run;
struct builds {
	struct build_run *running;
	struct {
		struct build_run *first, **last;
	} waiting;      /* in the order they came; teams take turns */
	uint64_t turns; /* that there were */
};

/* --- what the catalog asks for --------------------------------------------------------------- */

void builds_open(struct node *n);

/* Begin, or wait for others: the build is in the journal as BUILD_BUILDING. May end it at once. */
void builds_begin(struct node *n, struct build *b);
/* Somebody wants it to end: build_cancelled() comes, now or later; or it ended otherwise before. */
void builds_cancel(struct node *n, struct build *b);
/* Something that waits may begin now. */
void builds_more(struct node *n);
/* One that is frozen again (refreeze.h) ends, and nobody is told. Fine when it does not run. */
void builds_drop(struct node *n, struct build *b);
size_t builds_holding(const struct node *n, const struct snapshot *p); /* how many runs do */
size_t builds_running(const struct node *n);
size_t builds_waiting(const struct node *n);
/* When node stops, and at its end, before sandboxes and the catalog: nothing is told any more. */
void builds_close(struct node *n);

/* --- what the catalog is told: build_end.c --------------------------------------------------- */

/* One line. `step`: "base", "finalize", the number of a step from 1 on, or "". */
void build_log(struct build *b, enum build_level level, const char *step, struct bytes message);
/* `snapshot_id` came of it: a snapshot in the table, hidden, which the build holds from now on. Its
 * tags are moved. */
void build_ready(struct build *b, const char *snapshot_id, uint32_t disk_mib);
/* `message` is what the client reads: in the words that the SDKs expect. */
void build_failed(struct build *b, const char *step, const char *message);
void build_cancelled(struct build *b);
