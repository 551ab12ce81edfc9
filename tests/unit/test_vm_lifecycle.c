/* test_vm_lifecycle.c - every pair of states: legal steps are taken, all others abort. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "vm/lifecycle.h"

struct step {
	enum vm_state from, to;
};

static const struct step legal[] = {
	{ VM_NEW, VM_STARTING },    { VM_NEW, VM_GONE },          { VM_STARTING, VM_LOADING },
	{ VM_STARTING, VM_PAUSED }, { VM_STARTING, VM_STOPPING }, { VM_STARTING, VM_GONE },
	{ VM_LOADING, VM_PAUSED },  { VM_LOADING, VM_STOPPING },  { VM_LOADING, VM_GONE },
	{ VM_PAUSED, VM_RUNNING },  { VM_PAUSED, VM_STOPPING },   { VM_PAUSED, VM_GONE },
	{ VM_RUNNING, VM_PAUSED },  { VM_RUNNING, VM_STOPPING },  { VM_RUNNING, VM_GONE },
	{ VM_STOPPING, VM_GONE },
};

static bool is_legal(enum vm_state from, enum vm_state to)
{
	for (size_t i = 0; i < COUNT(legal); i++)
		if (legal[i].from == from && legal[i].to == to)
			return true;
	return false;
}

/* In a child, since the step may abort. */
static bool survives(enum vm_state from, enum vm_state to)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct vm_life life = { from };

		signal(SIGABRT, SIG_DFL);
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		vm_life_enter(&life, to);
		_exit(life.state == to ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGABRT);
	else
		assert_int_equal(WEXITSTATUS(status), 0);
	return !WIFSIGNALED(status);
}

static void every_step_not_in_the_table_aborts(void **state)
{
	(void)state;
	for (unsigned int from = 0; from <= VM_STATES; from++)
		for (unsigned int to = 0; to <= VM_STATES; to++) {
			bool want = is_legal((enum vm_state)from, (enum vm_state)to);

			if (survives((enum vm_state)from, (enum vm_state)to) != want)
				fail_msg("%s -> %s", vm_state_name((enum vm_state)from),
					 vm_state_name((enum vm_state)to));
		}
}

/* What keeps a guest from running by itself: nothing but paused leads to running. */
static void only_paused_leads_to_running(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(legal); i++)
		if (legal[i].to == VM_RUNNING)
			assert_int_equal(legal[i].from, VM_PAUSED);
}

static void every_state_has_a_name(void **state)
{
	(void)state;
	assert_string_equal(vm_state_name(VM_NEW), "new");
	assert_string_equal(vm_state_name(VM_GONE), "gone");
	assert_string_equal(vm_state_name(VM_STATES), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_step_not_in_the_table_aborts),
		cmocka_unit_test(only_paused_leads_to_running),
		cmocka_unit_test(every_state_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
