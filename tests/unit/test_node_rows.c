/* test_node_rows.c - all rows of a journal, in their order; one that makes no sense stops no other;
 * and those that come back with a log that was damaged.
 */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sqlite3.h>

#include "base/bytes.h"
#include "base/folder.h"
#include "node/journal/journal_db.h"
#include "node/journal/snapshots_db.h"
#include "node/journal/tombstones_db.h"

enum { MANY = 3000, ODD_MAX = 8, FILE_MAX = 16 * 1024 * 1024 };

static struct scene {
	char dir[64], path[80];
	struct journal_db *db;
	size_t n_rows, n_odd;
	uint64_t last_ns;
	char last[NODE_ID_MAX + 1];
	struct journal_odd odd[ODD_MAX];
	char why[ODD_MAX][128];
} s;

static int set_up(void **state)
{
	struct err err;

	(void)state;
	s = (struct scene){ .dir = "/tmp/hotcell-rows-XXXXXX" };
	assert_non_null(mkdtemp(s.dir));
	snprintf(s.path, sizeof(s.path), "%s/journal.db", s.dir);
	assert_int_equal(journal_db_open(s.path, &s.db, &err), 0);
	return 0;
}

static int tear_down(void **state)
{
	AUTO(auto_close) int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err err;

	(void)state;
	journal_db_close(s.db);
	return folder_remove(tmp, s.dir + strlen("/tmp/"), &err);
}

static void put(size_t i, uint64_t started_ns)
{
	struct journal_row r = { .state = JOURNAL_PAUSED, .sandbox.started_ns = started_ns };
	struct err err;

	snprintf(r.sandbox.id, sizeof(r.sandbox.id), "id-%zu", i);
	snprintf(r.sandbox.team, sizeof(r.sandbox.team), "team");
	if (journal_db_put(s.db, &r, &err) < 0)
		fail_msg("%s", err.msg);
}

/* As a later version, or a mistake, would leave it. */
static void alter(const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static int on_row(const struct journal_row *row, void *context, struct err *err)
{
	const char *unwanted = context;

	assert_true(row->sandbox.started_ns >= s.last_ns);
	s.last_ns = row->sandbox.started_ns;
	snprintf(s.last, sizeof(s.last), "%s", row->sandbox.id);
	s.n_rows++;
	if (unwanted && strcmp(row->sandbox.id, unwanted) == 0)
		return err_set(err, ERR_INVALID, 0, "it is not wanted");
	return 0;
}

static int on_snapshot(const struct journal_snapshot *row, void *context, struct err *err)
{
	(void)context, (void)err;
	snprintf(s.last, sizeof(s.last), "%s", row->id);
	s.n_rows++;
	return 0;
}

static void on_odd(const struct journal_odd *row, void *context)
{
	(void)context;
	assert_true(s.n_odd < ODD_MAX);
	s.odd[s.n_odd] = *row;
	snprintf(s.why[s.n_odd++], sizeof(s.why[0]), "%s", row->why);
}

static void read_all(char *unwanted)
{
	struct err err;

	s.n_rows = s.n_odd = 0;
	s.last_ns = 0;
	if (journal_db_each(s.db, on_row, on_odd, unwanted, &err) < 0)
		fail_msg("%s", err.msg);
}

static void rows_come_in_order(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(journal_db_begin(s.db, false, &err), 0);
	for (size_t i = 0; i < MANY; i++)
		put(i, 1 + (i * 7919) % MANY);
	assert_int_equal(journal_db_end(s.db, 0, &err), 0);
	read_all(NULL);
	assert_int_equal(s.n_rows, MANY);
	assert_int_equal(s.n_odd, 0);
	assert_int_equal(s.last_ns, MANY);
}

static void an_odd_row_is_told_apart_and_stays(void **state)
{
	(void)state;
	for (size_t i = 0; i < 5; i++)
		put(i, i);
	alter("UPDATE sandbox SET state = 99 WHERE id = 'id-1';"
	      "UPDATE sandbox SET reason = 99, template_id = 'snap', base_id = 'base' "
	      "WHERE id = 'id-2';"
	      "UPDATE sandbox SET team = printf('%.*c', 200, 'x') WHERE id = 'id-3'");
	for (int again = 0; again < 2; again++) {
		read_all(NULL);
		assert_int_equal(s.n_rows, 2); /* the first and the last */
		assert_string_equal(s.last, "id-4");
		assert_int_equal(s.n_odd, 3);
		assert_string_equal(s.odd[0].id, "id-1");
		assert_string_equal(s.odd[0].team, "team");
		assert_string_equal(s.why[0], "state 99 is not known");
		assert_string_equal(s.odd[1].template_id, "snap");
		assert_string_equal(s.odd[1].base_id, "base");
		assert_string_equal(s.why[1], "reason 99 is not known");
		assert_int_equal(strlen(s.odd[2].team), NODE_ID_MAX); /* as much as fits */
		assert_string_equal(s.why[2], "team is too long");
	}
	alter("UPDATE sandbox SET state = 2, reason = 0, team = 'team'");
	read_all(NULL);
	assert_int_equal(s.n_rows, 5);
	assert_int_equal(s.n_odd, 0);
}

static void a_row_that_is_refused_stops_no_other(void **state)
{
	char unwanted[] = "id-1";

	(void)state;
	for (size_t i = 0; i < 3; i++)
		put(i, i);
	read_all(unwanted);
	assert_int_equal(s.n_rows, 3);
	assert_int_equal(s.n_odd, 1);
	assert_string_equal(s.odd[0].id, "id-1");
	assert_string_equal(s.why[0], "it is not wanted");
}

static void the_same_of_snapshots(void **state)
{
	struct journal_snapshot row = { .team = "team", .base_id = "base", .layers = 1 };
	struct err err;

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		snprintf(row.id, sizeof(row.id), "s%d", (int)i);
		row.created_ns = 10 - i;
		assert_int_equal(journal_db_put_snapshot(s.db, &row, &err), 0);
	}
	alter("UPDATE snapshot SET name = printf('%.*c', 64, 'x') WHERE id = 's1'");
	assert_int_equal(journal_db_each_snapshot(s.db, on_snapshot, on_odd, NULL, &err), 0);
	assert_int_equal(s.n_rows, 2);
	assert_string_equal(s.last, "s0"); /* the youngest is last */
	assert_int_equal(s.n_odd, 1);
	assert_string_equal(s.odd[0].id, "s1");
	assert_string_equal(s.odd[0].base_id, "base");
}

/* --- a log that was damaged --------------------------------------------------------------- */

static size_t take_file(const char *suffix, uint8_t *ret)
{
	char path[96];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s%s", s.path, suffix);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	n = read(fd, ret, FILE_MAX);
	assert_true(n > 0 && n < FILE_MAX);
	close(fd);
	return (size_t)n;
}

static void leave_file(const char *suffix, const uint8_t *from, size_t n)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s%s", s.path, suffix);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, from, n), n);
	close(fd);
}

/* Its process was killed, which leaves the log as it is; a bit flips in that, unless `at` is 0. */
static void open_again(size_t at)
{
	static uint8_t file[FILE_MAX], log[FILE_MAX];
	size_t n_file = take_file("", file), n_log = take_file("-wal", log);
	struct err err;

	assert_true(at < n_log);
	if (at)
		log[at] ^= 1;
	journal_db_close(TAKE(s.db));
	leave_file("", file, n_file);
	leave_file("-wal", log, n_log);
	assert_int_equal(journal_db_open(s.path, &s.db, &err), 0);
}

static void bury(void)
{
	const struct node_tombstone t = {
		.id = "id-0", .team = "team", .ended_ns = 5, .reason = NODE_KILLED
	};
	struct err err;

	assert_int_equal(journal_db_begin(s.db, false, &err), 0);
	assert_int_equal(journal_db_bury(s.db, &t, &err), 0);
	assert_int_equal(journal_db_end(s.db, 0, &err), 0);
}

static size_t count_snapshots(void)
{
	struct err err;

	s.n_rows = 0;
	assert_int_equal(journal_db_each_snapshot(s.db, on_snapshot, on_odd, NULL, &err), 0);
	return s.n_rows;
}

/* SQLite takes its log up to the damage: a journal of before. A node that finishes what was under
 * way then writes the same bytes where the damage was, and all that follows is whole again: rows
 * come back whose folders were set aside meanwhile. */
static void rows_come_back_with_what_was_damaged(void **state)
{
	static uint8_t before[FILE_MAX], after[FILE_MAX];
	struct journal_snapshot row = { .id = "s0", .team = "team", .base_id = "base" };
	struct err err;
	size_t n, at = 0;

	(void)state;
	put(0, 1);
	n = take_file("-wal", before);
	bury();
	assert_true(take_file("-wal", after) >= n);
	while (at < n && before[at] == after[at])
		at++; /* where its burial begins */
	assert_int_equal(journal_db_put_snapshot(s.db, &row, &err), 0);
	open_again(at);
	read_all(NULL);
	assert_int_equal(s.n_rows, 1);
	assert_int_equal(count_snapshots(), 0);
	bury();
	assert_int_equal(count_snapshots(), 0);
	open_again(0);
	read_all(NULL);
	assert_int_equal(s.n_rows, 0);
	assert_int_equal(count_snapshots(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_come_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_odd_row_is_told_apart_and_stays, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_row_that_is_refused_stops_no_other, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_same_of_snapshots, set_up, tear_down),
		cmocka_unit_test_setup_teardown(rows_come_back_with_what_was_damaged, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
