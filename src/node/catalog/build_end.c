/* build_end.c - what a build tells: lines of its log, and how it ended. See builds.h. */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/build/builds.h"
#include "node/catalog/catalog_change.h"
#include "node/node.h"

void build_log(struct build *b, enum build_level level, const char *step, struct bytes message)
{
	struct bytes line;

	while (bytes_next(&message, '\n', &line))
		build_log_add(&b->log, level, step, line);
}

/* The build is over: what it kept for its time goes. */
static void put_away(struct build *b)
{
	b->log_bytes = b->log.bytes;
	build_unprepare(b);
	b->row.finished_ns = clock_wall_ns();
	b->template->row.updated_ns = b->row.finished_ns;
}

static void note(struct build *b)
{
	struct catalog_change *c = change_begin(b->template, b, NULL);

	if (c)
		change_write(c);
	else
		log_error("build %s: no memory to write down how it ended", b->row.id);
	b->noting = b->noting && c;
}

static void fail(struct build *b, const char *step, const char *message)
{
	log_info("build %s of template %s failed: %s%s%s", b->row.id, b->template->row.id,
		 step[0] ? "step " : "", step, step[0] ? "" : "no step");
	build_log(b, BUILD_ERRORS, step, bytes_str(message));
	put_away(b);
	b->row.status = BUILD_ERROR;
	snprintf(b->row.step, sizeof(b->row.step), "%s", step);
	free(b->row.reason);
	b->row.reason = strndup(message, BUILD_REASON_MAX);
	note(b);
}

void build_failed(struct build *b, const char *step, const char *message)
{
	b->template->node->figures.builds[BUILD_WAS_FAILED]++;
	fail(b, step, message);
}

void build_cancelled(struct build *b)
{
	b->template->node->figures.builds[BUILD_WAS_CANCELLED]++;
	fail(b, "", "the build was cancelled");
}

static void move_tags(struct build *b)
{
	struct bytes rest = bytes_str(b->row.tags ? b->row.tags : TEMPLATE_TAG), tag;
	char name[NODE_ID_MAX + 1];
	struct err err;

	while (bytes_next(&rest, ' ', &tag))
		if (bytes_to_str(tag, name, sizeof(name)) &&
		    template_tag(b->template, name, b, &err) < 0) {
			build_log_add(&b->log, BUILD_WARN, "finalize", bytes_str(err.msg));
			log_warn("build %s: tag %s: %s", b->row.id, name, err.msg);
		}
}

void build_ready(struct build *b, const char *snapshot_id, uint32_t disk_mib)
{
	struct snapshot *p = snapshots_by_id(b->template->node, snapshot_id);

	if (!p) {
		build_failed(b, "finalize", "what the build made is not there");
		return;
	}
	b->template->node->figures.builds[BUILD_WAS_READY]++;
	move_tags(b);
	put_away(b);
	b->row.status = BUILD_READY;
	b->row.disk_mib = disk_mib;
	snprintf(b->row.snapshot_id, sizeof(b->row.snapshot_id), "%s", snapshot_id);
	build_is(b, p);
	b->noting = true; /* a node that dies before has no such build */
	log_info("build %s of template %s is ready: snapshot %s", b->row.id, b->template->row.id,
		 snapshot_id);
	note(b);
}
