/* build_verbs.c - a build is begun, looked at, cancelled. */
#include "node/build/builds.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/catalog/catalog_change.h"
#include "node/catalog/catalog_json.h"
#include "node/catalog/template_verbs.h"
#include "node/node.h"

enum { SPEC_DEPTH = 6, QUERY_DEPTH = 2 };

static int no_build(const char *id, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, 0, "build '%s' not found", id);
}

/* Of the team's template; of an operator's request by its id alone. NULL: *err. */
static struct build *find(struct node *n, const struct node_request *rq, struct err *err)
{
	struct template *t;
	struct build *b;

	if (!rq->team[0] && !rq->template_id[0]) {
		b = catalog_build_anywhere(n, rq->id);
	} else {
		t = catalog_own(n, rq->team, rq->template_id, err);
		if (!t)
			return NULL;
		b = catalog_build(t, rq->id);
	}
	if (!b)
		no_build(rq->id, err);
	return b;
}

/* --- begin ---------------------------------------------------------------------------------- */

static int take_from(struct build *b, const json_t *spec, struct err *err)
{
	struct template *t = b->template;
	struct bytes from = { 0 }, tag = { 0 };
	char name[NODE_ID_MAX + 1], tag_name[NODE_ID_MAX + 1];
	struct snapshot *p;

	if (json_may_string(spec, "fromTemplate", &from, err) < 0 ||
	    json_may_string(spec, "fromTag", &tag, err) < 0)
		return -1;
	if (from.len == 0)
		return 0;
	if (!bytes_to_str(from, name, sizeof(name)) || !bytes_to_str(tag, tag_name, sizeof(name)))
		return err_set(err, ERR_INVALID, 0, "fromTemplate is not valid");
	if (catalog_lookup(t->node, t->row.team, name, tag_name, &p, err) < 0)
		return -1;
	if (p)
		b->from = snapshot_hold(p);
	return 0;
}

/* They are kept until it is their turn. */
static size_t spec_bytes(const struct node *n, const char *team)
{
	size_t bytes = 0;

	for (const struct template *t = n->catalog.all; t; t = t->next)
		for (const struct build *b = t->builds; b; b = b->next)
			bytes += strcmp(t->row.team, team) == 0 ? b->spec_bytes : 0;
	return bytes;
}

static int check_begin(struct node *n, const struct build *b, struct bytes text, struct err *err)
{
	const char *team = b->template->row.team;

	if (b->row.status != BUILD_WAITING)
		return err_set(err, ERR_INVALID, 0, "build is not in waiting state");
	if (catalog_under_way(n, team) >= TEMPLATE_UNDER_WAY_MAX)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "too many builds: %d of this team run or wait",
			       TEMPLATE_UNDER_WAY_MAX);
	if (spec_bytes(n, team) + text.len > BUILD_SPECS_TEAM_MAX)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "too many large builds of this team run or wait: %d MiB in all",
			       BUILD_SPECS_TEAM_MAX / (1024 * 1024));
	return 0;
}

struct logs { /* of one team */
	uint64_t bytes;
	struct build *oldest; /* with a log; NULL: none */
};

static struct logs logs_of(const struct node *n, const char *team)
{
	struct logs all = { 0 };

	for (const struct template *t = n->catalog.all; t; t = t->next) {
		if (strcmp(t->row.team, team) != 0)
			continue;
		for (struct build *b = t->builds; b; b = b->next) {
			all.bytes += b->log_bytes;
			if (b->log_bytes > 0 &&
			    (!all.oldest || b->row.created_ns < all.oldest->row.created_ns))
				all.oldest = b;
		}
	}
	return all;
}

/* What builds said is kept as long as there is room: it counts for nothing else. */
static void trim_logs(const struct node *n, const char *team)
{
	struct logs all = logs_of(n, team);

	while (all.bytes > BUILD_LOGS_TEAM_MIB * 1024ull * 1024) {
		log_info("the log of build %s goes: its team has too much of them",
			 all.oldest->row.id);
		build_log_remove(n->catalog.builds_dir, all.oldest->row.id);
		all.oldest->log_bytes = 0;
		all = logs_of(n, team);
	}
}

static void on_begun(struct catalog_change *c)
{
	struct build *b = catalog_build_anywhere(c->node, c->build_id);

	if (!b || b->row.status != BUILD_BUILDING)
		return;
	b->begun = true;
	builds_begin(c->node, b);
}

static int begin(struct node *n, struct build *b, struct bytes text, struct err *err)
{
	if (check_begin(n, b, text, err) < 0 ||
	    json_decode(text, NODE_FILE_TEXT_MAX, SPEC_DEPTH, &b->spec, err) < 0)
		return -1;
	if (take_from(b, b->spec, err) < 0 ||
	    build_log_open(&b->log, n->catalog.builds_dir, b->row.id, err) < 0) {
		build_unprepare(b);
		return -1;
	}
	b->spec_bytes = text.len;
	b->log_bytes = 0; /* it is new */
	trim_logs(n, b->template->row.team);
	return 0;
}

static void start(struct node *n, struct door_asked *a, struct build *b, struct bytes text)
{
	struct catalog_change *c;
	struct err err;

	if (begin(n, b, text, &err) < 0) {
		door_refuse(a, &err);
		return;
	}
	c = change_begin(b->template, b, a);
	if (!c) {
		build_unprepare(b);
		return;
	}
	b->row.status = BUILD_BUILDING;
	b->template->row.updated_ns = clock_wall_ns();
	c->on_written = on_begun;
	change_write(c);
}

void build_start_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	struct err err;
	struct build *b = find(n, rq, &err);

	if (b)
		start(n, a, b, text);
	else
		door_refuse(a, &err);
}

void import_done_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	AUTO(buf_done) struct buf spec = BUF_MAX(NODE_TEXT_MAX);
	struct err err;
	struct build *b = find(n, rq, &err);

	(void)text;
	if (b && build_archive_whole(&b->archive, &err) == 0 &&
	    json_encode(b->archive.spec, &spec, &err) == 0)
		start(n, a, b, buf_view(&spec));
	else
		door_refuse(a, &err);
}

/* --- look ----------------------------------------------------------------------------------- */

static int take_level(struct bytes text, enum build_level *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct bytes level = { 0 };

	*ret = BUILD_DEBUG;
	if (text.len == 0)
		return 0;
	if (json_decode(text, NODE_TEXT_MAX, QUERY_DEPTH, &body, err) < 0 ||
	    json_may_string(body, "level", &level, err) < 0)
		return -1;
	if (level.len > 0 && !build_level_named(level, ret))
		return err_set(err, ERR_INVALID, 0, "level is not valid");
	return 0;
}

/* {..., "logEntries":[...]}: the lines go as they are, without being parsed. */
static int status_text(const struct build *b, const struct build_log_query *q, struct buf *out,
		       struct err *err)
{
	AUTO(json_decrefp) json_t *head = build_json(b);
	int dir = b->template->node->catalog.builds_dir;

	if (!head)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "an answer");
	if (json_encode(head, out, err) < 0)
		return -1;
	out->len--; /* its last brace */
	if (buf_add(out, BYTES_LIT(",\"logEntries\":"), err) < 0)
		return -1;
	out->max--;
	if (build_log_read(dir, b->row.id, q, out, err) < 0)
		return -1;
	out->max++;
	return buf_add(out, BYTES_LIT("}"), err);
}

void build_status_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		      struct bytes text)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_MESSAGE_MAX - sizeof(struct node_reply));
	struct build_log_query q = { .offset = rq->after_ns,
				     .after_ms = rq->until_ns / NSEC_PER_MSEC,
				     .newest_first = rq->flags & NODE_NEWEST,
				     .limit = rq->count && rq->count < BUILD_PAGE_MAX
						      ? rq->count
						      : BUILD_PAGE_MAX };
	struct err err;
	const struct build *b = find(n, rq, &err);

	if (!b || take_level(text, &q.least, &err) < 0 || status_text(b, &q, &out, &err) < 0)
		door_refuse(a, &err);
	else
		door_answer(a, &(struct node_reply){ 0 }, buf_view(&out), NULL, 0);
}

/* --- cancel --------------------------------------------------------------------------------- */

/* One that ended stays as it is. */
void build_cancel_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		      struct bytes text)
{
	struct err err;
	struct build *b = find(n, rq, &err);

	(void)text;
	if (!b) {
		door_refuse(a, &err);
		return;
	}
	door_answer(a, &(struct node_reply){ 0 }, (struct bytes){ 0 }, NULL, 0);
	if (b->row.status == BUILD_BUILDING && b->begun)
		builds_cancel(n, b);
	else if (b->row.status == BUILD_WAITING || b->row.status == BUILD_BUILDING)
		build_cancelled(b);
}
