/* test_node_installation.c - the id of an installation, and what follows from it. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "net/loop.h"
#include "node/recovery/installation.h"

enum { TURNS_MAX = 10000 };

static struct scene {
	char base[40], path[64];
	int dir;
	struct loop *loop;
	struct journal *journal;
	struct installation it;
} s;

static int begin(struct err *err)
{
	s.it = (struct installation){ .boot_id = "boot-1" };
	assert_int_equal(journal_open(s.loop, s.path, &s.journal, err), 0);
	return installation_open(&s.it, s.journal, s.base, err);
}

static void end(void)
{
	installation_close(&s.it);
	journal_close(TAKE(s.journal));
}

static int scene_open(void **state)
{
	struct err err;

	(void)state;
	snprintf(s.base, sizeof(s.base), "/tmp/hotcell-installation-XXXXXX");
	assert_non_null(mkdtemp(s.base));
	snprintf(s.path, sizeof(s.path), "%s/journal.db", s.base);
	s.dir = open(s.base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(loop_open(&s.loop, &err), 0);
	return 0;
}

static int scene_end(void **state)
{
	AUTO(auto_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err;

	(void)state;
	loop_free(s.loop);
	close(s.dir);
	assert_int_equal(folder_remove(tmp, s.base + strlen("/tmp/"), &err), 0);
	return 0;
}

static void sql(const char *statement)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, statement, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void file_of_1970(const char *name)
{
	const struct timespec then[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

	assert_int_equal(mkdirat(s.dir, name, 0700), 0);
	assert_int_equal(utimensat(s.dir, name, then, 0), 0);
}

static void it_is_made_once(void **state)
{
	char first[sizeof(s.it.id)];
	struct err err;

	(void)state;
	assert_int_equal(begin(&err), 0);
	assert_int_equal(strlen(s.it.id), 32);
	memcpy(first, s.it.id, sizeof(first));
	assert_false(installation_is_other(&s.it, first));
	assert_false(installation_is_other(&s.it, "")); /* of a VM before there were ids */
	assert_true(installation_is_other(&s.it, "0123"));
	end();
	assert_int_equal(begin(&err), 0);
	assert_string_equal(s.it.id, first);
	end();
}

/* What was there before a new installation may be another's; an old one has no such doubts. */
static void what_is_older_than_it(void **state)
{
	struct err err;

	(void)state;
	file_of_1970("old");
	assert_int_equal(begin(&err), 0);
	assert_true(installation_is_younger(&s.it, s.dir, "old"));
	assert_int_equal(mkdirat(s.dir, "new", 0700), 0);
	assert_false(installation_is_younger(&s.it, s.dir, "new"));
	assert_false(installation_is_younger(&s.it, s.dir, "absent"));
	end();
	assert_int_equal(begin(&err), 0); /* the next node knows it, too */
	assert_true(installation_is_younger(&s.it, s.dir, "old"));
	end();
	sql("DELETE FROM meta"); /* as a version before it left it */
	assert_int_equal(unlinkat(s.dir, INSTALLATION_FILE, 0), 0);
	assert_int_equal(begin(&err), 0);
	assert_false(installation_is_younger(&s.it, s.dir, "old"));
	end();
}

static void a_file_that_makes_no_sense_is_refused(void **state)
{
	struct err err;
	int fd;

	(void)state;
	assert_int_equal(begin(&err), 0);
	end();
	fd = openat(s.dir, INSTALLATION_FILE, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "../x\n", 5), 5);
	close(fd);
	assert_int_equal(begin(&err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.msg, "remove it"));
	end();
}

static void another_boot_is_noticed(void **state)
{
	struct err err;
	int turns = 0;

	(void)state;
	assert_int_equal(begin(&err), 0);
	assert_false(s.it.other_boot); /* nothing is known of an earlier one */
	installation_note_boot(&s.it, s.journal);
	while (!s.it.boot_noted && turns++ < TURNS_MAX)
		assert_true(loop_turn(s.loop));
	end();
	assert_int_equal(begin(&err), 0);
	assert_true(!s.it.other_boot && s.it.boot_noted);
	end();
	sql("UPDATE meta SET value = 'boot-0' WHERE name = 'boot'");
	assert_int_equal(begin(&err), 0);
	assert_true(s.it.other_boot && !s.it.boot_noted);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_made_once, scene_open, scene_end),
		cmocka_unit_test_setup_teardown(what_is_older_than_it, scene_open, scene_end),
		cmocka_unit_test_setup_teardown(a_file_that_makes_no_sense_is_refused, scene_open,
						scene_end),
		cmocka_unit_test_setup_teardown(another_boot_is_noticed, scene_open, scene_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
