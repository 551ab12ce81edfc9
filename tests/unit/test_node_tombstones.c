/* test_node_tombstones.c - of those that ended it is known why, for a while; the rows of snapshots;
 * and rows that do not say yet what they differ from.
 */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sqlite3.h>

#include "base/bytes.h"
#include "base/folder.h"
#include "net/timer.h"
#include "node/journal/journal_meta.h"
#include "node/journal/journal_snapshots.h"

enum { GUARD_MS = 100000 };

static struct scene {
	struct loop *loop;
	struct timer guard;
	struct journal *journal;
	char dir[64], path[80];
	size_t n_done, n_failed;
	struct node_tombstone found[TOMBSTONES_PAGE];
	size_t n_found;
} s;

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

static void on_done(struct journal_write *w, const struct err *err)
{
	(void)w;
	s.n_done++;
	s.n_failed += err != NULL;
}

static void on_found(struct journal_search *search, const struct node_tombstone *found, size_t n,
		     const struct err *err)
{
	assert_null(search->write.journal);
	assert_null(err);
	s.n_done++;
	s.n_found = n;
	memcpy(s.found, found, n * sizeof(*found));
}

static void open_journal(void)
{
	struct err err;

	if (journal_open(s.loop, s.path, &s.journal, &err) < 0)
		fail_msg("%s", err.msg);
}

static void scene_open(void)
{
	struct err err;

	s = (struct scene){ .dir = "/tmp/hotcell-tombs-XXXXXX" };
	assert_non_null(mkdtemp(s.dir));
	snprintf(s.path, sizeof(s.path), "%s/journal.db", s.dir);
	assert_int_equal(loop_open(&s.loop, &err), 0);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	open_journal();
}

static void scene_end(void)
{
	AUTO(auto_close) int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err err;

	timer_stop(&s.guard);
	journal_close(TAKE(s.journal));
	loop_free(s.loop);
	assert_int_equal(folder_remove(tmp, s.dir + strlen("/tmp/"), &err), 0);
}

static void run_until(size_t n)
{
	while (s.n_done < n)
		assert_true(loop_turn(s.loop));
	s.n_done = 0;
}

static struct node_tombstone stone(const char *id, const char *team, uint64_t ended_ns)
{
	struct node_tombstone t = { .template_id = "base",
				    .started_ns = 5,
				    .ended_ns = ended_ns,
				    .reason = NODE_LIFETIME };

	snprintf(t.id, sizeof(t.id), "%s", id);
	snprintf(t.team, sizeof(t.team), "%s", team);
	return t;
}

/* The root page of an index that holds nothing: SQLite's own check finds no fault with it. */
static void damage_tombstones(void)
{
	AUTO(auto_close) int fd = -1;
	sqlite3_stmt *statement;
	sqlite3 *db;
	off_t at;
	uint8_t interior = 0x02; /* it was 0x0a, a leaf */

	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL), 0);
	assert_int_equal(
		sqlite3_prepare_v2(
			db,
			"SELECT (rootpage - 1) * (SELECT page_size FROM "
			"pragma_page_size) FROM sqlite_schema WHERE name = 'tombstone_all'",
			-1, &statement, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	at = (off_t)sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	fd = open(s.path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &interior, 1, at), 1);
}

static void a_write_that_fails_is_remembered(void **state)
{
	const struct node_tombstone t = stone("a", "t", 1);
	struct journal_write w = { 0 };
	struct err err;

	(void)state;
	scene_open();
	assert_string_equal(journal_failure(s.journal), "");
	journal_close(TAKE(s.journal));
	damage_tombstones();
	open_journal();
	assert_int_equal(journal_bury(s.journal, &w, &t, on_done, &err), 0);
	run_until(1);
	assert_int_equal(s.n_failed, 1);
	assert_non_null(strstr(journal_failure(s.journal), "malformed"));
	scene_end();
}

static void bury(const char *id, const char *team, uint64_t ended_ns)
{
	const struct node_tombstone t = stone(id, team, ended_ns);
	struct journal_write w = { 0 };
	struct err err;

	assert_int_equal(journal_bury(s.journal, &w, &t, on_done, &err), 0);
	run_until(1);
	assert_int_equal(s.n_failed, 0);
}

static size_t find(const char *team, const char *id)
{
	const struct ended_query q = { team, id, 0 };
	struct journal_search search = { 0 };
	struct err err;

	assert_int_equal(journal_find_ended(s.journal, &search, &q, on_found, &err), 0);
	run_until(1);
	return s.n_found;
}

static size_t list(const char *team, uint64_t after_ns, const char *id)
{
	const struct ended_query q = { team, id, after_ns };
	struct journal_search search = { 0 };
	struct err err;

	assert_int_equal(journal_list_ended(s.journal, &search, &q, on_found, &err), 0);
	run_until(1);
	return s.n_found;
}

static int count_row(const struct journal_row *row, void *context, struct err *err)
{
	size_t *n = context;

	(void)row, (void)err;
	(*n)++;
	return 0;
}

static void no_odd_row(const struct journal_odd *row, void *context)
{
	(void)context;
	fail_msg("%s: %s", row->id, row->why);
}

static size_t count_rows(void)
{
	struct err err;
	size_t n = 0;

	assert_int_equal(journal_each(s.journal, count_row, no_odd_row, &n, &err), 0);
	return n;
}

static void a_row_becomes_a_tombstone(void **state)
{
	struct journal_row row = { .sandbox = { .id = "a", .team = "t" } };
	const struct node_tombstone t = stone("a", "t", 77);
	struct journal_write w[2] = { 0 };
	struct journal_search search = { 0 };
	struct err err;

	(void)state;
	scene_open();
	assert_int_equal(journal_put(s.journal, &w[0], &row, false, on_done, &err), 0);
	assert_int_equal(journal_bury(s.journal, &w[1], &t, on_done, &err), 0);
	assert_int_equal(journal_find_ended(s.journal, &search,
					    &(struct ended_query){ "t", "a", 0 }, on_found, &err),
			 0);
	run_until(3);
	assert_int_equal(s.n_found, 1); /* it sees what was asked for before */
	assert_int_equal(count_rows(), 0);
	journal_close(TAKE(s.journal));
	open_journal();
	assert_int_equal(find("t", "a"), 1);
	assert_memory_equal(&s.found[0], &t, sizeof(t));
	assert_int_equal(find("", "a"), 1); /* an operator */
	assert_int_equal(find("other", "a"), 0);
	assert_int_equal(find("t", "b"), 0);
	scene_end();
}

/* The row that was put again is gone in the end, and there is one tombstone: the last. */
static void buried_twice_is_there_once(void **state)
{
	(void)state;
	scene_open();
	bury("a", "t", 10);
	bury("a", "t", 20);
	assert_int_equal(list("t", 0, ""), 1);
	assert_int_equal(s.found[0].ended_ns, 20);
	scene_end();
}

static void lists_go_on_where_they_ended(void **state)
{
	char id[NODE_ID_MAX + 1];
	uint64_t after = 0;
	size_t seen = 0;

	(void)state;
	scene_open();
	for (unsigned int i = 0; i < 2 * TOMBSTONES_PAGE + 10; i++) {
		snprintf(id, sizeof(id), "id%04u", i);
		bury(id, i % 2 ? "odd" : "even", 100 + i / 4); /* some at the same instant */
	}
	id[0] = '\0';
	while (list("", after, id) > 0) {
		for (size_t i = 0; i < s.n_found; i++, seen++) {
			char want[NODE_ID_MAX + 1];

			snprintf(want, sizeof(want), "id%04zu", seen);
			assert_string_equal(s.found[i].id, want);
		}
		after = s.found[s.n_found - 1].ended_ns;
		memcpy(id, s.found[s.n_found - 1].id, sizeof(id));
	}
	assert_int_equal(seen, 2 * TOMBSTONES_PAGE + 10);
	assert_int_equal(list("odd", 0, ""), TOMBSTONES_PAGE);
	assert_string_equal(s.found[0].team, "odd");
	assert_int_equal(list("odd", UINT64_MAX, ""), 0);
	assert_int_equal(list("nobody", 0, ""), 0);
	scene_end();
}

static void the_old_are_dropped_in_slices(void **state)
{
	struct journal_write w = { 0 };
	struct err err;
	char id[NODE_ID_MAX + 1];

	(void)state;
	scene_open();
	for (unsigned int i = 0; i < TOMBSTONES_SLICE + 3; i++) {
		snprintf(id, sizeof(id), "id%04u", i);
		bury(id, "t", 100);
	}
	bury("young", "t", 200);
	assert_int_equal(journal_prune(s.journal, &w, 150, on_done, &err), 0);
	run_until(1);
	assert_int_equal(list("", 0, ""), 3 + 1);
	assert_int_equal(journal_prune(s.journal, &w, 150, on_done, &err), 0);
	run_until(1);
	assert_int_equal(list("", 0, ""), 1);
	assert_string_equal(s.found[0].id, "young");
	scene_end();
}

/* That many are put there by other means: it is the number that is tested. */
static void no_more_than_so_many(void **state)
{
	static const char fill[] =
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
		" INSERT INTO tombstone SELECT i, 'old' || i, 't', 'base', 1, 1000 + i, 1 FROM n";
	sqlite3 *db;

	(void)state;
	assert_int_equal(TOMBSTONES_MAX, 100000);
	scene_open();
	journal_close(TAKE(s.journal));
	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, fill, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	open_journal();
	assert_int_equal(find("t", "old1"), 1);
	bury("new1", "t", 1);
	bury("new2", "t", 1);
	assert_int_equal(find("t", "old1"), 0);
	assert_int_equal(find("t", "old2"), 0);
	assert_int_equal(find("t", "old3"), 1);
	assert_int_equal(find("t", "new1"), 1);
	scene_end();
}

static void searches_leave_room_for_writes(void **state)
{
	static struct journal_search many[JOURNAL_SEARCHES_MAX + 1];
	const struct ended_query q = { "", "x", 0 };
	struct journal_row row = { .sandbox = { .id = "a", .team = "t" } };
	struct journal_write w = { 0 };
	struct err err;

	(void)state;
	scene_open();
	for (size_t i = 0; i < JOURNAL_SEARCHES_MAX; i++)
		assert_int_equal(journal_find_ended(s.journal, &many[i], &q, on_found, &err), 0);
	assert_int_equal(
		journal_find_ended(s.journal, &many[JOURNAL_SEARCHES_MAX], &q, on_found, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	assert_int_equal(journal_put(s.journal, &w, &row, false, on_done, &err), 0);
	journal_search_cancel(&many[7]);
	run_until(JOURNAL_SEARCHES_MAX);
	assert_int_equal(find("", "x"), 0); /* there is room again */
	scene_end();
}

/* --- snapshots ---------------------------------------------------------------------------- */

static int on_snapshot(const struct journal_snapshot *row, void *context, struct err *err)
{
	struct journal_snapshot *got = context;

	(void)err;
	assert_true(s.n_found < 2);
	got[s.n_found++] = *row;
	return 0;
}

static void put_snapshot(const struct journal_snapshot *row)
{
	struct journal_write w = { 0 };
	struct err err;

	assert_int_equal(journal_put_snapshot(s.journal, &w, row, on_done, &err), 0);
	run_until(1);
	assert_int_equal(s.n_failed, 0);
}

static void snapshots_come_back(void **state)
{
	struct journal_snapshot got[2], one = { .id = "aaa",
						.team = "t1",
						.base_id = "base-1",
						.parent = "base-1",
						.source = "i1",
						.name = "work",
						.tag = "v1",
						.control_token = "secret",
						.token = "request",
						.created_ns = 1700000000000000000,
						.memory_bytes = 1ull << 40,
						.disk_bytes = 5,
						.vcpus = 2,
						.memory_mib = 512,
						.disk_mib = 1024,
						.base_sums = UINT64_MAX - 5,
						.layers = 3 };
	struct journal_snapshot two = one;
	struct journal_write w = { 0 };
	struct err err;

	(void)state;
	scene_open();
	snprintf(two.id, sizeof(two.id), "bbb");
	two.created_ns--;
	put_snapshot(&one);
	put_snapshot(&two);
	two.hidden = 1;
	put_snapshot(&two);
	journal_close(TAKE(s.journal));
	open_journal();
	assert_int_equal(journal_each_snapshot(s.journal, on_snapshot, no_odd_row, got, &err), 0);
	assert_int_equal(s.n_found, 2);
	assert_memory_equal(&got[0], &two, sizeof(two)); /* the oldest first */
	assert_memory_equal(&got[1], &one, sizeof(one));

	assert_int_equal(journal_remove_snapshot(s.journal, &w, "bbb", on_done, &err), 0);
	run_until(1);
	s.n_found = 0;
	assert_int_equal(journal_each_snapshot(s.journal, on_snapshot, no_odd_row, got, &err), 0);
	assert_int_equal(s.n_found, 1);
	assert_string_equal(got[0].id, "aaa");
	scene_end();
}

/* --- what rows of before differ from ------------------------------------------------------ */

static uint64_t sums_here(const char *id, bool snapshot, void *context)
{
	size_t *asked = context;

	(*asked)++;
	if (strcmp(id, "gone") == 0)
		return 0;
	return snapshot ? 2 : UINT64_MAX;
}

static int take_sums(const struct journal_row *row, void *context, struct err *err)
{
	uint64_t *to = context;

	(void)err;
	to[s.n_found++] = row->base_sums;
	return 0;
}

/* Those without sums get them once; what nobody knows stays without, and others as they are. */
static void rows_of_before_are_bound_once(void **state)
{
	static const struct {
		const char *made_of, *base_id;
		uint64_t before, after;
	} rows[] = { { "base-1", "", 0, UINT64_MAX },
		     { "base-1", "", 7, 7 },
		     { "snap", "base-1", 0, 2 },
		     { "gone", "", 0, 0 } };
	struct journal_snapshot snap = { .id = "snap", .base_id = "base-1", .name = "", .tag = "" };
	struct journal_write w[COUNT(rows)] = { 0 };
	uint64_t sums[COUNT(rows)];
	size_t asked = 0;
	struct err err;

	(void)state;
	scene_open();
	put_snapshot(&snap);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct journal_row r = { .base_sums = rows[i].before };

		snprintf(r.sandbox.id, sizeof(r.sandbox.id), "i%zu", i);
		snprintf(r.sandbox.template_id, sizeof(r.sandbox.template_id), "%s",
			 rows[i].made_of);
		snprintf(r.base_id, sizeof(r.base_id), "%s", rows[i].base_id);
		assert_int_equal(journal_put(s.journal, &w[i], &r, false, on_done, &err), 0);
	}
	run_until(COUNT(rows));
	if (journal_bind(s.journal, sums_here, &asked, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(asked, 3); /* each once: base-1, snap, gone */
	journal_close(TAKE(s.journal));
	open_journal();
	s.n_found = 0;
	assert_int_equal(journal_each(s.journal, take_sums, no_odd_row, sums, &err), 0);
	assert_int_equal(s.n_found, COUNT(rows));
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(sums[i], rows[i].after);
	s.n_found = 0;
	assert_int_equal(journal_each_snapshot(s.journal, on_snapshot, no_odd_row, &snap, &err), 0);
	assert_int_equal(snap.base_sums, 2);
	asked = 0;
	assert_int_equal(journal_bind(s.journal, sums_here, &asked, &err), 0);
	assert_int_equal(asked, 1);
	scene_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_that_fails_is_remembered),
		cmocka_unit_test(a_row_becomes_a_tombstone),
		cmocka_unit_test(buried_twice_is_there_once),
		cmocka_unit_test(lists_go_on_where_they_ended),
		cmocka_unit_test(the_old_are_dropped_in_slices),
		cmocka_unit_test(no_more_than_so_many),
		cmocka_unit_test(searches_leave_room_for_writes),
		cmocka_unit_test(snapshots_come_back),
		cmocka_unit_test(rows_of_before_are_bound_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
