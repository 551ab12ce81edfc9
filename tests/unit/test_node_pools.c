/* test_node_pools.c - how many VMs wait for a create of which source, and who gives way. */
#include "tests/unit/node_scene.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "node/life/admission.h"

enum { UNUSED_MS = 300 * 1000, HALF_MS = UNUSED_MS / POOL_HALF_LIVES, EACH_MAX = 8 };

/* --- the wish ----------------------------------------------------------------------------- */

static void the_wish_follows_use(void **state)
{
	static const struct {
		const char *name;
		unsigned int creates;
		uint64_t every_ms, after_ms;
		size_t target;
	} rows[] = {
		{ "never used", 0, 0, 0, 0 },
		{ "once, just now", 1, 0, 0, 1 },
		{ "once, some time ago", 1, 0, UNUSED_MS - 1, 1 },
		{ "once, too long ago", 1, 0, UNUSED_MS, 0 },
		{ "four at once", 4, 0, 0, 1 },
		{ "five at once", 5, 0, 0, 2 },
		{ "twenty at once", 20, 0, 0, 5 },
		{ "twenty at once, half a half-life ago", 20, 0, HALF_MS / 2, 4 },
		{ "twenty at once, a half-life ago", 20, 0, HALF_MS, 3 },
		{ "twenty at once, two half-lives ago", 20, 0, 2 * HALF_MS, 2 },
		{ "twenty at once, long ago", 20, 0, 3 * HALF_MS, 1 },
		{ "twenty at once, too long ago", 20, 0, UNUSED_MS, 0 },
		{ "a thousand at once", 1000, 0, 0, EACH_MAX },
		{ "a thousand at once, too long ago", 1000, 0, UNUSED_MS, 0 },
		{ "every five minutes", 50, UNUSED_MS, 0, 1 },
		{ "every minute", 50, 60 * 1000, 0, 1 },
		{ "every ten seconds", 50, 10 * 1000, 0, 4 },
		{ "every ten seconds, until two minutes ago", 50, 10 * 1000, 120 * 1000, 2 },
		{ "every second", 500, 1000, 0, EACH_MAX },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		const struct pool_limits limits = { UNUSED_MS, EACH_MAX };
		struct pool_use u = { 0 };
		uint64_t now = 12345;

		for (unsigned int i = 0; i < row->creates; i++) {
			now += i > 0 ? row->every_ms : 0;
			pool_used(&u, now, UNUSED_MS);
		}
		assert_int_equal(pool_target(&u, now + row->after_ms, limits), row->target);
	}
}

static void the_count_neither_overflows_nor_wants_what_may_not_be(void **state)
{
	struct pool_use u = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 2 * (POOL_POINTS_MAX / POOL_POINTS); i++)
		pool_used(&u, 1, UNUSED_MS);
	assert_int_equal(u.points, POOL_POINTS_MAX);
	assert_int_equal(pool_target(&u, 1, (struct pool_limits){ UNUSED_MS, 0 }), 0);
	assert_int_equal(pool_target(&u, 0, (struct pool_limits){ UNUSED_MS, 3 }), 3);
	assert_int_equal(pool_target(&u, UINT64_MAX, (struct pool_limits){ UNUSED_MS, 3 }), 0);
}

/* --- the budget --------------------------------------------------------------------------- */

enum { POOLS = 4 };

static void the_budget_goes_to_what_was_used_most(void **state)
{
	static const struct {
		const char *name;
		size_t wanted[POOLS];
		uint64_t vm_mib[POOLS];
		uint64_t mib;
		size_t vms, allowed[POOLS];
	} rows[] = {
		{ "enough", { 4, 2, 1, 1 }, { 64, 64, 64, 64 }, 8 * 64, 100, { 4, 2, 1, 1 } },
		{ "one for each, the rest to the first",
		  { 4, 2, 1, 1 },
		  { 64, 64, 64, 64 },
		  6 * 64,
		  100,
		  { 3, 1, 1, 1 } },
		{ "the last has none",
		  { 4, 4, 4, 4 },
		  { 64, 64, 64, 64 },
		  3 * 64,
		  100,
		  { 1, 1, 1, 0 } },
		{ "nothing", { 4, 4, 4, 4 }, { 64, 64, 64, 64 }, 63, 100, { 0, 0, 0, 0 } },
		{ "a large one lets a small one in",
		  { 1, 1, 1, 0 },
		  { 64, 500, 64, 64 },
		  192,
		  100,
		  { 1, 0, 1, 0 } },
		{ "as many as the host may hold",
		  { 4, 4, 4, 4 },
		  { 64, 64, 64, 64 },
		  100 * 64,
		  5,
		  { 2, 1, 1, 1 } },
		{ "unused ones have none",
		  { 0, 0, 2, 0 },
		  { 64, 64, 64, 64 },
		  64,
		  100,
		  { 0, 0, 1, 0 } },
		{ "no budget",
		  { 4, 4, 4, 4 },
		  { 64, 64, 64, 64 },
		  UINT64_MAX,
		  100,
		  { 4, 4, 4, 4 } },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct pool all[POOLS] = { 0 };

		for (size_t i = 0; i < POOLS; i++) {
			all[i].wanted = row->wanted[i];
			all[i].vm_mib = row->vm_mib[i];
			all[i].allowed = 7; /* of before */
			all[i].next = i + 1 < POOLS ? &all[i + 1] : NULL;
		}
		pools_share(all, row->mib, row->vms);
		for (size_t i = 0; i < POOLS; i++)
			assert_int_equal(all[i].allowed, row->allowed[i]);
	}
}

/* --- a host with snapshots ---------------------------------------------------------------- */

static void host_open(void)
{
	scene_open();
	s.n->set[SET_POOL_EACH_MAX].number = EACH_MAX;
	s.n->set[SET_POOL_UNUSED_S].number = UNUSED_MS / 1000;
	s.n->set[SET_POOL_MEMORY_MIB].number = 1024;
	s.n->base.state = BASE_READY;
	s.n->warden.link.up = false; /* nothing is started */
	turns_open(&s.n->resumes, s.n->loop, 0);
}

static void host_end(void)
{
	turns_close(&s.n->resumes);
	scene_end();
}

static struct snapshot *snapshot(const char *name)
{
	struct journal_snapshot row = { .team = "team", .tag = "default", .memory_mib = 512 };
	struct snapshot *p;

	row.memory_bytes = 1 << 20;
	snprintf(row.id, sizeof(row.id), "snap-%s", name);
	snprintf(row.name, sizeof(row.name), "%s", name);
	p = snapshots_add(s.n, &row);
	assert_non_null(p);
	return p;
}

static void on_never(struct timer *t)
{
	(void)t;
	fail_msg("nobody waits for this");
}

static void on_awake(struct agent_wake *w, const struct agent_clock *clock, const struct err *err)
{
	(void)w, (void)clock, (void)err;
	fail_msg("its guest answered, and there is none");
}

/* A guest that is asked for its clock, and never answers: whoever claims it is not told more. */
static void play_guest(struct sandbox *b)
{
	b->restore = (struct restore){ .user = &b->restore_user,
				       .machine = &b->machine,
				       .socket = -1,
				       .wake = { .on_done = on_awake, .busy = true } };
	timer_init(&b->restore.deadline, s.n->loop, on_never);
}

/* As if it had been begun for that pool and had come to wait there. */
static struct sandbox *pooled(struct pool *pool)
{
	struct sandbox *b = box_new();

	b->info.team[0] = '\0';
	b->for_pool = true;
	play_guest(b);
	if (pool->snapshot)
		b->snapshot = snapshot_hold(pool->snapshot);
	pools_begun(b, pool);
	sandbox_enter(&s.n->table, b, SANDBOX_SLOT);
	sandbox_enter(&s.n->table, b, SANDBOX_STARTING);
	sandbox_enter(&s.n->table, b, SANDBOX_RESTORING);
	sandbox_enter(&s.n->table, b, SANDBOX_WAITING);
	pools_ready(b);
	return b;
}

static struct pool *used(struct snapshot *p, size_t creates)
{
	struct pool *pool = pools_of(s.n, p);

	assert_non_null(pool);
	for (size_t i = 0; i < creates; i++)
		pools_used(s.n, pool);
	return pool;
}

static void run_until_gone(const char *id)
{
	while (table_find(&s.n->table, id))
		assert_true(loop_turn(s.n->loop));
}

static void run_until_claimed(size_t n)
{
	while (s.n->creates.claimed != n)
		assert_true(loop_turn(s.n->loop));
}

static struct node_request create_of(const char *name)
{
	struct node_request rq = request("key", "");

	snprintf(rq.template_id, sizeof(rq.template_id), "%s", name);
	return rq;
}

static void only_what_can_be_found_by_a_name_has_a_pool(void **state)
{
	struct snapshot *p;

	(void)state;
	host_open();
	p = snapshot("a");
	assert_ptr_equal(pools_of(s.n, NULL), &s.n->pools.base);
	assert_non_null(pools_of(s.n, p));
	assert_ptr_equal(pools_of(s.n, p), p->pool);
	p = snapshot("of-a-fork");
	p->row.hidden = 1;
	assert_null(pools_of(s.n, p));
	p = snapshot("disk-alone");
	p->row.memory_bytes = 0;
	assert_null(pools_of(s.n, p));
	p = snapshot("going");
	p->going = true;
	assert_null(pools_of(s.n, p));
	p = snapshot("b");
	s.n->set[SET_POOL_EACH_MAX].number = 0; /* the operator wants none */
	assert_null(pools_of(s.n, p));
	assert_int_equal(s.n->pools.n, 1);
	host_end();
}

static void a_create_counts_as_use_and_waits_for_its_own_pool(void **state)
{
	struct snapshot *a, *b;
	struct node_request boots = create_of("a");

	(void)state;
	host_open();
	a = snapshot("a");
	b = snapshot("b");
	send_it(create_of("a"), "");
	run_until_waiting(1);
	send_it(create_of("b"), "");
	run_until_waiting(2);
	assert_int_equal(a->pool->waiting, 1);
	assert_int_equal(b->pool->waiting, 1);
	assert_int_equal(s.n->pools.base.waiting, 0);
	assert_ptr_equal(s.n->pools.all, b->pool); /* the last used is the first */
	assert_int_equal(a->pool->use.points, POOL_POINTS);
	boots.flags = NODE_BOOT; /* what waits in a pool has its memory */
	send_it(boots, "");
	run_until_waiting(3);
	assert_int_equal(a->pool->waiting, 1);
	assert_int_equal(a->pool->use.points, POOL_POINTS);
	host_end();
}

/* What is pooled is promised; a create that finds it there is promised nothing more. */
static void what_is_pooled_is_promised_once(void **state)
{
	struct snapshot *p;
	struct pool *pool;

	(void)state;
	host_open();
	p = snapshot("a");
	pool = used(p, 5);
	s.n->memory.total_mib = 1024; /* two guests */
	pooled(pool);
	pooled(pool);
	assert_int_equal(admission_promised_mib(s.n), 1024);
	for (size_t i = 0; i < 3; i++)
		send_it(create_of("a"), "");
	assert_int_equal(hear().code, ERR_EXHAUSTED); /* the third */
	run_until_claimed(2);
	assert_int_equal(admission_promised_mib(s.n), 1024);
	assert_int_equal(s.n->table.in_state[SANDBOX_NAMING], 2); /* nothing gave way */
	assert_int_equal(p->pooled, 0);                           /* they are somebody's */
	assert_int_equal(s.n->pools.used_mib, 0);
	host_end();
}

/* In the order of the queue, whatever is ready: a create that must wait holds up nobody. */
static void each_create_gets_one_of_its_own_source(void **state)
{
	struct sandbox *of_a, *of_base;
	struct snapshot *a;

	(void)state;
	host_open();
	a = snapshot("a");
	snapshot("b");
	send_it(create_of("b"), "");
	run_until_waiting(1);
	of_a = pooled(used(a, 1));
	of_base = pooled(&s.n->pools.base);
	snprintf(of_base->info.template_id, sizeof(of_base->info.template_id), "%s", s.n->base.id);
	send_it(create_of("a"), "");
	send_it(create_of("base"), "");
	run_until_claimed(2);
	assert_int_equal(s.n->creates.n, 1);
	assert_string_equal(s.n->creates.first->snapshot->row.name, "b");
	assert_ptr_equal(of_a->create->snapshot, a);
	assert_null(of_base->create->snapshot);
	assert_null(of_a->pool);
	assert_int_equal(s.n->pools.n_ready, 0);
	host_end();
}

static void what_is_pooled_gives_way_to_who_asks(void **state)
{
	char first[NODE_ID_MAX + 1], second[NODE_ID_MAX + 1];
	struct snapshot *a, *b;

	(void)state;
	host_open();
	a = snapshot("a");
	b = snapshot("b");
	used(a, 1);
	used(b, 1);
	s.n->memory.total_mib = 1024;
	memcpy(first, pooled(a->pool)->info.id, sizeof(first));
	memcpy(second, pooled(b->pool)->info.id, sizeof(second));
	send_it(request("key", ""), ""); /* of base */
	run_until_waiting(1);
	run_until_gone(first); /* it was not used for longest */
	assert_non_null(table_find(&s.n->table, second));
	assert_int_equal(admission_promised_mib(s.n), 1024);
	host_end();
}

/* Memory that pools hold is memory that can be had: what is being removed is not asked for twice.
 */
static void measured_memory_of_pools_is_given_back_too(void **state)
{
	struct snapshot *a;

	(void)state;
	host_open();
	a = snapshot("a");
	used(a, 5);
	pooled(a->pool);
	pooled(a->pool);
	s.n->memory.available_mib = 0; /* 64 of what is pooled are enough for one */
	send_it(request("key", ""), "");
	run_until_waiting(1);
	assert_int_equal(a->pool->n_ready, 1);
	send_it(request("key", ""), "");
	run_until_waiting(2);
	assert_int_equal(a->pool->n_ready, 0);
	send_it(request("key", ""), "");
	assert_int_equal(hear().code, ERR_EXHAUSTED);
	host_end();
}

static void a_pool_never_makes_a_delete_fail(void **state)
{
	struct node_request rq = create_of("a");
	struct snapshot *p;
	struct node_reply r;

	(void)state;
	host_open();
	p = snapshot("a");
	used(p, 1);
	pooled(p->pool);
	pooled(p->pool);
	assert_int_equal(p->users, 2);
	rq.verb = NODE_SNAPSHOT_DELETE;
	send_it(rq, "");
	r = hear();
	assert_int_equal(r.code, ERR_NONE);
	assert_int_equal(s.n->table.n, 0);
	assert_int_equal(s.n->snapshots.n, 0);
	assert_int_equal(s.n->pools.n, 0);
	assert_int_equal(s.n->pools.used_mib, 0);
	assert_int_equal(s.n->pools.leaving_mib, 0);
	host_end();
}

static void a_sandbox_still_makes_a_delete_fail(void **state)
{
	struct node_request rq = create_of("a");
	struct snapshot *p;
	struct sandbox *b;
	struct node_reply r;

	(void)state;
	host_open();
	p = snapshot("a");
	used(p, 1);
	pooled(p->pool);
	b = box_new();
	b->snapshot = snapshot_hold(p);
	box_runs(b);
	rq.verb = NODE_SNAPSHOT_DELETE;
	send_it(rq, "");
	r = hear();
	assert_int_equal(r.code, ERR_INVALID);
	assert_non_null(strstr(r.msg, "there are 1 sandboxes using it"));
	assert_int_equal(p->pool->n_ready, 1);
	host_end();
}

static void one_that_loses_its_name_loses_its_pool(void **state)
{
	struct snapshot *old, *newest;
	char id[NODE_ID_MAX + 1];

	(void)state;
	host_open();
	old = snapshot("a");
	used(old, 1);
	memcpy(id, pooled(old->pool)->info.id, sizeof(id));
	newest = snapshot("a2");
	memcpy(newest->row.name, old->row.name, sizeof(newest->row.name));
	snapshots_rename_older(newest);
	assert_int_equal(old->row.hidden, 1);
	run_until_gone(id);
	while (s.n->snapshots.n > 1) /* nobody else keeps it */
		assert_true(loop_turn(s.n->loop));
	assert_ptr_equal(s.n->snapshots.all, newest);
	host_end();
}

static void base_has_its_share_whatever_others_want(void **state)
{
	struct snapshot *a;

	(void)state;
	host_open();
	s.n->set[SET_POOL].number = 10;
	s.n->set[SET_POOL_MEMORY_MIB].number = 12 * MEMORY_SANDBOX_MIB;
	a = snapshot("a");
	used(a, 1000);
	pools_plan(s.n);
	assert_int_equal(s.n->pools.base.allowed, 10);
	assert_int_equal(a->pool->wanted, EACH_MAX);
	assert_int_equal(a->pool->allowed, 2);
	s.n->set[SET_POOL_MEMORY_MIB].number = 1; /* less than base needs */
	pools_plan(s.n);
	assert_int_equal(s.n->pools.base.allowed, 10);
	assert_int_equal(a->pool->allowed, 0);
	assert_int_equal(pools_budget_mib(s.n), 10 * MEMORY_SANDBOX_MIB);
	s.n->set[SET_POOL_MEMORY_MIB].number = 0; /* no budget */
	pools_plan(s.n);
	assert_int_equal(a->pool->allowed, EACH_MAX);
	host_end();
}

static void pools_are_sorted_by_use(void **state)
{
	static const size_t uses[] = { 3, 9, 1, 9, 20, 2, 2, 1, 40, 5 };
	struct snapshot *all[COUNT(uses)];
	size_t n = 0;

	(void)state;
	host_open();
	for (size_t i = 0; i < COUNT(uses); i++) {
		char name[8];

		snprintf(name, sizeof(name), "s%zu", i);
		all[i] = snapshot(name);
		used(all[i], uses[i]);
	}
	pooled(all[4]->pool); /* counts twice */
	pooled(all[4]->pool);
	for (int again = 0; again < 2; again++) {
		pools_plan(s.n);
		n = 0;
		for (const struct pool *p = s.n->pools.all; p; p = p->next, n++) {
			assert_ptr_equal(*p->prev, p);
			assert_true(!p->next || p->rank >= p->next->rank);
		}
		assert_int_equal(n, COUNT(uses));
		assert_true(all[4]->pool->rank > (uint64_t)30 * POOL_POINTS);
	}
	host_end();
}

/* The budget is full: one that was used least is ended, and only when it is gone is another begun.
 */
static void pools_stay_within_the_budget(void **state)
{
	char id[NODE_ID_MAX + 1];
	struct snapshot *a, *b;

	(void)state;
	host_open();
	s.n->set[SET_POOL_MEMORY_MIB].number = MEMORY_SANDBOX_MIB;
	a = snapshot("a");
	b = snapshot("b");
	used(a, 1);
	memcpy(id, pooled(a->pool)->info.id, sizeof(id));
	used(b, 1); /* as much, and later: that is not enough */
	pools_plan(s.n);
	assert_int_equal(a->pool->allowed, 1);
	assert_int_equal(b->pool->allowed, 0);
	assert_null(pools_lacking(s.n));
	used(b, 2);
	pools_plan(s.n);
	assert_int_equal(a->pool->allowed, 0);
	assert_int_equal(b->pool->allowed, 1);
	assert_null(pools_lacking(s.n)); /* it is not gone yet */
	assert_int_equal(s.n->pools.used_mib, MEMORY_SANDBOX_MIB);
	run_until_gone(id);
	assert_int_equal(s.n->pools.used_mib, 0);
	assert_ptr_equal(pools_lacking(s.n), b->pool);
	host_end();
}

static void nothing_is_filled_while_somebody_waits(void **state)
{
	struct snapshot *a;

	(void)state;
	host_open();
	a = snapshot("a");
	used(a, 1);
	pools_plan(s.n);
	assert_ptr_equal(pools_lacking(s.n), a->pool);
	s.n->creates.claimed = 1; /* a claim is under way */
	assert_null(pools_lacking(s.n));
	s.n->creates.claimed = 0;
	send_it(create_of("a"), "");
	run_until_waiting(1);
	assert_null(pools_lacking(s.n));
	host_end();
}

static void an_unused_pool_is_emptied_and_ends(void **state)
{
	char id[NODE_ID_MAX + 1];
	struct snapshot *a;

	(void)state;
	host_open();
	s.n->set[SET_POOL_UNUSED_S].number = 1;
	a = snapshot("a");
	used(a, 1);
	memcpy(id, pooled(a->pool)->info.id, sizeof(id));
	run_until_gone(id);
	while (s.n->pools.n > 0)
		assert_true(loop_turn(s.n->loop));
	assert_null(a->pool);
	assert_int_equal(s.n->pools.used_mib, 0);
	assert_false(s.n->pools.look.active);
	host_end();
}

static void put(const struct sandbox *b, const char *name, unsigned int mib, const char *text)
{
	char path[NODE_ID_MAX + 96];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/%s", s.dir, b->info.id, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fprintf(f, "%s %llu\nfile 0\n", text, (unsigned long long)mib << 20);
	assert_int_equal(fclose(f), 0);
}

/* As the kernel would say it of its control group. */
static void takes(const struct sandbox *b, unsigned int mib)
{
	char path[NODE_ID_MAX + 96];

	s.n->groups.v2 = true;
	snprintf(s.n->groups.parent, sizeof(s.n->groups.parent), "../../..%s", s.dir);
	snprintf(path, sizeof(path), "%s/%s", s.dir, b->info.id);
	(void)mkdir(path, 0700);
	put(b, "cpu.stat", 1, "usage_usec");
	put(b, "memory.stat", mib, "anon");
}

static void what_is_measured_counts_when_it_is_more(void **state)
{
	char id[NODE_ID_MAX + 1];
	struct snapshot *a;
	struct sandbox *b;

	(void)state;
	host_open();
	a = snapshot("a");
	b = pooled(used(a, 5));
	memcpy(id, b->info.id, sizeof(id));
	assert_int_equal(s.n->pools.used_mib, MEMORY_SANDBOX_MIB);
	takes(b, 100);
	while (s.n->pools.used_mib == MEMORY_SANDBOX_MIB)
		assert_true(loop_turn(s.n->loop));
	assert_int_equal(s.n->pools.used_mib, 100);
	assert_int_equal(a->pool->vm_mib, 100);
	takes(b, POOL_VM_MIB_MAX + 1); /* somebody works in there */
	run_until_gone(id);
	assert_int_equal(a->pool->use.points, 0);
	assert_int_equal(s.n->pools.used_mib, 0);
	host_end();
}

static void pools_are_told(void **state)
{
	const struct node_request status = { .verb = NODE_STATUS };
	char text[HEARD_MAX];
	struct snapshot *a;

	(void)state;
	host_open();
	s.n->set[SET_POOL].number = 3;
	a = snapshot("a");
	used(a, 5);
	pooled(a->pool);
	pools_plan(s.n);
	send_it(status, "");
	assert_int_equal(hear_text(text).code, ERR_NONE);
	assert_non_null(strstr(text, "\"poolMemoryMB\":64,\"poolMemoryMaxMB\":1024"));
	assert_non_null(strstr(text, "\"name\":\"base\",\"teamID\":\"\",\"ready\":0,\"starting\":0,"
				     "\"wanted\":3"));
	assert_non_null(strstr(text, "\"name\":\"a\",\"teamID\":\"team\",\"ready\":1,"
				     "\"starting\":0,\"wanted\":2,\"allowed\":2,\"memoryMB\":64"));
	host_end();
}

enum { CACHED_PAGES = 64 };

static void open_snapshot(const struct snapshot *p, int flags, int *ret)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/snapshots/%s", s.dir, p->row.id);
	assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/snapshots/%s/memory", s.dir, p->row.id);
	*ret = open(path, flags | O_CLOEXEC, 0600);
	assert_true(*ret >= 0);
}

static void write_memory(const struct snapshot *p)
{
	static const char zeros[CACHED_PAGES * 4096];
	AUTO(auto_close) int fd = -1;

	open_snapshot(p, O_WRONLY | O_CREAT, &fd);
	assert_int_equal(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
	assert_int_equal(fsync(fd), 0); /* what is not written yet stays */
}

static size_t pages_in_memory(const struct snapshot *p)
{
	unsigned char in[CACHED_PAGES];
	AUTO(auto_close) int fd = -1;
	size_t n = 0;
	void *at;

	open_snapshot(p, O_RDONLY, &fd);
	at = mmap(NULL, CACHED_PAGES * 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(at != MAP_FAILED);
	assert_int_equal(mincore(at, CACHED_PAGES * 4096, in), 0);
	for (size_t i = 0; i < CACHED_PAGES; i++)
		n += in[i] & 1;
	munmap(at, CACHED_PAGES * 4096);
	return n;
}

/* Whether there are pools or not: one that has a VM stays. */
static void what_no_vm_had_leaves_the_page_cache(void **state)
{
	struct snapshot *used, *unused;
	struct sandbox *b;

	(void)state;
	host_open();
	keep_free(0);
	s.n->set[SET_POOL_EACH_MAX].number = 0;
	used = snapshot("used");
	unused = snapshot("unused");
	write_memory(used);
	write_memory(unused);
	b = box_new();
	b->snapshot = snapshot_hold(used);
	pools_cool_unused(s.n); /* not yet */
	assert_true(unused->cached && unused->cached_ms > 0);
	used->cached_ms -= UNUSED_MS;
	unused->cached_ms -= UNUSED_MS;
	pools_cool_unused(s.n);
	while (pages_in_memory(unused) > 0)
		assert_true(loop_turn(s.n->loop));
	assert_int_equal(pages_in_memory(used), CACHED_PAGES);
	assert_true(!unused->cached && used->cached);
	b->snapshot = NULL;
	snapshot_release(used);
	host_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_wish_follows_use),
		cmocka_unit_test(the_count_neither_overflows_nor_wants_what_may_not_be),
		cmocka_unit_test(the_budget_goes_to_what_was_used_most),
		cmocka_unit_test(only_what_can_be_found_by_a_name_has_a_pool),
		cmocka_unit_test(a_create_counts_as_use_and_waits_for_its_own_pool),
		cmocka_unit_test(what_is_pooled_is_promised_once),
		cmocka_unit_test(each_create_gets_one_of_its_own_source),
		cmocka_unit_test(what_is_pooled_gives_way_to_who_asks),
		cmocka_unit_test(measured_memory_of_pools_is_given_back_too),
		cmocka_unit_test(a_pool_never_makes_a_delete_fail),
		cmocka_unit_test(a_sandbox_still_makes_a_delete_fail),
		cmocka_unit_test(one_that_loses_its_name_loses_its_pool),
		cmocka_unit_test(base_has_its_share_whatever_others_want),
		cmocka_unit_test(pools_are_sorted_by_use),
		cmocka_unit_test(pools_stay_within_the_budget),
		cmocka_unit_test(nothing_is_filled_while_somebody_waits),
		cmocka_unit_test(an_unused_pool_is_emptied_and_ends),
		cmocka_unit_test(what_is_measured_counts_when_it_is_more),
		cmocka_unit_test(what_no_vm_had_leaves_the_page_cache),
		cmocka_unit_test(pools_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
