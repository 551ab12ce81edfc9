/* test_copier_hostile.c - files of pages and tables of mappings that nobody should believe. */
#include "tests/unit/copier_world.h"

/* A file that was saved, changed by somebody who can compute checksums. */
struct forgery {
	const char *name;
	void (*change)(struct pages_head *h, struct pages_run *runs);
	bool honest; /* leave the checksums as they are */
	long grow;   /* of the file */
	enum err_code want;
};

static void magic(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->magic[0] = 'X';
}

static void version(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->version++;
}

static void other_version(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->version++;
	h->head_crc = crc32c(
		0, (struct bytes){ (const uint8_t *)h, offsetof(struct pages_head, head_crc) });
}

static void other_memory(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->memory_bytes *= 2;
}

static void many_pages(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->pages = UINT64_MAX / PAGES_BYTES + 2; /* times the size of a page it is small again */
}

static void many_runs(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->runs = UINT64_MAX / sizeof(*r) + 1 + COUNT(much);
}

static void beyond(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[4].first = PAGES;
}

static void far_beyond(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[4].first = UINT64_MAX;
}

static void over_the_end(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[4].count = 2;
	r[1].count = 2;
}

static void backwards(struct pages_head *h, struct pages_run *r)
{
	struct pages_run first = r[0];

	(void)h;
	r[0] = r[3];
	r[3] = first;
}

static void overlap(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[1].first = 0;
}

static void empty(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[0].count = 0;
}

static void flags(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[0].flags = 2;
}

static void more_than_there_is(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[1].count++;
}

static void zeros_as_data(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[2].flags = 0;
}

static void count_of_zeros(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->zero_pages++;
}

static void many_copies(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->copies += UINT64_MAX / PAGES_BYTES + 1; /* the file has the same length */
}

static void few_copies(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->copies--;
}

static void copy_beyond(struct pages_head *h, struct pages_run *r)
{
	r[4].copy = h->copies;
}

static void copy_far_beyond(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[4].copy = UINT64_MAX;
}

static void copy_of_zero(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[2].copy = 1;
}

static void one_copy(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[3].copy = r[1].copy;
}

static void data_crc(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->data_crc ^= 1;
}

static void nothing(struct pages_head *h, struct pages_run *r)
{
	(void)h, (void)r;
}

static const struct forgery forgeries[] = {
	{ "nothing", nothing, .want = ERR_NONE },
	{ "magic", magic, .honest = true, .want = ERR_INVALID },
	{ "version", other_version, .honest = true, .want = ERR_MISMATCH },
	{ "version damaged", version, .honest = true, .want = ERR_INVALID },
	{ "memory size", other_memory, .want = ERR_MISMATCH },
	{ "head damaged", other_memory, .honest = true, .want = ERR_INVALID },
	{ "table damaged", beyond, .honest = true, .want = ERR_INVALID },
	{ "pages damaged", data_crc, .want = ERR_INVALID },
	{ "pages that overflow", many_pages, .want = ERR_INVALID },
	{ "runs that overflow", many_runs, .want = ERR_INVALID },
	{ "run beyond the end", beyond, .want = ERR_INVALID },
	{ "run far beyond the end", far_beyond, .want = ERR_INVALID },
	{ "run over the end", over_the_end, .want = ERR_INVALID },
	{ "out of order", backwards, .want = ERR_INVALID },
	{ "overlapping", overlap, .want = ERR_INVALID },
	{ "empty run", empty, .want = ERR_INVALID },
	{ "unknown flags", flags, .want = ERR_INVALID },
	{ "more pages than data", more_than_there_is, .want = ERR_INVALID },
	{ "zeros as data", zeros_as_data, .want = ERR_INVALID },
	{ "count of zeros", count_of_zeros, .want = ERR_INVALID },
	{ "copies that overflow", many_copies, .want = ERR_INVALID },
	{ "fewer copies than pages", few_copies, .want = ERR_INVALID },
	{ "copy beyond the end", copy_beyond, .want = ERR_INVALID },
	{ "copy far beyond the end", copy_far_beyond, .want = ERR_INVALID },
	{ "copy of a zero page", copy_of_zero, .want = ERR_INVALID },
	{ "one copy of two pages", one_copy, .want = ERR_INVALID },
	{ "cut off", nothing, .grow = -1, .want = ERR_INVALID },
	{ "too long", nothing, .grow = 1, .want = ERR_INVALID },
};

static void forge(int fd, const struct forgery *f)
{
	struct pages_run runs[COUNT(much)];
	struct pages_head head;
	struct stat st;
	off_t at;

	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	at = (off_t)pages_table_at(&head);
	assert_int_equal(pread(fd, runs, sizeof(runs), at), sizeof(runs));
	f->change(&head, runs);
	if (!f->honest) {
		head.runs_crc = crc32c(0, (struct bytes){ (const uint8_t *)runs, sizeof(runs) });
		pages_head_seal(&head);
	}
	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pwrite(fd, runs, sizeof(runs), at), sizeof(runs));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(ftruncate(fd, st.st_size + f->grow), 0);
}

static void hostile_files_are_refused(void **state)
{
	(void)state;
	FOR_ROWS(row, forgeries) {
		struct world x = make_world(PAGES);
		struct vm a = start(x.w.memory, does_much, BYTES, MAP_PRIVATE);
		struct copier_reply r = { 0 };
		struct err err = { 0 };
		int rc;

		use(&x, &a);
		assert_int_equal(copy_all(&x.w, &r, &err), 0);
		forge(x.w.pages, row);
		rc = work_apply(&x.w, &r, &err);
		assert_int_equal(rc, row->want == ERR_NONE ? 0 : -1);
		assert_int_equal(err.code, row->want);
		end(&a);
		end_world(&x);
	}
}

static void not_a_file_of_pages(void **state)
{
	static const off_t sizes[] = { 0, 10, PAGES_DATA_AT - 1, PAGES_DATA_AT, BYTES };
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_nothing, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };

	(void)state;
	use(&x, &a);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct err err = { 0 };

		assert_int_equal(ftruncate(x.w.pages, sizes[i]), 0);
		assert_int_equal(work_apply(&x.w, &r, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
	end(&a);
	end_world(&x);
}

/* --- the table of mappings ---------------------------------------------------------------- */

static void maps(void **state)
{
	static const struct mapping_file file = { 0xfd, 1, 1835 };
	static const struct {
		const char *name, *text;
		enum err_code want;
		size_t n;
	} rows[] = {
		{ "whole", "1000-4000 rw-p 00000000 fd:01 1835 /memory\n", ERR_NONE, 1 },
		{ "among others",
		  "400-800 r-xp 00000000 fd:01 99 /q\n1000-4000 rw-p 00000000 fd:01 1835 /memory\n"
		  "7000-8000 rw-p 00000000 00:00 0 \n",
		  ERR_NONE, 1 },
		{ "a name with spaces", "1000-4000 rw-p 00000000 fd:01 1835   /a b fd:01\n",
		  ERR_NONE, 1 },
		{ "two pieces, the later first",
		  "1000-2000 rw-p 00002000 fd:01 1835 /m\n5000-7000 rw-p 00000000 fd:01 1835 /m\n",
		  ERR_NONE, 2 },
		{ "shared", "1000-4000 rw-s 00000000 fd:01 1835 /memory\n", ERR_INVALID },
		{ "read-only", "1000-4000 r--p 00000000 fd:01 1835 /memory\n", ERR_INVALID },
		{ "twice",
		  "1000-4000 rw-p 00000000 fd:01 1835 /m\n5000-8000 rw-p 00000000 fd:01 1835 /m\n",
		  ERR_INVALID },
		{ "a part", "1000-3000 rw-p 00000000 fd:01 1835 /memory\n", ERR_INVALID },
		{ "the other part", "1000-3000 rw-p 00001000 fd:01 1835 /memory\n", ERR_INVALID },
		{ "more than there is", "1000-5000 rw-p 00000000 fd:01 1835 /m\n", ERR_INVALID },
		{ "another device", "1000-4000 rw-p 00000000 fd:02 1835 /memory\n", ERR_INVALID },
		{ "another file", "1000-4000 rw-p 00000000 fd:01 1836 /memory\n", ERR_INVALID },
		{ "nothing", "", ERR_INVALID },
		{ "not a line", "hello\n", ERR_INVALID },
		{ "backwards", "4000-1000 rw-p 00000000 fd:01 1835 /memory\n", ERR_INVALID },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct mappings m;
		struct err err = { 0 };
		int rc = mapping_parse(bytes_str(row->text), &file, 0x3000, &m, &err);

		assert_int_equal(rc, row->want == ERR_NONE ? 0 : -1);
		assert_int_equal(err.code, row->want);
		if (rc == 0)
			assert_int_equal(m.n, row->n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_files_are_refused),
		cmocka_unit_test(not_a_file_of_pages),
		cmocka_unit_test(maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
