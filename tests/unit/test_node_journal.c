/* test_node_journal.c - what was acknowledged is there, whatever happens. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/folder.h"
#include "base/latency.h"
#include "net/timer.h"
#include "node/journal/journal_catalog.h"

enum { GUARD_MS = 100000, MANY = 10000, RESERVED = 700 };

static struct scene {
	struct loop *loop;
	struct timer guard;
	struct journal *journal;
	char dir[64], path[80];
	size_t n_done, n_failed;
	struct err why;
	size_t n_rows;
	struct journal_row last;
	char text[128], known[128];
	uint64_t order[8];
	bool close_when_done;
} s;

struct written {
	struct journal_write write;
	int done;
	size_t order;
	struct err err;
};

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

static void on_done(struct journal_write *w, const struct err *err)
{
	struct written *me = CONTAINER_OF(w, struct written, write);

	assert_null(w->journal);
	me->done++;
	me->order = ++s.n_done;
	if (err) {
		me->err = *err;
		s.why = *err;
		s.n_failed++;
	}
	if (s.close_when_done) {
		s.close_when_done = false;
		journal_close(TAKE(s.journal));
	}
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

	s = (struct scene){ .dir = "/tmp/hotcell-journal-XXXXXX" };
	assert_non_null(mkdtemp(s.dir));
	snprintf(s.path, sizeof(s.path), "%s/journal.db", s.dir);
	assert_int_equal(loop_open(&s.loop, &err), 0);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
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

static void reopen(void)
{
	journal_close(TAKE(s.journal));
	open_journal();
}

static void run_until(size_t n)
{
	while (s.n_done < n)
		assert_true(loop_turn(s.loop));
}

static struct journal_row row_of(size_t i)
{
	struct journal_row r = { .state = JOURNAL_RUNNING, .slot = (uint32_t)i };

	snprintf(r.sandbox.id, sizeof(r.sandbox.id), "id-%zu", i);
	snprintf(r.sandbox.team, sizeof(r.sandbox.team), "team");
	r.sandbox.started_ns = 1000 + i;
	return r;
}

static void put(struct written *w, const struct journal_row *r, bool durable)
{
	struct err err;

	if (journal_put(s.journal, &w->write, r, durable, on_done, &err) < 0)
		fail_msg("%s", err.msg);
}

static int count_row(const struct journal_row *row, void *context, struct err *err)
{
	(void)context;
	(void)err;
	if (s.n_rows < COUNT(s.order))
		s.order[s.n_rows] = row->sandbox.started_ns;
	s.n_rows++;
	s.last = *row;
	snprintf(s.text, sizeof(s.text), "%s", row->text ? row->text : "(none)");
	snprintf(s.known, sizeof(s.known), "%s", row->known ? row->known : "(none)");
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

	s.n_rows = 0;
	if (journal_each(s.journal, count_row, no_odd_row, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	return s.n_rows;
}

static void everything_comes_back_as_it_was(void **state)
{
	struct written w = { 0 };
	char text[] = "{\"metadata\":{\"a\":\"\xc3\xa4\"}}";
	char known[] = "[[\"a.example\",\"1.2.3.4\"]]";
	struct journal_row r = {
		.sandbox = { .id = "abc",
			     .team = "t",
			     .template_id = "base",
			     .alias = "al",
			     .access_token = "secret",
			     .traffic_token = "traffic",
			     .started_ns = 1763000000000000000u,
			     .end_ns = UINT64_MAX,
			     .vcpus = 2,
			     .memory_mib = 512,
			     .disk_mib = 4096,
			     .state = NODE_ENDING,
			     .generation = UINT32_MAX,
			     .flags = NODE_SECURE,
			     .reason = NODE_EVICTED,
			     .ended_ns = 1763000000000000001u },
		.control_token = "control",
		.machine_id = "machine",
		.boot_id = "boot",
		.key_id = "key",
		.pages_crc = UINT32_MAX,
		.state_crc = 7,
		.disk_crc = UINT32_MAX - 3,
		.saved_bytes = 1ull << 40,
		.run_boot_ns = 12345,
		.end_boot_ns = 23456,
		.token = "request",
		.idempotency = "again",
		.request_print = UINT64_MAX - 1,
		.base_sums = UINT64_MAX - 2,
		.state = JOURNAL_KILLING,
		.slot = 77,
		.text = text,
		.known = known,
	};
	struct stat st;

	(void)state;
	scene_open();
	open_journal();
	put(&w, &r, true);
	memset(text, 'x', sizeof(text) - 1); /* it was copied */
	memset(known, 'x', sizeof(known) - 1);
	run_until(1);
	assert_int_equal(w.err.code, ERR_NONE);
	reopen();
	assert_int_equal(count_rows(), 1);
	assert_string_equal(s.known, "[[\"a.example\",\"1.2.3.4\"]]");
	assert_memory_equal(&s.last.sandbox, &r.sandbox, sizeof(r.sandbox));
	assert_string_equal(s.last.token, "request");
	assert_string_equal(s.text, "{\"metadata\":{\"a\":\"\xc3\xa4\"}}");
	s.last.text = r.text = s.last.known = r.known = NULL;
	assert_memory_equal(&s.last, &r, sizeof(r));
	assert_int_equal(stat(s.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600); /* it holds tokens */
	scene_end();
}

static void writes_are_done_and_told_in_order(void **state)
{
	struct written w[6] = { 0 };
	struct journal_row a = row_of(5), b = row_of(3);
	struct err err;

	(void)state;
	scene_open();
	open_journal();
	put(&w[0], &a, false);
	a.slot = 99;
	put(&w[1], &a, true);
	put(&w[2], &b, false);
	assert_int_equal(journal_remove(s.journal, &w[3].write, "id-3", on_done, &err), 0);
	b.sandbox.started_ns = 1;
	put(&w[4], &b, false);
	assert_int_equal(journal_remove(s.journal, &w[5].write, "nobody", on_done, &err), 0);
	run_until(6);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(w[i].order, i + 1);
		assert_int_equal(w[i].err.code, ERR_NONE);
	}
	assert_int_equal(count_rows(), 2);
	assert_int_equal(s.order[0], 1); /* by started_ns */
	assert_int_equal(s.order[1], 1005);
	assert_int_equal(s.last.slot, 99);
	assert_string_equal(s.text, "(none)");
	scene_end();
}

static void a_cancelled_write_is_written_and_not_told(void **state)
{
	struct written w[2] = { 0 };
	struct journal_row r = row_of(1);

	(void)state;
	scene_open();
	open_journal();
	put(&w[0], &r, false);
	journal_write_cancel(&w[0].write);
	journal_write_cancel(&w[0].write);
	r = row_of(2);
	put(&w[1], &r, false);
	run_until(1);
	assert_int_equal(w[0].done, 0);
	assert_int_equal(w[1].done, 1);
	assert_int_equal(count_rows(), 2);
	scene_end();
}

static void closing_writes_what_was_asked_for(void **state)
{
	struct written w[200] = { 0 };

	(void)state;
	scene_open();
	open_journal();
	for (size_t i = 0; i < COUNT(w); i++) {
		struct journal_row r = row_of(i);

		put(&w[i], &r, false);
	}
	reopen();
	assert_int_equal(count_rows(), COUNT(w));
	assert_int_equal(s.n_done, 0);
	for (size_t i = 0; i < COUNT(w); i++)
		assert_null(w[i].write.journal);
	s.close_when_done = true; /* from a callback, with more to tell */
	for (size_t i = 0; i < 3; i++) {
		struct journal_row r = row_of(i);

		put(&w[i], &r, false);
	}
	run_until(1);
	assert_int_equal(w[0].done, 1);
	scene_end();
}

static void one_node_per_journal(void **state)
{
	struct journal *second;
	struct err err;

	(void)state;
	scene_open();
	open_journal();
	assert_int_equal(journal_open(s.loop, s.path, &second, &err), -1);
	assert_int_equal(err.code, ERR_EXISTS);
	assert_non_null(strstr(err.msg, s.path));
	scene_end();
}

static void overwrite(const char *path, off_t at, const char *with, size_t n)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_int_equal(pwrite(fd, with, n, at), (ssize_t)n);
	close(fd);
}

static void drop_log(void)
{
	char path[sizeof(s.path) + 8];

	snprintf(path, sizeof(path), "%s-wal", s.path);
	assert_int_equal(unlink(path), 0);
}

static void a_damaged_file_is_named_and_kept(void **state)
{
	static const struct {
		const char *name;
		off_t at;
	} rows[] = { { "not a database", 0 }, { "a broken page", 4096 } };
	char noise[4096];

	(void)state;
	memset(noise, 0x55, sizeof(noise));
	FOR_ROWS(row, rows) {
		struct written w[100] = { 0 };
		struct stat before, after;
		struct journal *none;
		struct err err;

		scene_open();
		open_journal();
		for (size_t i = 0; i < COUNT(w); i++) {
			struct journal_row r = row_of(i);

			put(&w[i], &r, false);
		}
		journal_close(TAKE(s.journal));
		drop_log(); /* which has the same pages once more */
		overwrite(s.path, row->at, noise, sizeof(noise));
		assert_int_equal(stat(s.path, &before), 0);
		assert_int_equal(journal_open(s.loop, s.path, &none, &err), -1);
		print_message("    says: %s\n", err.msg);
		assert_non_null(strstr(err.msg, s.path));
		assert_non_null(strstr(err.msg, "move it away"));
		assert_int_equal(stat(s.path, &after), 0);
		assert_int_equal(after.st_size, before.st_size);
		assert_int_equal(after.st_ino, before.st_ino);
		scene_end();
	}
}

/* As a node of schema 1 left it. */
static void make_schema_1(void)
{
	static const char sql[] =
		"PRAGMA journal_mode = WAL; CREATE TABLE sandbox ("
		" id TEXT PRIMARY KEY, team TEXT NOT NULL, template_id TEXT NOT NULL,"
		" alias TEXT NOT NULL, access_token TEXT NOT NULL, control_token TEXT NOT NULL,"
		" started_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, vcpus INTEGER NOT NULL,"
		" memory_mib INTEGER NOT NULL, disk_mib INTEGER NOT NULL,"
		" node_state INTEGER NOT NULL, generation INTEGER NOT NULL,"
		" flags INTEGER NOT NULL, state INTEGER NOT NULL, slot INTEGER NOT NULL,"
		" text TEXT) STRICT; PRAGMA user_version = 1;"
		"INSERT INTO sandbox VALUES ('old', 'team', 'base', 'al', 'access', 'control',"
		" 1000, 2000, 2, 512, 4096, 0, 3, 1, 2, 9, '{}');";
	sqlite3 *db;

	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void a_file_of_an_older_version_is_brought_up(void **state)
{
	struct written w = { 0 };

	(void)state;
	scene_open();
	make_schema_1();
	for (int times = 0; times < 2; times++) {
		open_journal();
		assert_int_equal(count_rows(), 1);
		assert_string_equal(s.last.sandbox.id, "old");
		assert_string_equal(s.last.control_token, "control");
		assert_int_equal(s.last.sandbox.end_ns, 2000);
		assert_int_equal(s.last.sandbox.reason, NODE_ALIVE);
		assert_int_equal(s.last.state, JOURNAL_RUNNING);
		assert_int_equal(s.last.slot, 9);
		assert_string_equal(s.last.machine_id, "");
		assert_int_equal(s.last.saved_bytes, 0);
		assert_int_equal(s.last.base_sums, 0);
		assert_int_equal(s.last.disk_crc, 0);
		assert_string_equal(s.text, "{}");
		journal_close(TAKE(s.journal));
	}
	open_journal();
	s.last.state = JOURNAL_PAUSED;
	s.last.text = NULL;
	put(&w, &s.last, true);
	run_until(1);
	assert_int_equal(count_rows(), 1);
	assert_int_equal(s.last.state, JOURNAL_PAUSED);
	scene_end();
}

/* What it lacks is all that was added since: a migration never changes. */
static void a_file_of_the_version_before_is_brought_up(void **state)
{
	static const char sql[] = "ALTER TABLE sandbox DROP COLUMN blank;"
				  "ALTER TABLE snapshot DROP COLUMN kind;"
				  "ALTER TABLE snapshot DROP COLUMN key;"
				  "ALTER TABLE snapshot DROP COLUMN context;"
				  "DROP TABLE template; DROP TABLE build;"
				  "PRAGMA user_version = 6";
	const struct journal_template t = { .id = "t1",
					    .team = "team",
					    .tags = (char[]){ "a b 1\n" } };
	const struct journal_build b = { .id = "b1", .template_id = "t1", .vcpus = 2 };
	struct written w = { 0 };
	struct err err;
	sqlite3 *db;

	(void)state;
	scene_open();
	open_journal();
	journal_close(TAKE(s.journal));
	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	open_journal();
	assert_int_equal(count_rows(), 0);
	assert_int_equal(journal_put_template(s.journal, &w.write, &t, &b, on_done, &err), 0);
	run_until(1);
	assert_int_equal(s.n_failed, 0);
	scene_end();
}

static struct catalog_seen {
	size_t templates, builds;
	char tags[64];
	uint32_t status;
} seen;

static int see_template(const struct journal_template *row, void *context, struct err *err)
{
	(void)context, (void)err;
	seen.templates++;
	snprintf(seen.tags, sizeof(seen.tags), "%s", row->tags ? row->tags : "");
	return 0;
}

static int see_build(const struct journal_build *row, void *context, struct err *err)
{
	(void)context, (void)err;
	seen.builds++;
	seen.status = row->status;
	return 0;
}

static void see_odd(const struct journal_odd *row, void *context)
{
	(void)context;
	fail_msg("%s: %s", row->id, row->why);
}

static void look_at_catalog(void)
{
	struct err err;

	seen = (struct catalog_seen){ 0 };
	assert_int_equal(journal_each_template(s.journal, see_template, see_odd, NULL, &err), 0);
	assert_int_equal(journal_each_build(s.journal, see_build, see_odd, NULL, &err), 0);
}

/* A template and its builds come back as they were, and go together. */
static void templates_come_back(void **state)
{
	const struct journal_template t = { .id = "t1",
					    .team = "team",
					    .tags = (char[]){ "v1 b2 7\n" } };
	struct journal_build b = { .id = "b1", .template_id = "t1", .status = BUILD_ERROR };
	struct written w[4] = { 0 };
	struct err err;

	(void)state;
	scene_open();
	open_journal();
	assert_int_equal(journal_put_template(s.journal, &w[0].write, &t, &b, on_done, &err), 0);
	snprintf(b.id, sizeof(b.id), "b2");
	assert_int_equal(journal_put_template(s.journal, &w[1].write, NULL, &b, on_done, &err), 0);
	run_until(2);
	journal_close(TAKE(s.journal));
	open_journal();
	look_at_catalog();
	assert_int_equal(seen.templates, 1);
	assert_int_equal(seen.builds, 2);
	assert_string_equal(seen.tags, "v1 b2 7\n");
	assert_int_equal(seen.status, BUILD_ERROR);
	assert_int_equal(journal_remove_build(s.journal, &w[2].write, "b1", on_done, &err), 0);
	run_until(3);
	look_at_catalog();
	assert_int_equal(seen.builds, 1);
	assert_int_equal(journal_remove_template(s.journal, &w[3].write, "t1", on_done, &err), 0);
	run_until(4);
	look_at_catalog();
	assert_int_equal(seen.templates + seen.builds, 0);
	scene_end();
}

/* Half of a migration is none. */
static void a_migration_that_fails_leaves_the_file_as_it_was(void **state)
{
	struct journal *none;
	struct err err;
	sqlite3 *db;

	(void)state;
	scene_open();
	make_schema_1();
	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE tombstone (x)", NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(journal_open(s.loop, s.path, &none, &err), -1);
	assert_int_equal(sqlite3_exec(db, "SELECT machine_id FROM sandbox", NULL, NULL, NULL),
			 SQLITE_ERROR);
	assert_int_equal(sqlite3_exec(db, "DROP TABLE tombstone", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	open_journal();
	assert_int_equal(count_rows(), 1);
	scene_end();
}

static void other_databases_are_refused(void **state)
{
	static const struct {
		const char *name, *sql;
		enum err_code code;
		const char *says;
	} rows[] = {
		{ "of a later version", "PRAGMA user_version = 99", ERR_MISMATCH, "later version" },
		{ "of somebody else", "CREATE TABLE mine (x)", ERR_INVALID, "not a journal" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct journal *none;
		struct err err;
		sqlite3 *db;

		scene_open();
		assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, row->sql, NULL, NULL, NULL), SQLITE_OK);
		sqlite3_close(db);
		assert_int_equal(journal_open(s.loop, s.path, &none, &err), -1);
		assert_int_equal(err.code, row->code);
		assert_non_null(strstr(err.msg, row->says));
		scene_end();
	}
}

static void a_file_in_use_is_an_error_after_a_while(void **state)
{
	struct written w[3] = { 0 };
	struct journal_row r = row_of(1);
	sqlite3 *db;

	(void)state;
	scene_open();
	open_journal();
	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	put(&w[0], &r, false);
	put(&w[1], &r, false);
	run_until(2);
	assert_int_equal(s.n_failed, 2);
	assert_int_equal(s.why.code, ERR_UNAVAILABLE);
	assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	put(&w[2], &r, false);
	run_until(3);
	assert_int_equal(w[2].err.code, ERR_NONE);
	assert_int_equal(count_rows(), 1);
	scene_end();
}

/* A file that may not grow stands for a disk that is full. */
static void no_room_is_told_and_recovered_from(void **state)
{
	struct written w[3] = { 0 };
	static char text[40000];
	struct journal_row r = row_of(1);
	struct rlimit before, tight;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	scene_open();
	open_journal();
	put(&w[0], &r, false);
	run_until(1);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	tight = before;
	tight.rlim_cur = 40000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	r = row_of(2);
	r.text = text;
	put(&w[1], &r, false);
	run_until(2);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(s.n_failed, 1);
	assert_int_equal(journal_use(s.journal).failed, 1);
	assert_int_equal(journal_use(s.journal).took->count, 2);
	print_message("    says: %s: %s\n", err_name(s.why.code), s.why.msg);
	put(&w[2], &r, true);
	run_until(3);
	assert_int_equal(s.n_failed, 1);
	assert_int_equal(count_rows(), 2);
	reopen();
	assert_int_equal(count_rows(), 2);
	scene_end();
}

static off_t size_of(const char *suffix)
{
	char path[sizeof(s.path) + 8];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s", s.path, suffix);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_blocks * 512 >= st.st_size);
	return st.st_size;
}

/* Neither of its files may grow by a byte. */
static void on_a_full_disk_there_is_a_reserve(void **state)
{
	static struct written w[RESERVED];
	struct journal_row r;
	struct rlimit before, tight;
	off_t file, log;

	(void)state;
	memset(w, 0, sizeof(w));
	scene_open();
	open_journal();
	file = size_of("");
	log = size_of("-wal");
	print_message("    %jd and %jd KiB\n", (intmax_t)file / 1024, (intmax_t)log / 1024);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	tight = before;
	tight.rlim_cur = (rlim_t)(file < log ? file : log);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	for (uint64_t i = 0; i < RESERVED; i++) {
		r = row_of(1 + i);
		put(&w[i], &r, i % 2);
		run_until(1 + i); /* each its own transaction: the log is written again and again */
	}
	reopen();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(s.n_failed, 0);
	assert_int_equal(count_rows(), RESERVED);
	assert_true(size_of("") == file && size_of("-wal") == log);
	scene_end();
}

static void the_queue_has_an_end(void **state)
{
	static struct written w[JOURNAL_QUEUE_MAX + 1];
	struct journal_row r = row_of(1);
	struct err err;

	(void)state;
	memset(w, 0, sizeof(w));
	scene_open();
	open_journal();
	for (size_t i = 0; i < JOURNAL_QUEUE_MAX; i++) /* none is told: the loop does not run */
		put(&w[i], &r, false);
	assert_int_equal(
		journal_put(s.journal, &w[JOURNAL_QUEUE_MAX].write, &r, false, on_done, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	run_until(JOURNAL_QUEUE_MAX);
	assert_int_equal(s.n_failed, 0);
	put(&w[JOURNAL_QUEUE_MAX], &r, false);
	run_until(JOURNAL_QUEUE_MAX + 1);
	scene_end();
}

static void the_log_of_writes_stays_small(void **state)
{
	static char text[20000];
	char wal[96];
	struct stat st;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	scene_open();
	open_journal();
	snprintf(wal, sizeof(wal), "%s-wal", s.path);
	for (size_t i = 0; i < 2000; i++) { /* 40 MB through it */
		struct written w = { 0 };
		struct journal_row r = row_of(i % 10);

		r.text = text;
		put(&w, &r, false);
		run_until(i + 1);
	}
	assert_int_equal(s.n_failed, 0);
	assert_int_equal(stat(wal, &st), 0);
	print_message("    %lld KiB\n", (long long)st.st_size / 1024);
	assert_in_range(st.st_size, 1, 20 * 1024 * 1024);
	scene_end();
}

/* The life of the child: put rows, say on the pipe which are acknowledged, until killed. */
static struct writer {
	struct journal_write writes[64];
	size_t numbers[64], next;
	int pipe;
} child;

static void child_put(size_t i);

static void on_child_done(struct journal_write *w, const struct err *err)
{
	size_t i = (size_t)(w - child.writes);

	if (err || write(child.pipe, &child.numbers[i], sizeof(size_t)) != sizeof(size_t))
		_exit(1);
	child_put(i);
}

static void child_put(size_t i)
{
	struct journal_row r = row_of(child.next);
	struct err err;

	child.numbers[i] = child.next++;
	if (journal_put(s.journal, &child.writes[i], &r, i == 0, on_child_done, &err) < 0)
		_exit(2);
}

static _Noreturn void child_main(int pipe)
{
	struct err err;

	child.pipe = pipe;
	if (loop_open(&s.loop, &err) < 0 || journal_open(s.loop, s.path, &s.journal, &err) < 0)
		_exit(3);
	for (size_t i = 0; i < COUNT(child.writes); i++)
		child_put(i);
	loop_run(s.loop);
	_exit(4);
}

static uint8_t acknowledged[1000000];

static int tick_off(const struct journal_row *row, void *context, struct err *err)
{
	(void)context;
	(void)err;
	assert_true(row->slot < COUNT(acknowledged));
	acknowledged[row->slot] = 2;
	return 0;
}

static void a_killed_process_loses_nothing_it_acknowledged(void **state)
{
	(void)state;
	for (size_t round = 0; round < 3; round++) {
		size_t number, heard = 0, enough = 300 + 1700 * round;
		int pipes[2], status;
		struct err err;
		pid_t pid;

		memset(acknowledged, 0, sizeof(acknowledged));
		scene_open();
		assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			child_main(pipes[1]);
		close(pipes[1]);
		while (heard < enough && read(pipes[0], &number, sizeof(number)) > 0) {
			acknowledged[number] = 1;
			heard++;
		}
		assert_int_equal(kill(pid, SIGKILL), 0);
		while (read(pipes[0], &number, sizeof(number)) == sizeof(number)) {
			acknowledged[number] = 1;
			heard++;
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		close(pipes[0]);
		open_journal();
		assert_int_equal(journal_each(s.journal, tick_off, no_odd_row, NULL, &err), 0);
		for (size_t i = 0; i < COUNT(acknowledged); i++)
			if (acknowledged[i] == 1)
				fail_msg("row %zu was acknowledged and is not there", i);
		print_message("    killed after %zu rows\n", heard);
		scene_end();
	}
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Figures, not limits: the machine may be busy. */
static void how_long_things_take(void **state)
{
	static struct written w[MANY];
	static uint64_t took[200];
	uint64_t from;

	(void)state;
	memset(w, 0, sizeof(w));
	scene_open();
	open_journal();
	for (size_t durable = 0; durable < 2; durable++) {
		for (size_t i = 0; i < COUNT(took); i++) {
			struct journal_row r = row_of(i);

			w[i] = (struct written){ 0 };
			from = clock_mono_ns();
			put(&w[i], &r, durable);
			run_until(s.n_done + 1);
			took[i] = clock_mono_ns() - from;
		}
		qsort(took, COUNT(took), sizeof(took[0]), compare);
		print_message("    a put on an idle journal%s: median %llu us, 95%% %llu us\n",
			      durable ? ", durable" : "",
			      (unsigned long long)took[COUNT(took) / 2] / 1000,
			      (unsigned long long)took[COUNT(took) * 95 / 100] / 1000);
	}
	from = clock_mono_ns();
	for (size_t i = 0; i < MANY; i++) {
		char text[] = "{\"metadata\":{\"some\":\"thing of the usual length\"}}";
		struct journal_row r = row_of(i);

		w[i] = (struct written){ 0 };
		r.text = text;
		put(&w[i], &r, false);
	}
	run_until(s.n_done + MANY);
	print_message("    %d rows written in %llu ms\n", MANY,
		      (unsigned long long)(clock_mono_ns() - from) / NSEC_PER_MSEC);
	from = clock_mono_ns();
	reopen();
	assert_int_equal(count_rows(), MANY);
	print_message("    %d rows: closed, opened and read in %llu ms\n", MANY,
		      (unsigned long long)(clock_mono_ns() - from) / NSEC_PER_MSEC);
	scene_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_comes_back_as_it_was),
		cmocka_unit_test(writes_are_done_and_told_in_order),
		cmocka_unit_test(a_cancelled_write_is_written_and_not_told),
		cmocka_unit_test(closing_writes_what_was_asked_for),
		cmocka_unit_test(one_node_per_journal),
		cmocka_unit_test(a_damaged_file_is_named_and_kept),
		cmocka_unit_test(a_file_of_an_older_version_is_brought_up),
		cmocka_unit_test(a_file_of_the_version_before_is_brought_up),
		cmocka_unit_test(templates_come_back),
		cmocka_unit_test(a_migration_that_fails_leaves_the_file_as_it_was),
		cmocka_unit_test(other_databases_are_refused),
		cmocka_unit_test(a_file_in_use_is_an_error_after_a_while),
		cmocka_unit_test(no_room_is_told_and_recovered_from),
		cmocka_unit_test(on_a_full_disk_there_is_a_reserve),
		cmocka_unit_test(the_queue_has_an_end),
		cmocka_unit_test(the_log_of_writes_stays_small),
		cmocka_unit_test(a_killed_process_loses_nothing_it_acknowledged),
		cmocka_unit_test(how_long_things_take),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
