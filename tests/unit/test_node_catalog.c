/* test_node_catalog.c - templates, builds and tags: rows, names, what survives a restart. */
#include "tests/unit/node_scene.h"

#include <jansson.h>
#include <sys/stat.h>

#include "node/build/builds.h"
#include "node/catalog/catalog_change.h"
#include "node/catalog/catalog_json.h"
#include "node/journal/rebuild.h"

enum { BODY = 64 * 1024 };
static char heard[BODY];

static struct node_reply take(struct node_request rq, const char *text)
{
	static uint8_t in[BODY];
	struct node_reply r;
	struct err err = { 0 };
	size_t len = 0, n_fds = 0;

	send_it(rq, text);
	while (fdmsg_recv_some(s.sock, in, sizeof(r), sizeof(in), &len, NULL, 0, &n_fds, &err) <
	       0) {
		assert_int_equal(err.sys, EAGAIN);
		assert_true(loop_turn(s.n->loop));
	}
	memcpy(&r, in, sizeof(r));
	snprintf(heard, sizeof(heard), "%.*s", (int)(len - sizeof(r)),
		 (const char *)in + sizeof(r));
	return r;
}

static struct node_request of(enum node_verb verb, const char *team, const char *name,
			      const char *tag, const char *id)
{
	struct node_request rq = { .verb = verb, .timeout_s = 60 };

	snprintf(rq.team, sizeof(rq.team), "%s", team);
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", name);
	snprintf(rq.template_tag, sizeof(rq.template_tag), "%s", tag);
	snprintf(rq.id, sizeof(rq.id), "%s", id);
	return rq;
}

/* The code that it is refused with; 0: it is not. */
static unsigned int ask(enum node_verb verb, const char *team, const char *name, const char *tag,
			const char *id, const char *text)
{
	return take(of(verb, team, name, tag, id), text).code;
}

/* A member of what was heard. */
static const char *member(const char *name)
{
	static char value[256];
	json_t *v = json_loads(heard, 0, NULL);
	const char *text = json_string_value(json_object_get(v, name));

	snprintf(value, sizeof(value), "%s", text ? text : "");
	json_decref(v);
	return value;
}

static void open_it(void)
{
	struct err err;

	scene_open();
	snprintf(s.n->set[SET_DATA_DIR].text, sizeof(s.n->set[0].text), "%s", s.dir);
	s.n->set[SET_TEMPLATE_VCPUS_MAX].number = 8;
	s.n->set[SET_TEMPLATE_MEMORY_MAX_MIB].number = 8192;
	if (catalog_open(s.n, &err) < 0 || snapshots_load(s.n, &err) < 0 ||
	    catalog_load(s.n, &err) < 0)
		fail_msg("%s", err.msg);
}

static void close_it(void)
{
	builds_close(s.n);
	catalog_close(s.n);
	scene_end();
}

/* As another node would find it. */
static void restart(void)
{
	struct err err;

	s.n->snapshots.closed = true;
	catalog_close(s.n);
	snapshots_close(s.n);
	journal_close(TAKE(s.n->journal));
	s.n->snapshots.closed = false;
	open_journal();
	if (catalog_open(s.n, &err) < 0 || snapshots_load(s.n, &err) < 0 ||
	    catalog_load(s.n, &err) < 0)
		fail_msg("%s", err.msg);
}

/* A waiting build; its id and its template's. */
static void create(const char *team, const char *name, const char *more, char id[static 64],
		   char build[static 64])
{
	char text[256];

	snprintf(text, sizeof(text), "{\"namespace\":\"%s-space\"%s}", team, more);
	assert_int_equal(ask(NODE_TEMPLATE_CREATE, team, name, "", "", text), 0);
	snprintf(id, 64, "%.63s", member("templateID"));
	snprintf(build, 64, "%.63s", member("buildID"));
	assert_int_equal(strlen(id), TEMPLATE_ID_LENGTH);
	assert_int_equal(strlen(build), BUILD_ID_SIZE - 1);
}

static struct snapshot *add_snapshot(const char *id, const char *team, const char *name,
				     const char *tag, bool hidden)
{
	struct journal_snapshot row = { .created_ns = clock_wall_ns(), .hidden = hidden };
	char path[160];
	struct snapshot *p;
	struct journal_write w = { 0 };
	struct err err;

	snprintf(row.id, sizeof(row.id), "%s", id);
	snprintf(row.team, sizeof(row.team), "%s", team);
	snprintf(row.name, sizeof(row.name), "%s", name);
	snprintf(row.tag, sizeof(row.tag), "%s", tag);
	snprintf(path, sizeof(path), "%s/snapshots/%s", s.dir, id);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(journal_put_snapshot(s.n->journal, &w, &row, NULL, &err), 0);
	journal_write_cancel(&w);
	p = snapshots_add(s.n, &row);
	assert_non_null(p);
	return p;
}

/* Has it come about? The loop turns until it has. */
static struct build *build_in(const char *id, enum build_status status)
{
	struct build *b;

	while (!(b = catalog_build_anywhere(s.n, id)) || b->row.status != status)
		assert_true(loop_turn(s.n->loop));
	return b;
}

/* As if it had been built. */
static struct build *make_ready(const char *build, const char *snapshot)
{
	struct build *b = catalog_build_anywhere(s.n, build);

	assert_non_null(b);
	add_snapshot(snapshot, b->template->row.team, "", "default", true);
	b->row.status = BUILD_BUILDING;
	build_ready(b, snapshot, 2048);
	while (s.n->catalog.changes)
		assert_true(loop_turn(s.n->loop));
	return b;
}

static struct snapshot *found(const char *team, const char *name, const char *tag)
{
	struct snapshot *p = NULL;
	struct err err;

	return catalog_lookup(s.n, team, name, tag, &p, &err) < 0 ? NULL : p;
}

/* --- create -------------------------------------------------------------------------------- */

static void test_same_name_is_the_same_template(void **state)
{
	char a[64], b[64], other[64], first[64], second[64], third[64];

	(void)state;
	open_it();
	create("red", "web", "", a, first);
	create("red", "web", ",\"tags\":[\"v1\",\"v2\",\"v1\"]", b, second);
	assert_string_equal(a, b);
	assert_string_not_equal(first, second);
	assert_non_null(strstr(heard, "\"tags\":[\"v1\",\"v2\"]"));
	create("blue", "web", "", other, third);
	assert_string_not_equal(a, other);
	close_it();
}

static void test_sizes_and_names(void **state)
{
	static const struct {
		const char *name, *text;
		unsigned int code;
	} all[] = {
		{ "ok", "{\"namespace\":\"r\",\"cpuCount\":1,\"memoryMB\":128}", 0 },
		{ "ok", "{\"namespace\":\"r\",\"cpuCount\":8,\"memoryMB\":8192}", 0 },
		{ "ok", "{\"namespace\":\"r\",\"cpuCount\":3}", ERR_INVALID },
		{ "ok", "{\"namespace\":\"r\",\"cpuCount\":0}", ERR_INVALID },
		{ "ok", "{\"namespace\":\"r\",\"cpuCount\":10}", ERR_INVALID },
		{ "ok", "{\"namespace\":\"r\",\"memoryMB\":127}", ERR_INVALID },
		{ "ok", "{\"namespace\":\"r\",\"memoryMB\":129}", ERR_INVALID },
		{ "ok", "{\"namespace\":\"r\",\"memoryMB\":8194}", ERR_INVALID },
		{ "ok", "{\"namespace\":\"r\",\"tags\":[\"a b\"]}", ERR_INVALID },
		{ "ok", "{\"namespace\":\"r\",\"tags\":[1]}", ERR_INVALID },
		{ "ok", "{}", ERR_INVALID },
		{ "ok", "[", ERR_INVALID },
		{ "No", "{\"namespace\":\"r\"}", ERR_INVALID },
		{ "a/b", "{\"namespace\":\"r\"}", ERR_INVALID },
		{ "base", "{\"namespace\":\"r\"}", ERR_EXISTS },
	};

	(void)state;
	open_it();
	for (size_t i = 0; i < COUNT(all); i++)
		if (ask(NODE_TEMPLATE_CREATE, "red", all[i].name, "", "", all[i].text) !=
		    all[i].code)
			fail_msg("%zu: %s %s", i, all[i].name, all[i].text);
	close_it();
}

/* Whatever one team names, others have room. */
static void test_one_team_does_not_take_all_templates(void **state)
{
	struct journal_template row = { .team = "red", .namespace = "r" };
	char id[64], build[64];

	(void)state;
	open_it();
	for (size_t i = 0; i < TEMPLATES_TEAM_MAX; i++) {
		snprintf(row.id, sizeof(row.id), "t%zu", i);
		snprintf(row.name, sizeof(row.name), "n%zu", i);
		assert_non_null(template_add(s.n, &row));
	}
	assert_int_equal(ask(NODE_TEMPLATE_CREATE, "red", "web", "", "", "{\"namespace\":\"r\"}"),
			 ERR_EXHAUSTED);
	assert_int_equal(ask(NODE_TEMPLATE_CREATE, "red", "n7", "", "", "{\"namespace\":\"r\"}"),
			 0); /* another build of one that is there */
	create("blue", "web", "", id, build);
	close_it();
}

/* The defaults are those of the reference. */
static void test_default_sizes(void **state)
{
	char id[64], build[64];
	struct build *b;

	(void)state;
	open_it();
	create("red", "web", "", id, build);
	b = catalog_build_anywhere(s.n, build);
	assert_int_equal(b->row.vcpus, 2);
	assert_int_equal(b->row.memory_mib, 1024);
	close_it();
}

static void test_builds_of_a_template_are_bounded(void **state)
{
	char id[64], build[64], first[64];

	(void)state;
	open_it();
	create("red", "web", "", id, first);
	make_ready(first, "snap1");
	for (size_t i = 0; i < 2 * TEMPLATE_BUILDS_MAX; i++)
		create("red", "web", "", id, build);
	assert_int_equal(s.n->catalog.all->n_builds, TEMPLATE_BUILDS_MAX);
	assert_non_null(catalog_build_anywhere(s.n, first)); /* it has a tag */
	assert_ptr_equal(found("red", "web", ""), snapshots_by_id(s.n, "snap1"));
	close_it();
}

/* --- builds -------------------------------------------------------------------------------- */

static void test_a_build_that_fails_says_why(void **state)
{
	char id[64], build[64];

	(void)state;
	open_it();
	create("red", "web", "", id, build);
	s.n->base.state = BASE_READY; /* builds wait for that */
	assert_int_equal(ask(NODE_BUILD_START, "blue", id, "", build, "{}"), ERR_NOT_FOUND);
	assert_int_equal(ask(NODE_BUILD_START, "red", id, "", build, "{\"fromImage\":\"debian\"}"),
			 0);
	build_in(build, BUILD_ERROR);
	assert_int_equal(ask(NODE_BUILD_STATUS, "red", id, "", build, ""), 0);
	assert_string_equal(member("status"), "error");
	assert_non_null(strstr(heard, "this server has no images daemon"));
	assert_non_null(strstr(heard, "\"logEntries\":[{"));
	assert_int_equal(ask(NODE_BUILD_START, "red", id, "", build, "{}"), ERR_INVALID);
	assert_int_equal(ask(NODE_BUILD_STATUS, "blue", id, "", build, ""), ERR_NOT_FOUND);
	assert_int_equal(ask(NODE_BUILD_STATUS, "", "", "", build, ""), 0); /* an operator */
	close_it();
}

/* --- archives ------------------------------------------------------------------------------ */

static void open_for_archives(char build[static 64])
{
	char id[64];

	open_it();
	s.n->set[SET_IMPORT_MAX_MIB].number = 1;
	s.n->base.state = BASE_READY;
	create("red", "web", "", id, build);
}

/* A descriptor to write it to; -1: refused with `code`. */
static int open_archive(const char *build, const char *text, unsigned int code)
{
	struct node_reply r = { 0 };
	struct err err = { 0 };
	size_t n_fds = 0, len = 0;
	uint8_t in[4096];
	int fd = -1;

	send_it(of(NODE_IMPORT_OPEN, "", "", "", build), text);
	while (fdmsg_recv_some(s.sock, in, sizeof(r), sizeof(in), &len, &fd, 1, &n_fds, &err) < 0) {
		assert_int_equal(err.sys, EAGAIN);
		assert_true(loop_turn(s.n->loop));
	}
	memcpy(&r, in, sizeof(r));
	assert_int_equal(r.code, code);
	assert_int_equal(n_fds, code ? 0 : 1);
	return code ? -1 : fd;
}

/* Its time to be looked at has come. */
static void look_at_archive(struct build *b)
{
	timer_start(&b->archive.stalled, 0);
	assert_true(loop_turn(s.n->loop));
}

static void test_an_archive_that_does_not_come_ends_its_build(void **state)
{
	struct build *b;
	char build[64];
	int fd;

	(void)state;
	open_for_archives(build);
	assert_int_equal(open_archive(build, "{\"size\":3}", ERR_UNAVAILABLE), -1); /* no daemon */
	s.n->images.link.path = "/nowhere";
	fd = open_archive(build, "{\"size\":3}", 0);
	b = catalog_build_anywhere(s.n, build);
	assert_int_equal(write(fd, "a", 1), 1);
	look_at_archive(b);
	assert_int_equal(b->row.status, BUILD_WAITING); /* it comes */
	look_at_archive(b);
	assert_int_equal(b->row.status, BUILD_ERROR);
	assert_non_null(strstr(b->row.reason, "did not come"));
	assert_int_equal(b->archive.fd, -1);
	close(fd);
	close_it();
}

static void test_an_archive_is_whole_and_within_its_limits(void **state)
{
	char build[64];
	int fd;

	(void)state;
	open_for_archives(build);
	s.n->images.link.path = "/nowhere";
	assert_int_equal(ask(NODE_IMPORT_DONE, "", "", "", build, ""), ERR_INVALID); /* none came */
	open_archive(build, "{\"size\":0}", ERR_INVALID);
	open_archive(build, "{}", ERR_INVALID);
	open_archive(build, "{\"size\":1048577}", ERR_EXHAUSTED);
	open_archive("none", "{\"size\":3}", ERR_NOT_FOUND);
	fd = open_archive(build, "{\"size\":3}", 0);
	open_archive(build, "{\"size\":3}", ERR_INVALID); /* another is on its way */
	assert_int_equal(write(fd, "ab", 2), 2);
	assert_int_equal(ask(NODE_IMPORT_DONE, "", "", "", build, ""), ERR_INVALID);
	assert_int_equal(catalog_build_anywhere(s.n, build)->row.status, BUILD_WAITING);
	assert_int_equal(write(fd, "c", 1), 1);
	s.n->images.link.path = ""; /* so that it ends at once */
	assert_int_equal(ask(NODE_IMPORT_DONE, "", "", "", build, ""), 0);
	assert_int_equal(build_in(build, BUILD_ERROR)->archive.fd, -1);
	close(fd);
	close_it();
}

/* What is asked for is kept until its turn. */
static void test_what_builds_of_a_team_ask_for_is_bounded(void **state)
{
	char id[64], first[64], next[64], other_id[64], other[64];

	(void)state;
	open_it();
	create("red", "web", "", id, first);
	create("red", "web", "", id, next);
	create("blue", "web", "", other_id, other);
	catalog_build_anywhere(s.n, first)->spec_bytes = BUILD_SPECS_TEAM_MAX;
	assert_int_equal(ask(NODE_BUILD_START, "red", id, "", next, "{\"fromImage\":\"debian\"}"),
			 ERR_EXHAUSTED);
	assert_int_equal(
		ask(NODE_BUILD_START, "blue", other_id, "", other, "{\"fromImage\":\"debian\"}"),
		0);
	build_in(other, BUILD_ERROR);
	assert_int_equal(catalog_build_anywhere(s.n, other)->spec_bytes, 0);
	close_it();
}

static void test_a_ready_build_is_found_by_its_tags(void **state)
{
	char id[64], build[64], next[64];
	struct snapshot *p, *q;

	(void)state;
	open_it();
	create("red", "web", ",\"tags\":[\"default\",\"v1\"]", id, build);
	assert_null(found("red", "web", "")); /* nothing is ready */
	p = make_ready(build, "snap1")->snapshot;
	assert_ptr_equal(found("red", "web", ""), p);
	assert_ptr_equal(found("red", id, "v1"), p);
	assert_ptr_equal(found("red", "red-space/web", "v1"), p);
	assert_null(found("red", "web", "v2"));
	assert_null(found("blue", "web", ""));
	assert_null(found("blue", "red-space/web", ""));
	create("red", "web", "", id, next);
	q = make_ready(next, "snap2")->snapshot;
	assert_ptr_equal(found("red", "web", ""), q); /* the tag moved */
	assert_ptr_equal(found("red", "web", "v1"), p);
	close_it();
}

static void test_a_build_without_tags_lets_go(void **state)
{
	char id[64], build[64], next[64];

	(void)state;
	open_it();
	create("red", "web", "", id, build);
	make_ready(build, "snap1");
	create("red", "web", "", id, next);
	make_ready(next, "snap2");
	while (snapshots_by_id(s.n, "snap1")) /* nobody uses it, nobody finds it */
		assert_true(loop_turn(s.n->loop));
	assert_null(catalog_build_anywhere(s.n, build)->snapshot);
	close_it();
}

static void test_public_ones_are_for_all(void **state)
{
	char id[64], build[64];
	struct snapshot *p, *own;

	(void)state;
	open_it();
	create("red", "web", "", id, build);
	p = make_ready(build, "snap1")->snapshot;
	assert_int_equal(ask(NODE_TEMPLATE_ALIAS, "blue", "web", "", "", ""), ERR_NOT_FOUND);
	assert_int_equal(ask(NODE_TEMPLATE_ALIAS, "blue", "red-space/web", "", "", ""), ERR_DENIED);
	assert_int_equal(ask(NODE_TEMPLATE_PUBLIC, "blue", "web", "", "", "{\"public\":true}"),
			 ERR_NOT_FOUND);
	assert_int_equal(ask(NODE_TEMPLATE_PUBLIC, "red", "web", "", "", "{\"public\":true}"), 0);
	assert_int_equal(ask(NODE_TEMPLATE_ALIAS, "blue", "red-space/web", "", "", ""), 0);
	assert_string_equal(member("templateID"), id);
	assert_ptr_equal(found("blue", "red-space/web", ""), p);
	/* nobody gets sandboxes of others by publishing a name */
	assert_int_equal(ask(NODE_TEMPLATE_ALIAS, "blue", "web", "", "", ""), ERR_NOT_FOUND);
	assert_null(found("blue", "web", ""));
	assert_int_equal(ask(NODE_TEMPLATE_GET, "blue", id, "", "", ""), ERR_NOT_FOUND);
	assert_int_equal(ask(NODE_SNAPSHOT_DELETE, "blue", id, "", "", ""), ERR_NOT_FOUND);
	/* somebody else's name does not take the place of one's own */
	own = add_snapshot("mine", "blue", "web", "default", false);
	assert_ptr_equal(found("blue", "web", ""), own);
	assert_ptr_equal(found("blue", id, ""), p);
	close_it();
}

static void test_the_shared_teams_names_are_for_all(void **state)
{
	char id[64], build[64], own_id[64], own_build[64];
	struct snapshot *p, *own;

	(void)state;
	open_it();
	snprintf(s.n->set[SET_SHARED_TEAM].text, sizeof(s.n->set[0].text), "red-space");
	create("red", "web", "", id, build);
	p = make_ready(build, "snap1")->snapshot;
	/* nothing tells of one that is not public */
	assert_int_equal(ask(NODE_TEMPLATE_ALIAS, "blue", "web", "", "", ""), ERR_NOT_FOUND);
	assert_null(found("blue", "web", ""));
	assert_int_equal(ask(NODE_TEMPLATE_PUBLIC, "red", "web", "", "", "{\"public\":true}"), 0);
	assert_int_equal(ask(NODE_TEMPLATE_ALIAS, "blue", "web", "", "", ""), 0);
	assert_ptr_equal(found("blue", "web", ""), p);
	/* it is used, and not written */
	assert_int_equal(ask(NODE_TEMPLATE_PUBLIC, "blue", "web", "", "", "{\"public\":false}"),
			 ERR_NOT_FOUND);
	/* a team's own of that name comes first */
	create("blue", "web", "", own_id, own_build);
	own = make_ready(own_build, "snap2")->snapshot;
	assert_ptr_equal(found("blue", "web", ""), own);
	assert_ptr_equal(found("green", "web", ""), p);
	close_it();
}

/* Whoever reads "ready" finds it after a restart: node may die at any instant. */
static void test_ready_is_told_when_it_is_on_disk(void **state)
{
	char id[64], build[64];
	struct build *b;

	(void)state;
	open_it();
	create("red", "web", "", id, build);
	b = catalog_build_anywhere(s.n, build);
	add_snapshot("snap1", "red", "", "default", true);
	b->row.status = BUILD_BUILDING;
	build_ready(b, "snap1", 2048);
	assert_string_equal(build_status_name(b), "building");
	while (strcmp(build_status_name(b), "building") == 0)
		assert_true(loop_turn(s.n->loop));
	assert_string_equal(build_status_name(b), "ready");
	restart();
	assert_string_equal(build_status_name(catalog_build_anywhere(s.n, build)), "ready");
	close_it();
}

/* --- tags ---------------------------------------------------------------------------------- */

static void test_tags(void **state)
{
	char id[64], build[64];

	(void)state;
	open_it();
	create("red", "web", "", id, build);
	assert_int_equal(ask(NODE_TAGS_ASSIGN, "red", "web", "", "", "{\"tags\":[\"v1\"]}"),
			 ERR_NOT_FOUND); /* not built */
	make_ready(build, "snap1");
	assert_int_equal(ask(NODE_TAGS_ASSIGN, "red", "web", "", "", "{\"tags\":[]}"), ERR_INVALID);
	assert_int_equal(ask(NODE_TAGS_ASSIGN, "red", "web", "", "", "{\"tags\":[\"v1\",\"v2\"]}"),
			 0);
	assert_string_equal(member("buildID"), build);
	assert_int_equal(ask(NODE_TAGS_ASSIGN, "blue", "web", "", "", "{\"tags\":[\"v1\"]}"),
			 ERR_NOT_FOUND);
	assert_int_equal(ask(NODE_TAGS_REMOVE, "red", "web", "", "", "{\"tags\":[\"default\"]}"),
			 ERR_INVALID);
	assert_int_equal(ask(NODE_TAGS_REMOVE, "red", "web", "", "", "{\"tags\":[\"v9\"]}"),
			 ERR_NOT_FOUND);
	assert_int_equal(ask(NODE_TAGS_REMOVE, "red", "web", "", "", "{\"tags\":[\"v1\"]}"), 0);
	assert_int_equal(ask(NODE_TAGS_LIST, "red", id, "", "", ""), 0);
	assert_null(strstr(heard, "v1"));
	assert_non_null(strstr(heard, "v2"));
	close_it();
}

/* All that were given are given, or none. */
static void test_too_many_tags(void **state)
{
	char id[64], build[64], text[2048] = "{\"tags\":[";
	size_t before;

	(void)state;
	open_it();
	create("red", "web", "", id, build);
	make_ready(build, "snap1");
	for (size_t i = 0; i < TEMPLATE_TAGS_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s\"t%zu\"",
			 i ? "," : "", i);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "]}");
	before = s.n->catalog.all->tags.n;
	assert_int_equal(ask(NODE_TAGS_ASSIGN, "red", "web", "", "", text), ERR_EXHAUSTED);
	assert_int_equal(s.n->catalog.all->tags.n, before);
	close_it();
}

/* --- snapshots have the same names ---------------------------------------------------------- */

static void test_a_template_of_a_snapshots_name_hides_no_tag(void **state)
{
	char id[64], build[64];
	struct snapshot *p, *old;

	(void)state;
	open_it();
	old = add_snapshot("old", "red", "web", "saved", false);
	assert_int_equal(ask(NODE_SNAPSHOT_DELETE, "", "web", "saved", "", ""), ERR_NOT_FOUND);
	create("red", "web", "", id, build);
	assert_ptr_equal(found("red", "web", "saved"), old);
	p = make_ready(build, "snap1")->snapshot;
	assert_ptr_equal(found("red", "web", ""), p);
	assert_ptr_equal(found("red", "web", "saved"), old);
	close_it();
}

static void test_a_snapshot_of_a_templates_name_is_a_build(void **state)
{
	char id[64], build[64];
	struct snapshot *p;

	(void)state;
	open_it();
	create("red", "web", "", id, build);
	make_ready(build, "snap1");
	p = add_snapshot("taken", "red", "web", "v5", false);
	catalog_snapshot_taken(p);
	while (s.n->catalog.changes)
		assert_true(loop_turn(s.n->loop));
	assert_ptr_equal(found("red", id, "v5"), p);
	assert_int_equal(s.n->catalog.all->n_builds, 2);
	restart();
	assert_ptr_equal(found("red", id, "v5"), snapshots_by_id(s.n, "taken"));
	assert_int_equal(ask(NODE_SNAPSHOT_DELETE, "red", "web", "v5", "", ""), 0);
	assert_null(found("red", id, "v5"));
	assert_non_null(found("red", id, ""));
	p = add_snapshot("again", "red", "web", "v6", false);
	catalog_snapshot_taken(p);
	assert_int_equal(ask(NODE_SNAPSHOTS, "red", "again", "", "", ""), 0);
	assert_non_null(strstr(heard, "\"sandboxes\":0"));
	assert_int_equal(ask(NODE_SNAPSHOT_DELETE, "red", "again", "", "", ""), 0);
	assert_null(found("red", id, "v6"));
	p = add_snapshot("last", "red", "web", "default", false);
	catalog_snapshot_taken(p);
	assert_int_equal(ask(NODE_SNAPSHOT_DELETE, "red", "web", "", "", ""), 0); /* all of it */
	assert_int_equal(s.n->catalog.n, 0);
	assert_null(found("red", "web", ""));
	close_it();
}

/* --- what is used stays --------------------------------------------------------------------- */

static void test_one_that_is_used_is_not_deleted(void **state)
{
	char id[64], build[64];
	struct snapshot *p;

	(void)state;
	open_it();
	create("red", "web", "", id, build);
	p = make_ready(build, "snap1")->snapshot;
	snapshot_hold(p);
	assert_int_equal(ask(NODE_SNAPSHOT_DELETE, "red", "web", "", "", ""), ERR_INVALID);
	snapshot_release(p);
	assert_int_equal(ask(NODE_SNAPSHOT_DELETE, "red", "web", "", "", ""), 0);
	assert_int_equal(s.n->catalog.n, 0);
	while (snapshots_by_id(s.n, "snap1"))
		assert_true(loop_turn(s.n->loop));
	assert_int_equal(ask(NODE_SNAPSHOT_DELETE, "red", "web", "", "", ""), ERR_NOT_FOUND);
	restart();
	assert_int_equal(s.n->catalog.n, 0);
	close_it();
}

static void test_a_sandbox_says_its_template(void **state)
{
	char id[64], build[64];
	struct sandbox *box;
	struct node_reply r;

	(void)state;
	open_it();
	create("red", "web", "", id, build);
	make_ready(build, "snap1");
	box = box_new();
	snprintf(box->info.team, sizeof(box->info.team), "red");
	snprintf(box->info.template_id, sizeof(box->info.template_id), "snap1");
	box->snapshot = snapshot_hold(snapshots_by_id(s.n, "snap1"));
	box_runs(box);
	r = take(of(NODE_GET, "red", "", "", box->info.id), "");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.sandbox.template_id, id);
	assert_string_equal(r.sandbox.alias, "web");
	close_it();
}

/* --- a restart ------------------------------------------------------------------------------ */

static void test_a_restart_keeps_rows(void **state)
{
	char id[64], ready[64], half[64], waits[64];

	(void)state;
	open_it();
	create("red", "web", ",\"tags\":[\"v1\",\"v2\"]", id, ready);
	make_ready(ready, "snap1");
	create("red", "web", "", id, half);
	catalog_build_anywhere(s.n, half)->row.status = BUILD_BUILDING;
	assert_int_equal(ask(NODE_TEMPLATE_PUBLIC, "red", "web", "", "", "{\"public\":true}"), 0);
	change_write(change_begin(s.n->catalog.all, catalog_build_anywhere(s.n, half), NULL));
	while (s.n->catalog.changes)
		assert_true(loop_turn(s.n->loop));
	create("red", "web", "", id, waits);
	restart();
	assert_int_equal(s.n->catalog.n, 1);
	assert_string_equal(s.n->catalog.all->row.namespace, "red-space");
	assert_int_equal(s.n->catalog.all->row.public, 1);
	assert_ptr_equal(found("red", "web", "v2"), snapshots_by_id(s.n, "snap1"));
	assert_int_equal(catalog_build_anywhere(s.n, waits)->row.status, BUILD_WAITING);
	assert_int_equal(ask(NODE_BUILD_STATUS, "red", id, "", half, ""), 0);
	assert_string_equal(member("status"), "error");
	assert_non_null(strstr(heard, "node was restarted"));
	restart(); /* and it stays so */
	assert_int_equal(catalog_build_anywhere(s.n, half)->row.status, BUILD_ERROR);
	close_it();
}

static struct rebuild_folders folders(void)
{
	return (struct rebuild_folders){ files_root(s.n->files), files_snapshots(s.n->files),
					 s.n->catalog.rows_dir, s.n->catalog.builds_dir };
}

static void describe_all(void)
{
	struct rebuild_folders f = folders();
	struct err err;

	if (journal_describe(s.n->journal, f.sandboxes, f.snapshots, &err) < 0 ||
	    journal_describe_catalog(s.n->journal, f.templates, f.builds, &err) < 0)
		fail_msg("%s", err.msg);
}

static void forget_journal(void)
{
	static const char *const names[] = { "", "-wal", "-shm" };
	char path[96];

	s.n->snapshots.closed = true;
	catalog_close(s.n);
	snapshots_close(s.n);
	journal_close(TAKE(s.n->journal));
	s.n->snapshots.closed = false;
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/journal.db%s", s.dir, names[i]);
		(void)!unlink(path);
	}
}

/* Without its journal a node finds what is ready, with its tags; not what was deleted. */
static void test_a_journal_made_again(void **state)
{
	char id[64], build[64], gone[64], other[64], path[160];
	struct rebuild_folders f;
	struct err err;

	(void)state;
	open_it();
	describe_all();
	create("red", "web", ",\"tags\":[\"v1\",\"v2\"]", id, build);
	make_ready(build, "snap1");
	snprintf(path, sizeof(path), "%s/snapshots/snap1/manifest", s.dir);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	create("red", "gone", "", gone, other);
	assert_int_equal(ask(NODE_SNAPSHOT_DELETE, "red", "gone", "", "", ""), 0);
	forget_journal();
	open_journal();
	assert_int_equal(catalog_open(s.n, &err), 0);
	f = folders();
	if (rebuild_new(s.n->journal, &f, &err) < 0 || snapshots_load(s.n, &err) < 0 ||
	    catalog_load(s.n, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(s.n->catalog.n, 1);
	assert_non_null(snapshots_by_id(s.n, "snap1"));
	assert_ptr_equal(found("red", "web", "v2"), snapshots_by_id(s.n, "snap1"));
	assert_string_equal(s.n->catalog.all->row.namespace, "red-space");
	close_it();
}

/* --- the log -------------------------------------------------------------------------------- */

static size_t lines_of(const char *build, const struct build_log_query *q)
{
	struct buf out = BUF_MAX(BODY - 1);
	struct err err;
	json_t *v;
	size_t n;

	assert_int_equal(build_log_read(s.n->catalog.builds_dir, build, q, &out, &err), 0);
	snprintf(heard, sizeof(heard), "%.*s", (int)out.len, (const char *)out.ptr);
	buf_done(&out);
	v = json_loads(heard, 0, NULL);
	assert_non_null(v);
	n = json_array_size(v);
	json_decref(v);
	return n;
}

static void test_pages_of_a_log(void **state)
{
	struct build_log l = BUILD_LOG_NONE;
	struct build_log_query q = { .limit = BUILD_PAGE_MAX };
	char line[64];
	struct err err;

	(void)state;
	open_it();
	assert_int_equal(lines_of("none", &q), 0);
	assert_int_equal(build_log_open(&l, s.n->catalog.builds_dir, "b1", &err), 0);
	for (size_t i = 0; i < 250; i++) {
		snprintf(line, sizeof(line), "line %zu \"\xff", i);
		build_log_add(&l, i % 50 == 0 ? BUILD_ERRORS : BUILD_INFO, i ? "1" : "",
			      bytes_str(line));
	}
	assert_int_equal(lines_of("b1", &q), 100);
	q.offset = 200;
	assert_int_equal(lines_of("b1", &q), 50);
	assert_non_null(strstr(heard, "line 200 "));
	q.offset = 250;
	assert_int_equal(lines_of("b1", &q), 0);
	q = (struct build_log_query){ .limit = 10, .least = BUILD_WARN, .offset = 3 };
	assert_int_equal(lines_of("b1", &q), 2);
	assert_non_null(strstr(heard, "line 150 "));
	q = (struct build_log_query){ .limit = 1, .newest_first = true };
	assert_int_equal(lines_of("b1", &q), 1);
	assert_non_null(strstr(heard, "line 249 "));
	build_log_close(&l);
	close_it();
}

static void test_a_log_is_bounded(void **state)
{
	struct build_log l = BUILD_LOG_NONE;
	struct build_log_query q = { .limit = 2, .newest_first = true };
	char line[2 * BUILD_MESSAGE_MAX];
	struct err err;

	(void)state;
	open_it();
	memset(line, 'x', sizeof(line));
	assert_int_equal(build_log_open(&l, s.n->catalog.builds_dir, "b1", &err), 0);
	for (size_t i = 0; i < BUILD_LINES_MAX + 10; i++)
		build_log_add(&l, BUILD_INFO, "", (struct bytes){ (uint8_t *)line, sizeof(line) });
	assert_true(l.full);
	assert_true(l.bytes <= BUILD_LOG_BYTES_MAX);
	assert_int_equal(lines_of("b1", &q), 2);
	assert_non_null(strstr(heard, "the log is full"));
	build_log_close(&l);
	close_it();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_name_is_the_same_template),
		cmocka_unit_test(test_sizes_and_names),
		cmocka_unit_test(test_one_team_does_not_take_all_templates),
		cmocka_unit_test(test_default_sizes),
		cmocka_unit_test(test_builds_of_a_template_are_bounded),
		cmocka_unit_test(test_a_build_that_fails_says_why),
		cmocka_unit_test(test_an_archive_that_does_not_come_ends_its_build),
		cmocka_unit_test(test_an_archive_is_whole_and_within_its_limits),
		cmocka_unit_test(test_what_builds_of_a_team_ask_for_is_bounded),
		cmocka_unit_test(test_a_ready_build_is_found_by_its_tags),
		cmocka_unit_test(test_a_build_without_tags_lets_go),
		cmocka_unit_test(test_public_ones_are_for_all),
		cmocka_unit_test(test_the_shared_teams_names_are_for_all),
		cmocka_unit_test(test_ready_is_told_when_it_is_on_disk),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_too_many_tags),
		cmocka_unit_test(test_a_template_of_a_snapshots_name_hides_no_tag),
		cmocka_unit_test(test_a_snapshot_of_a_templates_name_is_a_build),
		cmocka_unit_test(test_one_that_is_used_is_not_deleted),
		cmocka_unit_test(test_a_sandbox_says_its_template),
		cmocka_unit_test(test_a_restart_keeps_rows),
		cmocka_unit_test(test_a_journal_made_again),
		cmocka_unit_test(test_pages_of_a_log),
		cmocka_unit_test(test_a_log_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
