/* test_copier.c - pages of a VM saved and put back. */
#include "tests/unit/copier_world.h"

/* --- what is saved ------------------------------------------------------------------------ */

static void changed_pages_come_back(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_much, BYTES, MAP_PRIVATE);
	struct vm b = start(x.w.memory, does_nothing, BYTES, MAP_PRIVATE);
	struct copier_reply saved = { 0 }, synced = { 0 }, applied = { 0 };
	struct pages_run runs[COUNT(much)];
	struct pages_head head;
	struct err err = { 0 };
	uint64_t bytes = 0;

	(void)state;
	use(&x, &a);
	assert_int_equal(copy_all(&x.w, &saved, &err), 0);
	assert_int_equal(saved.pages, 6);
	assert_int_equal(saved.zero_pages, 2);
	assert_int_equal(pread(x.w.pages, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(head.runs, COUNT(much));
	assert_int_equal(pread(x.w.pages, runs, sizeof(runs), (off_t)pages_table_at(&head)),
			 sizeof(runs));
	assert_memory_equal(runs, much, sizeof(much));
	assert_int_equal(saved.pages_crc, crc_of(x.w.pages, &bytes));
	assert_int_equal(saved.pages_bytes, bytes);
	assert_int_equal(saved.state_crc, crc_of(x.w.state, &bytes));
	assert_int_equal(saved.state_bytes, bytes);
	assert_int_equal(bytes, STATE_BYTES);
	assert_int_equal(work_sync(&x.w, &synced, &err), 0);
	assert_memory_equal(&synced, &saved, sizeof(saved));
	crc_of(x.w.saved, &bytes);
	assert_int_equal(bytes, 0); /* its room is given back */

	use(&x, &b);
	assert_int_equal(work_apply(&x.w, &applied, &err), 0);
	assert_int_equal(applied.pages, 6);
	assert_int_equal(applied.pages_crc, saved.pages_crc);
	same_memory(&x, &a, &b);
	end(&a);
	end(&b);
	end_world(&x);
}

static void does_everything(uint8_t *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes / PAGES_BYTES; i++)
		page(memory, i)[i % PAGES_BYTES] ^= 0xff;
}

/* Between the two passes, to what does_everything() left. */
static void goes_on(uint8_t *memory, size_t bytes)
{
	(void)bytes;
	memset(page(memory, 0), 'A', PAGES_BYTES);             /* another copy */
	memset(page(memory, 5), 'B', (size_t)2 * PAGES_BYTES); /* the same of two */
	memset(page(memory, 9), 0, PAGES_BYTES);               /* its copy is of no use */
	fill(page(memory, 12), 13);                            /* as it was in the beginning */
	(void)madvise(page(memory, 15), PAGES_BYTES, MADV_DONTNEED); /* the same, and absent */
	page(memory, PAGES - 1)[17] = 'z';                           /* the last */
}

static void what_changes_meanwhile_is_copied_again(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start_busy(x.w.memory, does_everything, goes_on, BYTES, MAP_PRIVATE);
	struct vm b = start(x.w.memory, does_nothing, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };
	uint64_t bytes = 0;

	(void)state;
	x.w.crew = crew_start();
	assert_non_null(x.w.crew);
	use(&x, &a);
	assert_int_equal(work_first(&x.w, &r, &err), 0);
	assert_int_equal(r.pages, PAGES);
	tell(&a);
	r = (struct copier_reply){ 0 };
	assert_int_equal(copy_all(&x.w, &r, &err), 0);
	assert_int_equal(r.pages, PAGES - 3);
	assert_int_equal(r.zero_pages, 1);
	assert_int_equal(crc_of(x.w.pages, &bytes), r.pages_crc);
	assert_int_equal(bytes, r.pages_bytes);
	/* all of the first, and the four that were written again */
	assert_in_range(bytes, PAGES_DATA_AT + (PAGES + 4) * PAGES_BYTES,
			PAGES_DATA_AT + (PAGES + 5) * PAGES_BYTES - 1);
	assert_int_equal(work_sync(&x.w, &r, &err), 0);
	use(&x, &b);
	assert_int_equal(work_apply(&x.w, &r, &err), 0);
	same_memory(&x, &a, &b);
	end(&a);
	end(&b);
	end_world(&x);
}

/* Copies are never more than the format allows. */
static void there_is_one_first_pass(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_everything, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };
	uint64_t bytes = 0;

	(void)state;
	use(&x, &a);
	for (int i = 0; i < 3; i++) { /* each begins anew */
		r = (struct copier_reply){ 0 };
		assert_int_equal(work_first(&x.w, &r, &err), 0);
		assert_int_equal(r.pages, PAGES);
	}
	assert_int_equal(work_state(&x.w, &r, &err), -1); /* of what? */
	assert_int_equal(work_sync(&x.w, &r, &err), -1);
	r = (struct copier_reply){ 0 };
	err = (struct err){ 0 };
	assert_int_equal(copy_all(&x.w, &r, &err), 0);
	assert_int_equal(crc_of(x.w.pages, &bytes), r.pages_crc);
	assert_int_equal(bytes, r.pages_bytes);
	end(&a);
	end_world(&x);
}

static void nothing_changed(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_nothing, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };

	(void)state;
	use(&x, &a);
	assert_int_equal(copy_all(&x.w, &r, &err), 0);
	assert_int_equal(r.pages + r.zero_pages, 0);
	assert_int_equal(r.pages_bytes, PAGES_DATA_AT);
	r = (struct copier_reply){ 0 };
	assert_int_equal(work_apply(&x.w, &r, &err), 0);
	end(&a);
	end_world(&x);
}

/* More than fits into one piece, and what an earlier, larger save left in the file is cut off. */
static void every_page_changed(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_everything, BYTES, MAP_PRIVATE);
	struct vm b = start(x.w.memory, does_much, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };
	uint64_t bytes = 0;

	(void)state;
	assert_int_equal(ftruncate(x.w.pages, 2L * BYTES), 0);
	use(&x, &a);
	assert_int_equal(copy_all(&x.w, &r, &err), 0);
	assert_int_equal(r.pages, PAGES);
	assert_int_equal(crc_of(x.w.pages, &bytes), r.pages_crc);
	assert_int_equal(bytes, r.pages_bytes);
	r = (struct copier_reply){ 0 };
	use(&x, &b);
	assert_int_equal(work_apply(&x.w, &r, &err), 0);
	same_memory(&x, &a, &b);
	end(&a);
	end(&b);
	end_world(&x);
}

static void swaps_out(uint8_t *memory, size_t bytes)
{
	does_much(memory, bytes);
	(void)madvise(memory, bytes, MADV_PAGEOUT);
}

static bool has_swap(void)
{
	FILE *f = fopen("/proc/swaps", "re");
	char line[256];
	int lines = 0;

	while (f && fgets(line, sizeof(line), f))
		lines++;
	if (f)
		fclose(f);
	return lines > 1;
}

static void swapped_pages_count(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, swaps_out, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };

	(void)state;
	if (!has_swap())
		print_message("    no swap here: the pages stay in memory\n");
	use(&x, &a);
	assert_int_equal(copy_all(&x.w, &r, &err), 0);
	assert_int_equal(r.pages, 6);
	assert_int_equal(r.zero_pages, 2);
	end(&a);
	end_world(&x);
}

/* --- what is refused ---------------------------------------------------------------------- */

static uint8_t first_byte(const struct world *x, const struct vm *vm)
{
	struct mappings m;
	struct err err = { 0 };
	uint8_t byte = 0;

	assert_int_equal(mapping_find(vm->maps, &x->w.file, BYTES, &m, &err), 0);
	assert_int_equal(pread(vm->mem, &byte, 1, (off_t)m.all[0].at), 1);
	return byte;
}

/* A memory of the same size, and not the one that was compared with: nothing of it is written. */
static void pages_of_another_template_are_refused(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_much, BYTES, MAP_PRIVATE);
	struct vm b = start(x.w.memory, does_nothing, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct pages_head head;
	struct err err = { 0 };

	(void)state;
	x.w.base_crc = 0x12345678;
	use(&x, &a);
	assert_int_equal(copy_all(&x.w, &r, &err), 0);
	assert_int_equal(pread(x.w.pages, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(head.base_crc, 0x12345678);
	use(&x, &b);
	x.w.base_crc++;
	assert_int_equal(work_apply(&x.w, &r, &err), -1);
	assert_int_equal(err.code, ERR_BASE_LOST);
	assert_non_null(strstr(err.msg, "12345678"));
	assert_int_not_equal(first_byte(&x, &b), 'a');
	x.w.base_crc--;
	err = (struct err){ 0 };
	assert_int_equal(work_apply(&x.w, &r, &err), 0);
	same_memory(&x, &a, &b);
	end(&a);
	end(&b);
	end_world(&x);
}

/* Files of before say nothing of it, and are not refused. */
static void pages_of_before_are_applied(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_much, BYTES, MAP_PRIVATE);
	struct vm b = start(x.w.memory, does_nothing, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };

	(void)state;
	use(&x, &a);
	assert_int_equal(copy_all(&x.w, &r, &err), 0);
	use(&x, &b);
	x.w.base_crc = 0x12345678;
	assert_int_equal(work_apply(&x.w, &r, &err), 0);
	same_memory(&x, &a, &b);
	end(&a);
	end(&b);
	end_world(&x);
}

/* Writing into it would change the template of all. */
static void shared_memory_is_refused(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_nothing, BYTES, MAP_SHARED);
	struct copier_reply r = { 0 };
	struct err err = { 0 };

	(void)state;
	use(&x, &a);
	assert_int_equal(copy_all(&x.w, &r, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	end(&a);
	end_world(&x);
}

static void a_vm_that_ended(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_much, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };

	(void)state;
	use(&x, &a);
	kill(a.pid, SIGKILL);
	waitpid(a.pid, NULL, 0);
	assert_int_equal(copy_all(&x.w, &r, &err), -1);
	end(&a);
	end_world(&x);
}

static void device_state_is_bounded(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_nothing, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };

	(void)state;
	use(&x, &a);
	assert_int_equal(ftruncate(x.w.saved, 0), 0);
	assert_int_equal(copy_all(&x.w, &r, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(work_sync(&x.w, &r, &err), -1); /* of what? */
	assert_int_equal(ftruncate(x.w.saved, COPIER_STATE_MAX + 1L), 0);
	r = (struct copier_reply){ 0 };
	assert_int_equal(copy_all(&x.w, &r, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	end(&a);
	end_world(&x);
}

static void nobody_waits(void **state)
{
	struct world x = make_world(PAGES);
	struct copier_reply r = { 0 };
	struct err err = { 0 };
	struct vm a;

	(void)state;
	close(take_fd(&x.node)); /* before the child gets a copy of it */
	a = start(x.w.memory, does_everything, BYTES, MAP_PRIVATE);
	use(&x, &a);
	assert_int_equal(copy_all(&x.w, &r, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	end(&a);
	end_world(&x);
}

static void damage_after_writing_is_found(void **state)
{
	static const char *const names[] = { "pages", "state" };

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		struct world x = make_world(PAGES);
		struct vm a = start(x.w.memory, does_much, BYTES, MAP_PRIVATE);
		struct copier_reply r = { 0 };
		struct err err = { 0 };

		print_message("    row: %s\n", names[i]);
		use(&x, &a);
		assert_int_equal(copy_all(&x.w, &r, &err), 0);
		assert_int_equal(pwrite(i == 0 ? x.w.pages : x.w.state, "!", 1, 5000), 1);
		assert_int_equal(work_sync(&x.w, &r, &err), -1);
		assert_non_null(strstr(err.msg, names[i]));
		end(&a);
		end_world(&x);
	}
}

/* --- how long it takes: COPIER_MIB of memory, of which every eighth 16 KiB changed ----------- */

static void changes_an_eighth(uint8_t *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes / PAGES_BYTES; i += 32)
		for (size_t k = 0; k < 4; k++)
			memset(page(memory, i + k), (int)(i + k) | 1, PAGES_BYTES);
	for (size_t i = 0; i < bytes / PAGES_BYTES; i++)
		(void)*(volatile uint8_t *)page(memory, i);
}

/* Of the processor: how long others kept it busy is no matter of this. */
static uint64_t busy_us(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void how_long(void **state)
{
	const char *mib = getenv("COPIER_MIB");
	uint64_t bytes = (mib ? strtoul(mib, NULL, 10) : 16) << 20, begun;
	struct world x = make_world(bytes / PAGES_BYTES);
	struct vm a = start(x.w.memory, changes_an_eighth, bytes, MAP_PRIVATE);
	struct vm b = start(x.w.memory, does_nothing, bytes, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };
	uint64_t first, save, apply;

	(void)state;
	use(&x, &a);
	begun = busy_us();
	assert_int_equal(work_first(&x.w, &r, &err), 0);
	first = busy_us() - begun;
	r = (struct copier_reply){ 0 };
	begun = busy_us();
	assert_int_equal(copy_all(&x.w, &r, &err), 0);
	save = busy_us() - begun;
	use(&x, &b);
	begun = busy_us();
	assert_int_equal(work_apply(&x.w, &r, &err), 0);
	apply = busy_us() - begun;
	print_message(
		"    %lu MiB, %lu pages changed: first pass %lu us, then %lu us, apply %lu us "
		"of a processor\n",
		bytes >> 20, r.pages, first, save, apply);
	end(&a);
	end(&b);
	end_world(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changed_pages_come_back),
		cmocka_unit_test(what_changes_meanwhile_is_copied_again),
		cmocka_unit_test(there_is_one_first_pass),
		cmocka_unit_test(nothing_changed),
		cmocka_unit_test(every_page_changed),
		cmocka_unit_test(swapped_pages_count),
		cmocka_unit_test(pages_of_another_template_are_refused),
		cmocka_unit_test(pages_of_before_are_applied),
		cmocka_unit_test(shared_memory_is_refused),
		cmocka_unit_test(a_vm_that_ended),
		cmocka_unit_test(device_state_is_bounded),
		cmocka_unit_test(nobody_waits),
		cmocka_unit_test(damage_after_writing_is_found),
		cmocka_unit_test(how_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
