/* test_node_templates.c - which template is used, which is kept, and what is no reason to build
 * another: a node with a warden that a test plays. */
#include "tests/unit/played_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/fdmsg.h"
#include "node/node.h"

enum {
	GUARD_MS = 20000,
	HEARD_MAX = 64,
	BOXES = 4,
	DESCRIPTORS = 16,
	FILES = 256,
	INPUTS_LENGTH = 17 /* "base-" and 12 */
};

struct heard {
	uint32_t verb;
	char template_id[WARDEN_ID_MAX + 1];
};

static struct scene {
	struct node *n;
	struct timer guard;
	char dir[64];
	struct played_daemon warden;
	struct heard heard[HEARD_MAX];
	size_t n_heard;
	char inputs[INPUTS_LENGTH + 1];
	struct sandbox box[BOXES];
	size_t n_boxes;
} s;

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

/* --- the played warden -------------------------------------------------------------------- */

static size_t heard(uint32_t verb, const char *id)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n_heard; i++)
		n += s.heard[i].verb == verb && (!id || strcmp(s.heard[i].template_id, id) == 0);
	return n;
}

/* It begins no template: that ends a build. */
static void on_asked(struct watch *w, unsigned int events)
{
	struct warden_request rq;
	struct err err = { 0 };
	int fds[WARDEN_FDS_MAX];
	size_t n = 0;

	(void)w, (void)events;
	if (fdmsg_recv(s.warden.sock, &rq, sizeof(rq), fds, WARDEN_FDS_MAX, &n, &err) < 0)
		return;
	while (n > 0)
		close(fds[--n]);
	assert_true(s.n_heard < HEARD_MAX);
	s.heard[s.n_heard].verb = rq.verb;
	memcpy(s.heard[s.n_heard++].template_id, rq.template_id, sizeof(rq.template_id));

	struct warden_reply r = { .tag = rq.tag };

	if (rq.verb == WARDEN_FACTS)
		r.facts = (struct warden_facts){ "QEMU 10", "cpu", "tcg", "-m 1", 1 };
	if (rq.verb == WARDEN_TEMPLATE_BEGIN)
		r.code = ERR_INTERNAL;
	assert_int_equal(fdmsg_send(s.warden.sock, &r, sizeof(r), NULL, 0, &err), 0);
}

static void on_link(struct warden_client *k)
{
	(void)k;
}

/* --- files -------------------------------------------------------------------------------- */

static void path_of(char ret[static 256], const char *folder, const char *name)
{
	snprintf(ret, 256, "%s/%s%s%s", s.dir, folder, name[0] ? "/" : "", name);
}

static void put(const char *folder, const char *name, struct bytes text)
{
	char path[256];
	int fd;

	path_of(path, folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text.ptr, text.len), text.len);
	close(fd);
}

static void make_folder(const char *name)
{
	char path[256];

	path_of(path, name, "");
	assert_int_equal(mkdir(path, 0755), 0);
}

static struct checksum sum_of(const char *folder, const char *name)
{
	static const atomic_bool never;
	struct checksum sum;
	struct err err;
	char path[256];
	int fd;

	path_of(path, folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(checksum_file(fd, &never, &sum, &err), 0);
	close(fd);
	return sum;
}

/* A whole one, as node would have built it here; `salt` makes its files its own. */
static void put_template(const char *id, const char *created, const char *salt)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX);
	struct manifest m = { 0 };
	char folder[128];
	struct err err;

	snprintf(folder, sizeof(folder), "templates/%s", id);
	make_folder(folder);
	base_facts_here(s.n, &m.made_with);
	snprintf(m.made_with.kernel_version, sizeof(m.made_with.kernel_version), "6");
	snprintf(m.template_id, sizeof(m.template_id), "%s", id);
	snprintf(m.created, sizeof(m.created), "%s", created);
	for (int i = 0; i < MANIFEST_FILES; i++) {
		const char *name = manifest_file_name((enum manifest_file)i);
		char words[64];

		snprintf(words, sizeof(words), "the %s of %s", name, salt);
		put(folder, name, bytes_str(words));
		m.files[i] = sum_of(folder, name);
	}
	if (manifest_put(&m, &text, &err) < 0)
		fail_msg("%s", err.msg);
	put(folder, "manifest", buf_view(&text));
}

static void damage(const char *id, const char *name)
{
	char folder[128];

	snprintf(folder, sizeof(folder), "templates/%s", id);
	put(folder, name, BYTES_LIT("something else"));
}

static void remove_folder(const char *name)
{
	AUTO(auto_close) int dir = open(s.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(unlinkat(dir, name, AT_REMOVEDIR), 0);
}

static void remove_template(const char *id)
{
	struct err err;
	char path[256];
	AUTO(auto_close) int dir = -1;

	path_of(path, "templates", "");
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(folder_remove(dir, id, &err), 0);
}

static const char *named(const char *build)
{
	static char id[BOXES][NODE_ID_MAX + 1];
	static size_t at;
	char *to = id[at++ % BOXES];

	snprintf(to, NODE_ID_MAX + 1, "%s%s%s", s.inputs, build[0] ? "-" : "", build);
	return to;
}

/* --- node --------------------------------------------------------------------------------- */

static void run_until_up(void)
{
	while (!s.n->warden.link.up)
		assert_true(loop_turn(s.n->loop));
}

/* What node calls a template of this host: it is told when it wants one built. */
static void learn_inputs(void)
{
	base_turn(s.n);
	while (s.n->base.state != BASE_FAILED)
		assert_true(loop_turn(s.n->loop));
	assert_int_equal(heard(WARDEN_TEMPLATE_BEGIN, NULL), 1);
	for (size_t i = 0; i < s.n_heard; i++)
		if (s.heard[i].verb == WARDEN_TEMPLATE_BEGIN)
			memcpy(s.inputs, s.heard[i].template_id, INPUTS_LENGTH);
	s.n_heard = 0;
}

static void turn_again(void)
{
	timer_stop(&s.n->base.again);
	s.n->base.state = BASE_UNKNOWN;
	base_turn(s.n);
}

/* Ready, or it could not be. */
static enum base_state settle(void)
{
	while (s.n->base.state != BASE_READY && s.n->base.state != BASE_FAILED)
		assert_true(loop_turn(s.n->loop));
	return s.n->base.state;
}

static int scene_start(void **state)
{
	static const struct warden_client_ops ops = { on_link, on_link };
	struct node *n = calloc(1, sizeof(*n));
	struct err err;

	(void)state;
	s = (struct scene){ .n = n, .dir = "/tmp/hotcell-templates-XXXXXX" };
	assert_non_null(n);
	assert_non_null(mkdtemp(s.dir));
	make_folder("templates");
	put("", "kernel", BYTES_LIT("kernel"));
	put("", "disk", BYTES_LIT("disk"));
	assert_int_equal(loop_open(&n->loop, &err), 0);
	timer_init(&s.guard, n->loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	snprintf(n->set[SET_STATE_DIR].text, CONFIG_VALUE_MAX, "%s", s.dir);
	snprintf(n->set[SET_DATA_DIR].text, CONFIG_VALUE_MAX, "%s", s.dir);
	path_of(n->set[SET_KERNEL].text, "kernel", "");
	path_of(n->set[SET_DISK].text, "disk", "");
	n->sizes = (struct warden_sizes){ .vcpus = 1, .memory_mib = 64 };
	n->set[SET_GROUNDS_UNUSED_H].number = 24;
	n->set[SET_POOL_UNUSED_S].number = 300;
	n->reconcile.complete = true;
	n->egress.path = n->injector.link.path = "";
	if (files_open(n->loop, s.dir, s.dir, 0, &n->files, &err) < 0)
		fail_msg("%s", err.msg);
	creates_open(n);
	played_daemon_open(&s.warden, n->loop, "templates-warden", WARDEN_VERSION_MAX, on_asked);
	warden_client_open(&n->warden, n->loop, s.warden.path, &n->sizes, &ops);
	base_open(n);
	grounds_open(n);
	template_use_open(n);
	refreezes_open(n);
	run_until_up();
	learn_inputs();
	return 0;
}

static int scene_end(void **state)
{
	AUTO(auto_close) int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err err;

	(void)state;
	timer_stop(&s.guard);
	template_use_close(s.n);
	grounds_close(s.n);
	base_close(s.n);
	creates_close(s.n);
	while (s.n->table.all)
		table_remove(&s.n->table, s.n->table.all);
	files_close(TAKE(s.n->files));
	warden_client_close(&s.n->warden);
	played_daemon_close(&s.warden);
	loop_free(s.n->loop);
	free(s.n);
	assert_int_equal(folder_remove(tmp, s.dir + strlen("/tmp/"), &err), 0);
	return 0;
}

/* One that is paused, made of this template. */
static struct sandbox *start_one_on(const char *id)
{
	struct sandbox *b = &s.box[s.n_boxes++];

	b->node = s.n;
	assert_true(s.n_boxes <= BOXES);
	snprintf(b->info.id, sizeof(b->info.id), "box%zu", s.n_boxes);
	snprintf(b->base_id, sizeof(b->base_id), "%s", id);
	snprintf(b->info.template_id, sizeof(b->info.template_id), "%s", id);
	table_add(&s.n->table, b);
	return b;
}

static void pause_one_on(const char *id)
{
	struct sandbox *b = start_one_on(id);

	sandbox_enter(&s.n->table, b, SANDBOX_PARKING);
	sandbox_enter(&s.n->table, b, SANDBOX_PAUSED);
}

/* --- the tests ---------------------------------------------------------------------------- */

static void a_damaged_template_in_use_is_never_dropped(void **state)
{
	static const char *const files[] = { "overlay", "memory", "manifest" };

	(void)state;
	for (size_t i = 0; i < COUNT(files); i++) {
		const char *id = named(i == 0 ? "" : files[i]);
		const char *begun;

		put_template(id, "2026-11-15T01:02:03Z", "first");
		pause_one_on(id);
		damage(id, files[i]);
		s.n_heard = 0;
		turn_again();
		assert_int_equal(settle(), BASE_FAILED); /* it cannot build */
		assert_int_equal(heard(WARDEN_TEMPLATE_DROP, id), 0);
		assert_int_equal(heard(WARDEN_TEMPLATE_BEGIN, id), 0);
		assert_int_equal(heard(WARDEN_TEMPLATE_BEGIN, NULL), 1);
		begun = s.heard[s.n_heard - 1].template_id; /* dropped after it failed */
		assert_memory_equal(begun, s.inputs, INPUTS_LENGTH);
		assert_string_not_equal(begun, id);
	}
}

static void limit_descriptors(rlim_t n)
{
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
	l.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &l), 0);
}

/* Only so many more files can be opened, and then as many as it takes. */
static void a_transient_error_is_no_reason_to_build(void **state)
{
	const char *id = named("");
	size_t failed = 0;

	(void)state;
	put_template(id, "2026-11-15T01:02:03Z", "first");
	pause_one_on(id);
	for (rlim_t left = 0; left < DESCRIPTORS; left++) {
		int next = open("/dev/null", O_RDONLY | O_CLOEXEC);

		close(next);
		limit_descriptors((rlim_t)next + left);
		turn_again();
		settle();
		limit_descriptors(FILES);
		if (s.n->base.state == BASE_FAILED) {
			failed++;
			assert_non_null(strstr(s.n->base.why.msg, strerror(EMFILE)));
			assert_true(s.n->base.again.active); /* by itself */
		}
		assert_int_equal(heard(WARDEN_TEMPLATE_BEGIN, NULL), 0);
		assert_int_equal(heard(WARDEN_TEMPLATE_DROP, NULL), 0);
	}
	assert_true(failed > 1);
	turn_again();
	assert_int_equal(settle(), BASE_READY);
	assert_string_equal(s.n->base.id, id);
}

static void the_newest_whole_one_of_its_inputs_is_used(void **state)
{
	(void)state;
	put_template(named("zzzzzzzz"), "2026-11-14T01:02:03Z", "oldest");
	put_template(named(""), "2026-11-15T01:02:03Z", "of before");
	put_template(named("aaaaaaaa"), "2026-11-16T01:02:03Z", "newest");
	put_template(named("mmmmmmmm"), "2026-11-16T01:02:02Z", "a second older");
	put_template("base-000000000000-xxxxxxxx", "2026-11-17T01:02:03Z", "of another kernel");
	turn_again();
	assert_int_equal(settle(), BASE_READY);
	assert_string_equal(s.n->base.id, named("aaaaaaaa"));
	damage(named("aaaaaaaa"), "state");
	pause_one_on(named("aaaaaaaa"));
	turn_again();
	assert_int_equal(settle(), BASE_READY);
	assert_string_equal(s.n->base.id, named("mmmmmmmm"));
	assert_int_equal(heard(WARDEN_TEMPLATE_BEGIN, NULL), 0);
	assert_true(base_is(s.n, named("aaaaaaaa")) && base_is(s.n, "base"));
	assert_false(base_is(s.n, "base-000000000000-xxxxxxxx") || base_is(s.n, "bas"));
}

static void run_until_dropped(size_t n)
{
	while (heard(WARDEN_TEMPLATE_DROP, NULL) < n || s.n->base.drop.link)
		assert_true(loop_turn(s.n->loop));
}

static void what_nothing_differs_from_goes(void **state)
{
	static const char old[] = "base-000000000000", used[] = "base-111111111111-xxxxxxxx";
	static const char unfinished[] = ".build-base-222222222222-xxxxxxxx";

	(void)state;
	put_template(named("newestxx"), "2026-11-16T01:02:03Z", "newest");
	put_template(old, "2026-11-15T01:02:03Z", "old");
	put_template(used, "2026-11-15T01:02:03Z", "used");
	put_template("other-33333333333333", "2026-11-15T01:02:03Z", "of somebody else");
	pause_one_on(used);
	make_folder("sandboxes/nobodys"); /* its row may come back: what does it need? */
	turn_again();
	assert_int_equal(settle(), BASE_READY);
	assert_null(s.n->base.drop.link);
	remove_folder("sandboxes/nobodys");
	make_folder("lost");
	make_folder("lost/20261116-i1");
	turn_again();
	assert_int_equal(settle(), BASE_READY);
	assert_null(s.n->base.drop.link);
	remove_folder("lost/20261116-i1");
	turn_again();
	assert_int_equal(settle(), BASE_READY);
	run_until_dropped(1);
	assert_int_equal(heard(WARDEN_TEMPLATE_DROP, old), 1);
	remove_template(old); /* as warden would */
	make_folder("templates/.build-base-222222222222-xxxxxxxx");
	turn_again();
	assert_int_equal(settle(), BASE_READY);
	run_until_dropped(2);
	assert_int_equal(heard(WARDEN_TEMPLATE_DROP, unfinished + strlen(".build-")), 1);
	assert_int_equal(heard(WARDEN_TEMPLATE_DROP, NULL), 2);
}

/* A node that dies while it builds, again and again, leaves one build behind. */
static void the_id_of_a_build_that_did_not_end_is_used_again(void **state)
{
	char folder[128];

	(void)state;
	snprintf(folder, sizeof(folder), "templates/.build-%s", named("halfdone"));
	make_folder(folder);
	s.n_heard = 0;
	turn_again();
	assert_int_equal(settle(), BASE_FAILED);
	assert_int_equal(heard(WARDEN_TEMPLATE_BEGIN, named("halfdone")), 1);
	put_template(named("halfdone"), "2026-11-15T01:02:03Z", "published"); /* then it is not */
	damage(named("halfdone"), "state");
	s.n_heard = 0;
	turn_again();
	assert_int_equal(settle(), BASE_FAILED);
	assert_int_equal(heard(WARDEN_TEMPLATE_BEGIN, named("halfdone")), 0);
	assert_int_equal(heard(WARDEN_TEMPLATE_BEGIN, NULL), 1);
}

static json_t *described(void)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_TEXT_MAX);
	json_t *v = NULL;
	struct err err;

	if (base_describe(s.n, false, &out, &err) < 0 ||
	    json_decode(buf_view(&out), NODE_TEXT_MAX, 8, &v, &err) < 0)
		fail_msg("%s", err.msg);
	return v;
}

static const char *told(const json_t *all, const char *id, const char *member)
{
	const json_t *t;
	size_t i;

	json_array_foreach(all, i, t)
	{
		const char *found = json_string_value(json_object_get(t, "templateID"));

		if (found && strcmp(found, id) == 0)
			return json_string_value(json_object_get(t, member));
	}
	return NULL;
}

/* Damaged for new ones, for those that differ from it, or not there at all: each is told. */
static void what_is_lost_is_told(void **state)
{
	static const char bad[] = "base-111111111111-xxxxxxxx",
			  gone[] = "base-222222222222-xxxxxxxx";
	AUTO(json_decrefp) json_t *all = NULL;
	struct files_order o = { 0 };

	(void)state;
	put_template(named("newestxx"), "2026-11-16T01:02:03Z", "newest");
	put_template(named("spoiltxx"), "2026-11-17T01:02:03Z", "spoilt");
	put_template(bad, "2026-11-15T01:02:03Z", "bad");
	damage(named("spoiltxx"), "overlay");
	damage(bad, "memory");
	pause_one_on(named("spoiltxx"));
	pause_one_on(bad);
	pause_one_on(gone);
	turn_again();
	assert_int_equal(settle(), BASE_READY);
	while (s.n->base.reading.job)
		assert_true(loop_turn(s.n->loop));
	all = described();
	assert_string_equal(told(all, s.n->base.id, "buildStatus"), "ready");
	assert_string_equal(told(all, named("spoiltxx"), "buildStatus"), "damaged");
	assert_non_null(strstr(told(all, named("spoiltxx"), "message"), "overlay"));
	assert_string_equal(told(all, bad, "buildStatus"), "damaged");
	assert_non_null(strstr(told(all, bad, "message"), "memory"));
	assert_string_equal(told(all, gone, "buildStatus"), "missing");
	/* who needs what is whole of it may have it, without reading it again */
	snprintf(o.template_id, sizeof(o.template_id), "%s", named("spoiltxx"));
	base_fill_order(s.n, &o);
	assert_false(o.read_base || o.base_bad);
	snprintf(o.template_id, sizeof(o.template_id), "%s", bad);
	base_fill_order(s.n, &o);
	assert_false(o.read_base);
	assert_int_equal(o.base_bad, 1u << MANIFEST_MEMORY_FILE);
	snprintf(o.template_id, sizeof(o.template_id), "%s", gone);
	base_fill_order(s.n, &o);
	assert_true(o.read_base);
}

/* Whoever waits for it is told what is done; who has it, or cannot have it, is told that. */
static void what_is_done_is_told(void **state)
{
	static const struct {
		enum base_state state;
		const char *status, *phase;
	} rows[] = {
		{ BASE_UNKNOWN, "building", "waiting" },
		{ BASE_CHECKING, "building", "checking" },
		{ BASE_BUILDING, "building", "building" },
		{ BASE_WARMING, "building", "warming" },
		{ BASE_READY, "ready", NULL },
		{ BASE_FAILED, "error", NULL },
	};
	enum base_state was = s.n->base.state;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(json_decrefp) json_t *all = NULL;
		const json_t *one, *progress;

		s.n->base.state = rows[i].state;
		all = described();
		one = json_array_get(all, 0);
		progress = json_object_get(one, "progress");
		assert_string_equal(json_string_value(json_object_get(one, "buildStatus")),
				    rows[i].status);
		assert_int_equal(!rows[i].phase, !progress);
		if (rows[i].phase)
			assert_string_equal(json_string_value(json_object_get(progress, "phase")),
					    rows[i].phase);
	}
	s.n->base.state = was;
}

/* --- of other disks ----------------------------------------------------------------------- */

static struct {
	struct ground_want want;
	char id[NODE_ID_MAX + 1];
	int told;
	struct err why;
} g;

static void on_ground(struct ground_want *w, const char *id, const struct err *err)
{
	(void)w;
	g.told++;
	snprintf(g.id, sizeof(g.id), "%s", id ? id : "");
	g.why = err ? *err : (struct err){ 0 };
}

static void want(const char *source)
{
	int disk = open(s.n->set[SET_DISK].text, O_RDONLY | O_CLOEXEC);
	struct err err;

	memset(&g, 0, sizeof(g));
	if (grounds_want(&g.want, s.n, &(struct ground_spec){ source, disk }, on_ground, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(g.told, 0); /* from the loop alone */
}

static void run_until_told(void)
{
	while (!g.told)
		assert_true(loop_turn(s.n->loop));
}

static void base_is_ready(void)
{
	put_template(named("newestxx"), "2026-11-16T01:02:03Z", "newest");
	turn_again();
	assert_int_equal(settle(), BASE_READY);
	s.n_heard = 0;
}

static const char *ground_named(const char *source, const char *build)
{
	static char id[NODE_ID_MAX + 1];
	char inputs[GROUND_INPUTS_SIZE];
	struct err err;

	assert_int_equal(ground_name_inputs(s.n, source, inputs, &err), 0);
	snprintf(id, sizeof(id), "%s-%s", inputs, build);
	return id;
}

static void a_ground_is_found_by_what_its_disk_was_made_of(void **state)
{
	char id[NODE_ID_MAX + 1];

	(void)state;
	base_is_ready();
	put_template(ground_named("one", "aaaaaaaa"), "2026-11-15T01:02:03Z", "one");
	put_template(ground_named("one", "bbbbbbbb"), "2026-11-16T01:02:03Z", "one again");
	assert_true(grounds_find(s.n, "one", id));
	assert_string_equal(id, ground_named("one", "bbbbbbbb"));
	assert_false(grounds_find(s.n, "two", id));
	want("one");
	run_until_told();
	assert_string_equal(g.id, id);
	assert_int_equal(heard(WARDEN_TEMPLATE_BEGIN, NULL), 0);
	damage(id, "manifest"); /* then the one before is */
	assert_true(grounds_find(s.n, "one", id));
	assert_string_equal(id, ground_named("one", "aaaaaaaa"));
	base_learn(s.n, id,
		   &(struct files_opened){ .base = FILES_BASE_READ,
					   .base_bad = 1u << MANIFEST_DISK_FILE });
	assert_false(grounds_find(s.n, "one", id));
}

static void one_that_is_not_there_is_built(void **state)
{
	struct ground_want gone = { 0 };
	struct err err;

	(void)state;
	want("two");
	while (s.n->grounds.turn.active)
		assert_true(loop_turn(s.n->loop));
	assert_null(s.n->grounds.build); /* not before there is a `base` */
	base_is_ready();
	assert_int_equal(grounds_want(&gone, s.n,
				      &(struct ground_spec){
					      "three", open("/dev/null", O_RDONLY | O_CLOEXEC) },
				      on_ground, &err),
			 0);
	ground_want_cancel(&gone);
	run_until_told(); /* this warden builds none */
	assert_int_equal(g.why.code, ERR_INTERNAL);
	assert_int_equal(g.told, 1);
	assert_int_equal(heard(WARDEN_TEMPLATE_BEGIN, NULL), 1);
	assert_null(s.n->grounds.build);
	want("two"); /* and again, at the word of whoever wants it */
	run_until_told();
	assert_int_equal(heard(WARDEN_TEMPLATE_BEGIN, NULL), 2);
}

static void drop_grounds(size_t n)
{
	grounds_soon(s.n);
	while (heard(WARDEN_TEMPLATE_DROP, NULL) < n || s.n->grounds.drop.link)
		assert_true(loop_turn(s.n->loop));
}

/* But a few, for the next; and none that anything differs from. */
static void grounds_that_nothing_needs_go(void **state)
{
	static const char used[] = "image-000000000000-xxxxxxxx", oldest[] = "image-1-xxxxxxxx";

	(void)state;
	put_template(used, "2026-10-01T01:02:03Z", "used");
	pause_one_on(used);
	base_is_ready();
	make_folder("templates/.build-image-222222222222-xxxxxxxx");
	drop_grounds(1);
	assert_int_equal(heard(WARDEN_TEMPLATE_DROP, "image-222222222222-xxxxxxxx"), 1);
	remove_template(".build-image-222222222222-xxxxxxxx"); /* as warden would */
	for (int i = 1; i <= GROUNDS_SPARE + 1; i++) {
		char id[32], created[32];

		snprintf(id, sizeof(id), "image-%d-xxxxxxxx", i);
		snprintf(created, sizeof(created), "2026-11-%02dT01:02:03Z", i);
		put_template(id, created, id);
	}
	drop_grounds(2);
	assert_int_equal(heard(WARDEN_TEMPLATE_DROP, oldest), 1);
	remove_template(oldest);
	for (int i = 0; i < 10; i++) {
		grounds_soon(s.n);
		assert_true(loop_turn(s.n->loop));
	}
	assert_int_equal(heard(WARDEN_TEMPLATE_DROP, NULL), 2);
	assert_int_equal(heard(WARDEN_TEMPLATE_DROP, used), 0);
}

/* Not at once, and the one that somebody wanted later. */
static void a_ground_goes_after_a_while(void **state)
{
	static const char other[] = "image-2-xxxxxxxx";
	char wanted[NODE_ID_MAX + 1], id[NODE_ID_MAX + 1];
	struct template_seen *seen;

	(void)state;
	base_is_ready();
	put_template(other, "2026-11-14T01:02:03Z", "other");
	snprintf(wanted, sizeof(wanted), "%s", ground_named("one", "aaaaaaaa"));
	put_template(wanted, "2026-11-15T01:02:03Z", "one");
	for (int i = 0; i < 10; i++) {
		template_use_look(s.n);
		assert_true(loop_turn(s.n->loop));
	}
	assert_int_equal(heard(WARDEN_TEMPLATE_DROP, NULL), 0);
	s.n->set[SET_GROUNDS_UNUSED_H].number = 0; /* as if that had passed */
	assert_true(grounds_find(s.n, "one", id));
	drop_grounds(1);
	assert_int_equal(heard(WARDEN_TEMPLATE_DROP, other), 1);
	for (seen = s.n->template_use.all; seen && strcmp(seen->id, wanted) != 0;)
		seen = seen->next;
	assert_non_null(seen);
	assert_true(seen->spare_ms > 0 && seen->bytes > 0);
	remove_template(other);
	drop_grounds(2);
	assert_int_equal(heard(WARDEN_TEMPLATE_DROP, wanted), 1);
	remove_template(wanted);
	template_use_look(s.n);
	for (seen = s.n->template_use.all; seen; seen = seen->next)
		assert_false(ground_is(seen->id));
}

/* Earlier than those who would be refused for want of it. */
static void a_ground_goes_when_there_is_no_room(void **state)
{
	static const char spare[] = "image-2-xxxxxxxx";

	(void)state;
	base_is_ready();
	put_template(spare, "2026-11-14T01:02:03Z", "spare");
	s.n->set[SET_DISK_RESERVE_MIB].number = 1024ull * 1024 * 1024;
	drop_grounds(1);
	assert_int_equal(heard(WARDEN_TEMPLATE_DROP, spare), 1);
}

static size_t pages_in_memory(const char *id, const char *name)
{
	AUTO(auto_close) int fd = -1;
	static unsigned char in[256];
	char path[512], folder[128];
	size_t size = 256 * 4096, n = 0;
	void *at;

	snprintf(folder, sizeof(folder), "templates/%s", id);
	path_of(path, folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(at != MAP_FAILED);
	assert_int_equal(mincore(at, size, in), 0);
	for (size_t i = 0; i < COUNT(in); i++)
		n += in[i] & 1;
	munmap(at, size);
	return n;
}

static void write_memory(const char *id)
{
	static const char zeros[256 * 4096];
	char folder[128], path[512];
	int fd;

	snprintf(folder, sizeof(folder), "templates/%s", id);
	path_of(path, folder, "memory");
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
	assert_int_equal(fsync(fd), 0); /* what is not written yet stays */
	close(fd);
}

static void one_that_no_vm_has_leaves_the_page_cache(void **state)
{
	static const char used[] = "image-1-xxxxxxxx", unused[] = "image-2-xxxxxxxx";

	(void)state;
	base_is_ready();
	put_template(used, "2026-11-14T01:02:03Z", "used");
	put_template(unused, "2026-11-14T01:02:03Z", "unused");
	write_memory(used);
	write_memory(unused);
	(void)start_one_on(used);
	assert_int_equal(pages_in_memory(unused, "memory"), 256);
	template_use_look(s.n);
	assert_int_equal(pages_in_memory(unused, "memory"), 256);
	for (struct template_seen *t = s.n->template_use.all; t; t = t->next)
		t->used_ms -= 301ull * 1000; /* as if that had passed */
	template_use_look(s.n);
	while (pages_in_memory(unused, "memory") > 0)
		assert_true(loop_turn(s.n->loop));
	assert_int_equal(pages_in_memory(used, "memory"), 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_damaged_template_in_use_is_never_dropped,
						scene_start, scene_end),
		cmocka_unit_test_setup_teardown(a_transient_error_is_no_reason_to_build,
						scene_start, scene_end),
		cmocka_unit_test_setup_teardown(the_newest_whole_one_of_its_inputs_is_used,
						scene_start, scene_end),
		cmocka_unit_test_setup_teardown(what_nothing_differs_from_goes, scene_start,
						scene_end),
		cmocka_unit_test_setup_teardown(the_id_of_a_build_that_did_not_end_is_used_again,
						scene_start, scene_end),
		cmocka_unit_test_setup_teardown(what_is_lost_is_told, scene_start, scene_end),
		cmocka_unit_test_setup_teardown(what_is_done_is_told, scene_start, scene_end),
		cmocka_unit_test_setup_teardown(a_ground_is_found_by_what_its_disk_was_made_of,
						scene_start, scene_end),
		cmocka_unit_test_setup_teardown(one_that_is_not_there_is_built, scene_start,
						scene_end),
		cmocka_unit_test_setup_teardown(grounds_that_nothing_needs_go, scene_start,
						scene_end),
		cmocka_unit_test_setup_teardown(a_ground_goes_after_a_while, scene_start,
						scene_end),
		cmocka_unit_test_setup_teardown(a_ground_goes_when_there_is_no_room, scene_start,
						scene_end),
		cmocka_unit_test_setup_teardown(one_that_no_vm_has_leaves_the_page_cache,
						scene_start, scene_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
