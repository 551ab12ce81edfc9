/* test_agent_groups.c - a cgroup for every command, on folders that look like cgroups. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "agent/machine/command_groups.h"
#include "base/folder.h"

struct tree {
	char path[64];
	int dir;
	struct command_groups groups;
};

static void write_file(struct tree *t, const char *group, const char *file, const char *text)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "%s/%s", group, file);
	fd = openat(t->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void open_tree(struct tree *t, size_t n)
{
	char name[32];

	snprintf(t->path, sizeof(t->path), "/tmp/hotcell-groups-XXXXXX");
	assert_non_null(mkdtemp(t->path));
	t->dir = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(t->dir >= 0);
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "command-%zu", i);
		assert_int_equal(mkdirat(t->dir, name, 0700), 0);
		write_file(t, name, "cgroup.events", "populated 0\nfrozen 0\n");
		write_file(t, name, "memory.events", "low 0\noom 3\noom_kill 2\n");
	}
	command_groups_init(&t->groups, t->dir);
}

static void close_tree(struct tree *t)
{
	struct err err = { 0 };
	int top = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	command_groups_done(&t->groups);
	close(t->dir);
	assert_int_equal(folder_remove(top, t->path + strlen("/tmp/"), &err), 0);
	close(top);
}

static void each_has_its_own_while_there_are_any(void **state)
{
	struct command_place p[3];
	struct tree t;
	int dir[3];

	(void)state;
	open_tree(&t, 2);
	for (size_t i = 0; i < 3; i++)
		command_groups_take(&t.groups, &p[i], &dir[i]);
	assert_ptr_equal(p[0].group, &t.groups.own[0]);
	assert_ptr_equal(p[1].group, &t.groups.own[1]);
	assert_ptr_equal(p[2].group, &t.groups.rest); /* the others do not look empty */
	for (size_t i = 0; i < 3; i++)
		assert_true(dir[i] == p[i].group->dir && dir[i] >= 0);
	command_place_leave(&p[0]);
	command_place_leave(&p[0]);
	command_groups_take(&t.groups, &p[0], &dir[0]);
	assert_ptr_equal(p[0].group, &t.groups.own[0]);
	close_tree(&t);
}

static void one_that_somebody_is_left_in_is_not_used(void **state)
{
	struct command_place p;
	struct tree t;
	int dir;

	(void)state;
	open_tree(&t, 2);
	write_file(&t, "command-0", "cgroup.events", "populated 1\nfrozen 0\n");
	command_groups_take(&t.groups, &p, &dir);
	assert_ptr_equal(p.group, &t.groups.own[1]);
	close_tree(&t);
}

static void only_what_happened_since_counts(void **state)
{
	struct command_place p;
	struct tree t;
	int dir;

	(void)state;
	open_tree(&t, 1);
	command_groups_take(&t.groups, &p, &dir);
	assert_false(command_place_oom(&p));
	write_file(&t, "command-0", "memory.events", "low 0\noom 4\noom_kill 2\n");
	assert_false(command_place_oom(&p));
	write_file(&t, "command-0", "memory.events", "low 0\noom 4\noom_kill 3\n");
	assert_true(command_place_oom(&p));
	command_place_leave(&p);
	assert_false(command_place_oom(&p));
	command_groups_take(&t.groups, &p, &dir);
	assert_false(command_place_oom(&p));
	close_tree(&t);
}

static void without_cgroups_there_is_nothing_to_do(void **state)
{
	struct command_groups g;
	struct command_place p;
	int dir;

	(void)state;
	command_groups_init(&g, -1);
	command_groups_take(&g, &p, &dir);
	assert_true(dir == -1 && !p.group && !command_place_oom(&p));
	command_place_leave(&p);
	command_groups_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_has_its_own_while_there_are_any),
		cmocka_unit_test(one_that_somebody_is_left_in_is_not_used),
		cmocka_unit_test(only_what_happened_since_counts),
		cmocka_unit_test(without_cgroups_there_is_nothing_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
