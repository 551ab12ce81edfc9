/* test_node_refreeze.c - builds whose memory does not fit this host: which, in which order, how it
 * ends. No machine boots here: what a run would come to is told by the test. */
#include "tests/unit/node_scene.h"

#include <sys/stat.h>

#include "node/build/build_run.h"
#include "node/build/builds.h"
#include "node/build/refreeze.h"
#include "node/catalog/catalog_change.h"
#include "node/life/admission.h"
#include "vm/template_job.h"

enum { VCPUS = 1, MEMORY_MIB = 256 };
static uint64_t clock_ns;

/* --- a host and what is on it -------------------------------------------------------------- */

static void set_qemu(const char *version)
{
	struct warden_facts *f = &s.n->warden.facts;

	snprintf(f->vmm_version, sizeof(f->vmm_version), "%s", version);
	snprintf(f->cpu_model, sizeof(f->cpu_model), "max");
	snprintf(f->accel, sizeof(f->accel), "tcg");
	snprintf(f->arguments, sizeof(f->arguments), "-M microvm " WARDEN_SIZES_TEXT " -x",
		 s.n->sizes.vcpus, s.n->sizes.memory_mib);
}

static void load_it(void)
{
	struct err err;

	if (catalog_open(s.n, &err) < 0 || snapshots_load(s.n, &err) < 0 ||
	    catalog_load(s.n, &err) < 0)
		fail_msg("%s", err.msg);
}

static void open_it(void)
{
	scene_open();
	snprintf(s.n->set[SET_DATA_DIR].text, sizeof(s.n->set[0].text), "%s", s.dir);
	s.n->set[SET_BUILDS_MAX].number = 1;
	s.n->set[SET_POOL_EACH_MAX].number = 1;
	s.n->base.state = BASE_READY; /* nothing is started: starts_max is 0 */
	set_qemu("one");
	load_it();
	clock_ns = 1000;
}

static void close_it(void)
{
	refreezes_close(s.n);
	builds_close(s.n);
	creates_close(s.n);
	catalog_close(s.n);
	scene_end();
}

static void close_rows(void)
{
	s.n->snapshots.closed = true;
	builds_close(s.n);
	catalog_close(s.n);
	snapshots_close(s.n);
	journal_close(TAKE(s.n->journal));
	s.n->snapshots.closed = false;
}

/* As another node would find it. */
static void restart(void)
{
	struct lost_list none = { 0 };

	close_rows();
	open_journal();
	load_it();
	snapshots_sweep(s.n, &none);
}

static void write_manifest(const struct journal_snapshot *row, int folder)
{
	AUTO(auto_close) int fd = openat(folder, "manifest", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct manifest m = { .created = "2026-01-01T00:00:00Z" };
	struct err err;

	snprintf(m.template_id, sizeof(m.template_id), "%s", row->id);
	base_facts_sized(s.n, row->vcpus, row->memory_mib, &m.made_with);
	snprintf(m.made_with.kernel_version, sizeof(m.made_with.kernel_version), "6.1");
	m.files[MANIFEST_KERNEL_FILE] = s.n->base.manifest.files[MANIFEST_KERNEL_FILE];
	if (fd < 0 || template_manifest_write(fd, &m, &err) < 0)
		fail_msg("%s", err.msg);
}

/* Made by the QEMU of now. */
static struct snapshot *add_snapshot(const char *id, const char *build, enum journal_kind kind)
{
	static char context[] = "{\"user\":\"user\",\"env\":{},\"start\":\"serve\"}";
	struct journal_snapshot row = { .created_ns = ++clock_ns,
					.hidden = kind == JOURNAL_BUILD,
					.kind = kind,
					.vcpus = VCPUS,
					.memory_mib = MEMORY_MIB,
					.disk_mib = 100,
					.memory_bytes = 1,
					.context = context };
	AUTO(auto_close) int folder = -1;
	char path[160];
	struct snapshot *p;
	struct journal_write w = { 0 };
	struct err err;

	snprintf(row.id, sizeof(row.id), "%s", id);
	snprintf(row.team, sizeof(row.team), "red");
	snprintf(row.key, sizeof(row.key), "%s", build);
	snprintf(path, sizeof(path), "%s/snapshots/%s", s.dir, id);
	assert_int_equal(mkdir(path, 0700), 0);
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	write_manifest(&row, folder);
	assert_int_equal(journal_put_snapshot(s.n->journal, &w, &row, NULL, &err), 0);
	journal_write_cancel(&w);
	p = snapshots_add(s.n, &row);
	assert_non_null(p);
	return p;
}

/* A template with one build that is ready, and tagged; its snapshot is called as it is, with -1. */
static struct build *add_template(const char *name, enum journal_kind kind)
{
	struct journal_template row = { .created_ns = ++clock_ns };
	struct journal_build build = { .status = BUILD_READY,
				       .created_ns = clock_ns,
				       .finished_ns = clock_ns,
				       .vcpus = VCPUS,
				       .memory_mib = MEMORY_MIB };
	struct template *t;
	struct catalog_change *c;
	struct build *b;
	struct err err;

	snprintf(row.id, sizeof(row.id), "of-%s", name);
	snprintf(row.team, sizeof(row.team), "red");
	snprintf(row.namespace, sizeof(row.namespace), "red");
	snprintf(row.name, sizeof(row.name), "%s", name);
	t = template_add(s.n, &row);
	uuid_make(build.id);
	snprintf(build.template_id, sizeof(build.template_id), "%s", row.id);
	snprintf(build.snapshot_id, sizeof(build.snapshot_id), "%s-1", name);
	b = build_add(t, &build);
	build_is(b, add_snapshot(build.snapshot_id, kind == JOURNAL_BUILD ? build.id : "", kind));
	assert_int_equal(template_tag(t, TEMPLATE_TAG, b, &err), 0);
	catalog_make_folder(s.n->catalog.rows_dir, row.id);
	catalog_make_folder(s.n->catalog.builds_dir, build.id);
	c = change_begin(t, b, NULL);
	change_write(c);
	while (s.n->catalog.changes)
		assert_true(loop_turn(s.n->loop));
	return b;
}

static struct build *build_of(const char *name)
{
	struct err err;
	struct template *t = catalog_own(s.n, "red", name, &err);

	assert_non_null(t);
	return t->builds;
}

/* Until all that can be done without a machine is done. */
static void settle(void)
{
	while (s.n->refreezes.turn.active && s.n->refreezes.turn.at_ms <= loop_now_ms(s.n->loop))
		assert_true(loop_turn(s.n->loop));
}

static void another_qemu(const char *version)
{
	set_qemu(version);
	refreezes_host_known(s.n);
	settle();
}

/* Its run has asked for a machine. */
static struct build_run *running(const struct build *b)
{
	struct build_run *r = s.n->builds.running;

	while (r && r->build != b)
		r = r->list_next;
	assert_non_null(r);
	while (!r->builder.create)
		assert_true(loop_turn(s.n->loop));
	return r;
}

/* The run of `b` ends with that; whoever is next begins. */
static void fails(const struct build *b, enum err_code code)
{
	struct build_run *r = running(b);
	struct node_reply reply = { .code = code, .msg = "so it is" };
	struct create *c = r->builder.create;

	builder_refused(&r->builder, &reply);
	creates_give_up(c);
	while (b->refreeze.state == REFREEZE_RUNNING)
		assert_true(loop_turn(s.n->loop));
	settle();
}

/* It comes to a snapshot: on disk, and in the place of the old one. */
static void succeeds(struct build *b, const char *id)
{
	struct build_run *r = running(b);
	struct snapshot *p = snapshot_hold(add_snapshot(id, b->row.id, JOURNAL_BUILD));

	builds_drop(s.n, b);
	(void)r;
	refreeze_done(b, p);
	snapshot_release(p);
	while (b->refreeze.state == REFREEZE_RUNNING)
		assert_true(loop_turn(s.n->loop));
	settle();
}

static void until_gone(const char *id)
{
	while (snapshots_by_id(s.n, id))
		assert_true(loop_turn(s.n->loop));
}

static enum refreeze_answer asked(const char *name)
{
	struct err err = { 0 };
	enum refreeze_answer a = refreeze_ask(build_of(name)->snapshot, &err);

	assert_int_equal(err.code, a == REFREEZE_REFUSE ? ERR_MISMATCH : ERR_NONE);
	return a;
}

/* --- which, and in which order -------------------------------------------------------------- */

static void what_fits_stays_as_it_is(void **state)
{
	(void)state;
	open_it();
	add_template("web", JOURNAL_BUILD);
	another_qemu("one");
	assert_int_equal(build_of("web")->refreeze.state, REFREEZE_NONE);
	assert_null(s.n->builds.running);
	assert_int_equal(asked("web"), REFREEZE_GO);
	close_it();
}

static void only_what_a_build_made_and_a_tag_names(void **state)
{
	struct build *taken, *untagged;

	(void)state;
	open_it();
	s.n->set[SET_BUILDS_MAX].number = 0;
	add_template("web", JOURNAL_BUILD);
	taken = add_template("taken", JOURNAL_SNAPSHOT);
	untagged = add_template("untagged", JOURNAL_BUILD);
	(void)snapshot_hold(untagged->snapshot); /* a sandbox of it */
	assert_true(template_untag(untagged->template, TEMPLATE_TAG));
	template_settle(untagged->template);
	another_qemu("two");
	assert_int_equal(build_of("web")->refreeze.state, REFREEZE_DUE);
	assert_true(build_of("web")->snapshot->unfit);
	assert_int_equal(asked("web"), REFREEZE_WAIT);
	assert_int_equal(taken->refreeze.state, REFREEZE_NONE);
	assert_int_equal(asked("taken"), REFREEZE_GO); /* which its files refuse */
	assert_false(refreeze_doubt(taken->snapshot));
	assert_int_equal(untagged->refreeze.state, REFREEZE_NONE);
	another_qemu("one"); /* it is as it was */
	assert_int_equal(build_of("web")->refreeze.state, REFREEZE_NONE);
	assert_false(build_of("web")->snapshot->unfit);
	assert_int_equal(asked("web"), REFREEZE_GO);
	close_it();
}

static void who_is_waited_for_comes_first_then_who_was_used_last(void **state)
{
	struct build *a, *b, *c, *d;

	(void)state;
	open_it();
	a = add_template("a", JOURNAL_BUILD);
	b = add_template("b", JOURNAL_BUILD);
	c = add_template("c", JOURNAL_BUILD);
	d = add_template("d", JOURNAL_BUILD);
	b->template->row.spawned_ns = ++clock_ns;
	another_qemu("two");
	assert_int_equal(b->refreeze.state, REFREEZE_RUNNING); /* one at a time */
	assert_int_equal(asked("a"), REFREEZE_WAIT);
	succeeds(b, "b-2");
	assert_int_equal(a->refreeze.state, REFREEZE_RUNNING);
	succeeds(a, "a-2");
	assert_int_equal(d->refreeze.state, REFREEZE_RUNNING);
	succeeds(d, "d-2");
	succeeds(c, "c-2");
	assert_null(refreeze_next(s.n, false));
	close_it();
}

static void builds_of_users_go_before_those_that_nobody_waits_for(void **state)
{
	struct build *a, *b, *mine;

	(void)state;
	open_it();
	a = add_template("a", JOURNAL_BUILD);
	b = add_template("b", JOURNAL_BUILD);
	mine = add_template("mine", JOURNAL_BUILD);
	another_qemu("two");
	assert_int_equal(mine->refreeze.state, REFREEZE_RUNNING);
	s.n->set[SET_BUILDS_MAX].number = 2;
	refreezes_soon(s.n);
	settle();
	assert_int_equal(b->refreeze.state, REFREEZE_DUE); /* a place is left for users */
	assert_int_equal(asked("a"), REFREEZE_WAIT);
	settle();
	assert_int_equal(a->refreeze.state, REFREEZE_RUNNING); /* unless somebody waits */
	assert_int_equal(asked("b"), REFREEZE_WAIT);
	settle();
	assert_int_equal(b->refreeze.state, REFREEZE_DUE); /* builds_max is builds_max */
	close_it();
}

/* What is in its memory works as before. */
static void what_has_an_old_kernel_serves_until_it_is_frozen_again(void **state)
{
	struct checksum *kernel;
	struct build *b, *unfit;

	(void)state;
	open_it();
	kernel = &s.n->base.manifest.files[MANIFEST_KERNEL_FILE];
	*kernel = (struct checksum){ 5, 6 };
	b = add_template("web", JOURNAL_BUILD);
	another_qemu("one");
	assert_int_equal(b->refreeze.state, REFREEZE_NONE);
	set_qemu("two");
	unfit = add_template("unfit", JOURNAL_BUILD);
	unfit->row.finished_ns = 0;
	*kernel = (struct checksum){ 5, 7 };
	another_qemu("one");
	assert_int_equal(unfit->refreeze.state, REFREEZE_RUNNING); /* who cannot be used first */
	assert_int_equal(b->refreeze.state, REFREEZE_DUE);
	assert_false(b->snapshot->unfit);
	assert_int_equal(asked("web"), REFREEZE_GO);
	assert_int_equal(asked("unfit"), REFREEZE_WAIT);
	succeeds(unfit, "unfit-2");
	for (int i = 0; i < REFREEZE_TRIES_MAX; i++) {
		assert_int_equal(b->refreeze.state, REFREEZE_RUNNING);
		fails(b, ERR_INVALID);
		assert_int_equal(asked("web"), REFREEZE_GO); /* that it failed harms nobody */
		b->refreeze.rests_until_ms = 0;
		refreezes_soon(s.n);
		settle();
	}
	assert_int_equal(b->refreeze.state, REFREEZE_FAILED);
	close_it();
}

/* --- how it ends ----------------------------------------------------------------------------- */

static void a_failure_is_tried_again_a_few_times(void **state)
{
	struct build *b;

	(void)state;
	open_it();
	b = add_template("web", JOURNAL_BUILD);
	another_qemu("two");
	for (unsigned int i = 1; i < REFREEZE_TRIES_MAX; i++) {
		uint64_t rest = (uint64_t)REFREEZE_AGAIN_MS << (2 * (i - 1));

		fails(b, ERR_INVALID);
		assert_int_equal(b->refreeze.state, REFREEZE_RESTING);
		assert_in_range(b->refreeze.rests_until_ms - loop_now_ms(s.n->loop), rest - 1000,
				rest);
		assert_int_equal(asked("web"), REFREEZE_REFUSE); /* and says why */
		b->refreeze.rests_until_ms = 0;
		refreezes_soon(s.n);
		settle();
		assert_int_equal(b->refreeze.state, REFREEZE_RUNNING);
	}
	fails(b, ERR_INVALID);
	assert_int_equal(b->refreeze.state, REFREEZE_FAILED);
	assert_int_equal(asked("web"), REFREEZE_REFUSE);
	assert_string_equal(b->row.snapshot_id, "web-1"); /* nothing of it was touched */
	assert_ptr_equal(snapshots_by_id(s.n, "web-1"), b->snapshot);
	another_qemu("three"); /* it may work there */
	assert_int_equal(b->refreeze.state, REFREEZE_RUNNING);
	assert_int_equal(b->refreeze.tries, 0);
	close_it();
}

static void want_of_room_is_no_failure(void **state)
{
	struct build *b;

	(void)state;
	open_it();
	b = add_template("web", JOURNAL_BUILD);
	another_qemu("two");
	for (int i = 0; i < 2 * REFREEZE_TRIES_MAX; i++) {
		assert_int_equal(asked("web"), REFREEZE_WAIT);
		fails(b, ERR_EXHAUSTED);
		assert_int_equal(b->refreeze.state, REFREEZE_RESTING);
		assert_in_range(b->refreeze.rests_until_ms - loop_now_ms(s.n->loop), 4000, 80000);
		assert_int_equal(asked("web"), REFREEZE_WAIT);
		b->refreeze.rests_until_ms = 0;
		refreezes_soon(s.n);
		settle();
	}
	s.n->warden.link.up = false; /* nor is a warden that is gone */
	fails(b, ERR_UNAVAILABLE);
	assert_int_equal(b->refreeze.state, REFREEZE_RESTING);
	assert_int_equal(b->refreeze.tries, 0);
	close_it();
}

static void the_new_one_takes_the_place_of_the_old(void **state)
{
	struct build *b;

	(void)state;
	open_it();
	b = add_template("web", JOURNAL_BUILD);
	another_qemu("two");
	succeeds(b, "web-2");
	assert_ptr_equal(b->snapshot, snapshots_by_id(s.n, "web-2"));
	assert_int_equal(asked("web"), REFREEZE_GO);
	until_gone("web-1");
	assert_int_equal(b->n_old, 0);
	assert_int_equal(build_users(b), 0);
	restart();
	b = build_of("web");
	assert_ptr_equal(b->snapshot, snapshots_by_id(s.n, "web-2"));
	assert_true(b->held);
	close_it();
}

/* A template is not deleted while sandboxes of it run, whichever of its snapshots they are of. */
static void sandboxes_of_the_old_one_keep_it(void **state)
{
	struct snapshot *old;
	struct build *b;

	(void)state;
	open_it();
	b = add_template("web", JOURNAL_BUILD);
	old = snapshot_hold(b->snapshot); /* a sandbox */
	another_qemu("two");
	assert_int_equal(build_users(b), 1);
	running(b);
	assert_int_equal(build_users(b), 1); /* what freezes it is nobody's */
	assert_null(refreeze_instead(old));
	succeeds(b, "web-2");
	assert_ptr_equal(snapshots_by_id(s.n, "web-1"), old);
	assert_ptr_equal(old->build, b); /* which names what it was made of */
	assert_ptr_equal(refreeze_instead(old), b->snapshot);
	assert_false(build_holds(old));
	assert_int_equal(build_users(b), 1);
	restart();
	b = build_of("web");
	assert_ptr_equal(b->snapshot, snapshots_by_id(s.n, "web-2"));
	until_gone("web-1"); /* nobody holds it here */
	assert_int_equal(b->n_old, 0);
	close_it();
}

/* Node dies when the new one is whole and no row of the build names it. */
static void what_was_not_noted_goes(void **state)
{
	struct build *b;

	(void)state;
	open_it();
	b = add_template("web", JOURNAL_BUILD);
	another_qemu("two");
	add_snapshot("web-2", b->row.id, JOURNAL_BUILD);
	restart();
	b = build_of("web");
	assert_ptr_equal(b->snapshot, snapshots_by_id(s.n, "web-1"));
	until_gone("web-2");
	assert_int_equal(b->n_old, 0);
	another_qemu("two"); /* and it goes on */
	assert_int_equal(b->refreeze.state, REFREEZE_RUNNING);
	close_it();
}

static void a_template_may_be_deleted_meanwhile(void **state)
{
	struct build *b;

	(void)state;
	open_it();
	b = add_template("web", JOURNAL_BUILD);
	another_qemu("two");
	running(b);
	assert_int_equal(template_users(b->template), 0);
	template_forget(b->template);
	assert_null(s.n->builds.running);
	assert_int_equal(count_all(), 0);
	until_gone("web-1");
	close_it();
}

/* A tag is moved while the row that names the new one is being written. */
static void a_tag_may_be_moved_meanwhile(void **state)
{
	struct snapshot *p;
	struct build *b;

	(void)state;
	open_it();
	b = add_template("web", JOURNAL_BUILD);
	another_qemu("two");
	running(b);
	builds_drop(s.n, b);
	p = snapshot_hold(add_snapshot("web-2", b->row.id, JOURNAL_BUILD));
	refreeze_done(b, p);
	snapshot_release(p);
	assert_true(template_untag(b->template, TEMPLATE_TAG));
	template_settle(b->template);
	assert_int_equal(b->refreeze.state, REFREEZE_NONE);
	until_gone("web-1");
	until_gone("web-2");
	close_it();
}

/* --- those who wait -------------------------------------------------------------------------- */

static void creates_wait_and_get_the_new_one(void **state)
{
	struct node_request rq = request("key", "");
	struct create *c;
	struct build *b;

	(void)state;
	open_it();
	b = add_template("web", JOURNAL_BUILD);
	s.n->set[SET_BUILDS_MAX].number = 0;
	another_qemu("two");
	s.n->set[SET_STARTS_MAX].number = 1; /* whatever can be started is */
	snprintf(rq.team, sizeof(rq.team), "red");
	snprintf(rq.template_id, sizeof(rq.template_id), "web");
	send_it(rq, "{}");
	run_until_waiting(1);
	while (!b->refreeze.wanted)
		assert_true(loop_turn(s.n->loop));
	c = s.n->creates.first;
	assert_ptr_equal(c->snapshot, b->snapshot);
	s.n->set[SET_STARTS_MAX].number = 0;
	s.n->set[SET_POOL].number = 1;
	pools_plan(s.n);
	assert_ptr_equal(pools_lacking(s.n), &s.n->pools.base); /* others do not wait for it */
	s.n->set[SET_POOL].number = 0;
	pools_plan(s.n);
	s.n->set[SET_BUILDS_MAX].number = 1;
	refreezes_soon(s.n);
	settle();
	succeeds(b, "web-2");
	assert_ptr_equal(c, s.n->creates.first); /* nothing is started yet */
	assert_ptr_equal(refreeze_instead(c->snapshot), b->snapshot);
	admission_change(c, b->snapshot); /* as its turn would */
	assert_ptr_equal(c->snapshot, b->snapshot);
	assert_string_equal(b->snapshot->row.id, "web-2");
	assert_null(refreeze_instead(c->snapshot));
	assert_ptr_equal(c->pool, b->snapshot->pool);
	assert_int_equal(c->pool->waiting, 1);
	assert_int_equal(c->pool->refs, 1);
	until_gone("web-1");
	close_it();
}

static void creates_are_refused_when_it_failed(void **state)
{
	struct node_request rq = request("key", "");
	struct node_reply reply;
	struct build *b;

	(void)state;
	open_it();
	b = add_template("web", JOURNAL_BUILD);
	another_qemu("two");
	fails(b, ERR_INVALID);
	s.n->set[SET_BUILDS_MAX].number = 0;
	s.n->set[SET_STARTS_MAX].number = 1;
	snprintf(rq.team, sizeof(rq.team), "red");
	snprintf(rq.template_id, sizeof(rq.template_id), "web");
	send_it(rq, "{}");
	reply = hear();
	assert_int_equal(reply.code, ERR_MISMATCH);
	assert_non_null(strstr(reply.msg, "so it is"));
	close_it();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_stays_as_it_is),
		cmocka_unit_test(only_what_a_build_made_and_a_tag_names),
		cmocka_unit_test(who_is_waited_for_comes_first_then_who_was_used_last),
		cmocka_unit_test(builds_of_users_go_before_those_that_nobody_waits_for),
		cmocka_unit_test(what_has_an_old_kernel_serves_until_it_is_frozen_again),
		cmocka_unit_test(a_failure_is_tried_again_a_few_times),
		cmocka_unit_test(want_of_room_is_no_failure),
		cmocka_unit_test(the_new_one_takes_the_place_of_the_old),
		cmocka_unit_test(sandboxes_of_the_old_one_keep_it),
		cmocka_unit_test(what_was_not_noted_goes),
		cmocka_unit_test(a_template_may_be_deleted_meanwhile),
		cmocka_unit_test(a_tag_may_be_moved_meanwhile),
		cmocka_unit_test(creates_wait_and_get_the_new_one),
		cmocka_unit_test(creates_are_refused_when_it_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
