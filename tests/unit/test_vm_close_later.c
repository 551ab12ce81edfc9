/* test_vm_close_later.c - a descriptor is closed elsewhere, and nobody waits. */
#include "tests/unit/check.h"

#include <unistd.h>

#include "vm/close_later.h"

/* The loop may be gone by then. */
static void it_is_closed_though_nobody_waits(void **state)
{
	struct loop *l;
	struct err err;
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(loop_open(&l, &err), 0);
	assert_int_equal(pipe(ends), 0);
	close_later(l, ends[1]);
	close_later(l, -1);
	loop_free(l);
	assert_int_equal(read(ends[0], &byte, 1), 0); /* waits for it */
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_closed_though_nobody_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
