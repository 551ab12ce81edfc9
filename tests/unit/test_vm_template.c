/* test_vm_template.c - a template's files on a thread: sealed, read back, verified, damaged. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "net/timer.h"
#include "vm/kernel_version.h"
#include "vm/template_job.h"

enum { GUARD_MS = 20000, FAR = 256 * 1024 - 7 }; /* the banner crosses the end of a piece */

#define BANNER "Linux version 6.12.1-hotcell (builder) #1"

static struct scene {
	struct loop *loop;
	struct timer guard;
	struct template_watcher watcher;
	char path[64];
	int dir;
	int done;
	struct manifest manifest;
	enum manifest_reason reason;
	struct err err;
} s;

static const struct manifest unsealed = {
	.template_id = "base",
	.created = "2026-11-15T01:02:03Z",
	.made_with = { .vmm_version = "10.0.2",
		       .cpu_model = "x",
		       .accel = "tcg",
		       .arguments = "-m 512",
		       .vcpus = 1,
		       .memory_mib = 512 },
};

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

static void on_done(struct template_watcher *w, const struct manifest *m,
		    enum manifest_reason reason, const struct err *err)
{
	(void)w;
	assert_true((m == NULL) == (err != NULL));
	s.done++;
	s.reason = reason;
	if (err)
		s.err = *err;
	else
		s.manifest = *m;
	loop_stop(s.loop);
}

static void put(const char *name, off_t at, const char *text)
{
	AUTO(auto_close) int fd = openat(s.dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(pwrite(fd, text, strlen(text), at), (ssize_t)strlen(text));
}

static void scene_open(void)
{
	static const struct template_watcher_ops ops = { on_done };
	struct err err;

	s = (struct scene){ .path = "/tmp/hotcell-template-XXXXXX" };
	assert_non_null(mkdtemp(s.path));
	s.dir = open(s.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(loop_open(&s.loop, &err), 0);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	s.watcher.ops = &ops;
	put("kernel", FAR, BANNER);
	for (size_t i = 1; i < MANIFEST_FILES; i++)
		put(manifest_file_name((enum manifest_file)i), (off_t)i * 100000, "123456789");
}

static void scene_end(void)
{
	timer_stop(&s.guard);
	for (size_t i = 0; i < MANIFEST_FILES; i++)
		unlinkat(s.dir, manifest_file_name((enum manifest_file)i), 0);
	unlinkat(s.dir, "manifest", 0);
	close(s.dir);
	rmdir(s.path);
	loop_free(s.loop);
}

static void open_files(struct template_files *ret)
{
	struct err err;

	if (template_files_open(ret, s.dir, &err) < 0)
		fail_msg("%s", err.msg);
}

static void seal(void)
{
	struct template_files files;
	struct template_job *job;
	struct err err;

	open_files(&files);
	assert_int_equal(
		template_seal(&(struct template_spec){ &files, &unsealed, s.loop, &s.watcher },
			      openat(s.dir, "manifest", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), &job,
			      &err),
		0);
	loop_run(s.loop);
	if (s.err.code != ERR_NONE)
		fail_msg("%s", s.err.msg);
	assert_int_equal(s.done, 1);
	s.done = 0;
}

static void verify(const struct manifest *m)
{
	struct template_files files;
	struct template_job *job;
	struct err err;

	open_files(&files);
	s.err = (struct err){ 0 };
	assert_int_equal(template_verify(&(struct template_spec){ &files, m, s.loop, &s.watcher },
					 &job, &err),
			 0);
	loop_run(s.loop);
}

static void what_is_sealed_is_read_back_and_verified(void **state)
{
	struct manifest m;
	struct err err;

	(void)state;
	scene_open();
	seal();
	assert_int_equal(template_manifest_read(s.dir, &m, &err), 0);
	assert_memory_equal(&m, &s.manifest, sizeof(m));
	assert_string_equal(m.made_with.kernel_version, "6.12.1-hotcell");
	assert_int_equal(m.files[MANIFEST_DISK_FILE].length, 100009);
	verify(&m);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_int_equal(s.reason, MANIFEST_OK);
	scene_end();
}

static void damage_is_found_in_every_file(void **state)
{
	(void)state;
	scene_open();
	seal();
	for (size_t i = 0; i < MANIFEST_FILES; i++) {
		const char *name = manifest_file_name((enum manifest_file)i);
		struct manifest m = s.manifest;

		put(name, 5, "\1");
		verify(&m);
		assert_int_equal(s.err.code, ERR_MISMATCH);
		assert_int_equal(s.reason,
				 i == MANIFEST_KERNEL_FILE ? MANIFEST_KERNEL : MANIFEST_CHECKSUM);
		assert_non_null(strstr(s.err.msg, name));
		unlinkat(s.dir, name, 0);
		if (i == 0)
			put(name, FAR, BANNER);
		else
			put(name, (off_t)i * 100000, "123456789");
	}
	verify(&s.manifest);
	assert_int_equal(s.err.code, ERR_NONE);
	scene_end();
}

static void a_manifest_that_is_none_is_a_mismatch(void **state)
{
	struct manifest m;
	struct err err;

	(void)state;
	scene_open();
	assert_int_equal(template_manifest_read(s.dir, &m, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	put("manifest", 0, "hello");
	assert_int_equal(template_manifest_read(s.dir, &m, &err), -1);
	assert_int_equal(err.code, ERR_MISMATCH);
	put("manifest", MANIFEST_BYTES_MAX, "x");
	assert_int_equal(template_manifest_read(s.dir, &m, &err), -1);
	assert_int_equal(err.code, ERR_MISMATCH);
	scene_end();
}

/* The owner may go at once; the thread cleans up after itself. */
static void a_cancelled_job_says_nothing(void **state)
{
	struct template_files files;
	struct template_job *job;
	struct err err;

	(void)state;
	scene_open();
	for (size_t i = 0; i < 20; i++) {
		open_files(&files);
		assert_int_equal(template_verify(&(struct template_spec){ &files, &unsealed, s.loop,
									  &s.watcher },
						 &job, &err),
				 0);
		template_job_cancel(job);
	}
	verify(&unsealed);
	assert_int_equal(s.done, 1);
	scene_end();
}

static void a_missing_file_is_not_found(void **state)
{
	struct template_files files;
	struct err err;

	(void)state;
	scene_open();
	unlinkat(s.dir, "memory", 0);
	assert_int_equal(template_files_open(&files, s.dir, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(files.fd[0], -1);
	scene_end();
}

static void a_kernel_without_a_version_is_none(void **state)
{
	AUTO(auto_close) int fd = -1;
	char version[64];
	struct err err;

	(void)state;
	scene_open();
	put("manifest", 0, "Linux version %s (nobody)");
	fd = openat(s.dir, "manifest", O_RDONLY | O_CLOEXEC);
	assert_int_equal(kernel_version(fd, version, sizeof(version), &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	scene_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sealed_is_read_back_and_verified),
		cmocka_unit_test(damage_is_found_in_every_file),
		cmocka_unit_test(a_manifest_that_is_none_is_a_mismatch),
		cmocka_unit_test(a_cancelled_job_says_nothing),
		cmocka_unit_test(a_missing_file_is_not_found),
		cmocka_unit_test(a_kernel_without_a_version_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
