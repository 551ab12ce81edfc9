/* test_warden_record.c - the note about a VM, as this warden and the ones before it wrote it. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/folder.h"
#include "warden/record.h"

static const struct record whole = { .version = RECORD_VERSION,
				     .slot = 7,
				     .uid = 786439,
				     .id = "ia0",
				     .template_id = "base-1",
				     .installation = "0123456789abcdef0123456789abcdef" };

struct place {
	char path[32];
	int folder;
};

static void place_open(struct place *p)
{
	snprintf(p->path, sizeof(p->path), "/tmp/hotcell-record-XXXXXX");
	assert_non_null(mkdtemp(p->path));
	p->folder = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->folder >= 0);
}

static void place_close(struct place *p)
{
	unlinkat(p->folder, "record", 0);
	close(p->folder);
	assert_int_equal(rmdir(p->path), 0);
}

static void put(const struct place *p, const struct record *r, size_t size)
{
	int fd = openat(p->folder, "record", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, r, size), (ssize_t)size);
	close(fd);
}

static void what_was_written_is_read(void **state)
{
	struct place p;
	struct record got;
	struct err err;

	(void)state;
	place_open(&p);
	assert_int_equal(record_write(p.folder, &whole, &err), 0);
	assert_int_equal(record_read(p.folder, &got, &err), 0);
	assert_memory_equal(&got, &whole, sizeof(got));
	place_close(&p);
}

/* Its VM lives through the upgrade: it is of no installation, which is to say of this one. */
static void a_record_of_the_warden_before_is_whole(void **state)
{
	struct place p;
	struct record got;
	struct err err;

	(void)state;
	place_open(&p);
	assert_int_equal(RECORD_FIRST_SIZE, 4 * sizeof(uint32_t) + 2 * (WARDEN_ID_MAX + 1));
	put(&p, &whole, RECORD_FIRST_SIZE);
	memset(&got, 'x', sizeof(got));
	assert_int_equal(record_read(p.folder, &got, &err), 0);
	assert_string_equal(got.id, whole.id);
	assert_string_equal(got.template_id, whole.template_id);
	assert_int_equal(got.uid, whole.uid);
	assert_string_equal(got.installation, "");
	place_close(&p);
}

static void what_is_not_whole_is_none(void **state)
{
	struct record other = whole, strange = whole, endless = whole;
	const struct {
		const char *name;
		const struct record *record;
		size_t size;
	} rows[] = {
		{ "empty", &whole, 0 },
		{ "short", &whole, RECORD_FIRST_SIZE - 1 },
		{ "of another version", &other, sizeof(other) },
		{ "with a strange id", &strange, sizeof(strange) },
		{ "with an installation that does not end", &endless, sizeof(endless) },
	};

	(void)state;
	other.version = RECORD_VERSION + 1;
	memcpy(strange.id, "../..", 6);
	memset(endless.installation, 'a', sizeof(endless.installation));
	FOR_ROWS(row, rows) {
		struct place p;
		struct record got;
		struct err err = { 0 };

		place_open(&p);
		put(&p, row->record, row->size);
		assert_int_equal(record_read(p.folder, &got, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		place_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(a_record_of_the_warden_before_is_whole),
		cmocka_unit_test(what_is_not_whole_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
