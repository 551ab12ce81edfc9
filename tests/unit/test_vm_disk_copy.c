/* test_vm_disk_copy.c - with the real QEMU, which runs no guest here; skipped where there is none.
 */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "vm/disk_copy.h"

#define QEMU "/usr/bin/qemu-system-x86_64"

enum { CLUSTER = 65536, DISK = 8 * 1024 * 1024, TEST_MS = 60 * 1000 };

struct world {
	char base[64];
	struct loop *loop;
	struct machine machine;
	struct qmp_call call;
	pid_t qemu;
	bool answered;
	struct err err;
};

static void path_of(const struct world *w, const char *name, char ret[static 100])
{
	snprintf(ret, 100, "%s/%s", w->base, name);
}

static void put_be(uint8_t *to, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
}

/* An empty qcow2: header, table of counts, counts, L1. */
static void make_disk(const struct world *w, const char *name)
{
	uint8_t head[112] = "QFI\xfb", table[8], counts[8] = { 0, 1, 0, 1, 0, 1, 0, 1 };
	char path[100];
	int fd;

	put_be(head + 4, 3, 4);
	put_be(head + 20, 16, 4);
	put_be(head + 24, DISK, 8);
	put_be(head + 36, 1, 4);
	put_be(head + 40, 3ULL * CLUSTER, 8);
	put_be(head + 48, CLUSTER, 8);
	put_be(head + 56, 1, 4);
	put_be(head + 96, 4, 4);
	put_be(head + 100, 104, 4);
	put_be(table, 2ULL * CLUSTER, 8);
	path_of(w, name, path);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4L * CLUSTER), 0);
	assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pwrite(fd, table, sizeof(table), CLUSTER), sizeof(table));
	assert_int_equal(pwrite(fd, counts, sizeof(counts), 2L * CLUSTER), sizeof(counts));
	close(fd);
}

/* --- QEMU --------------------------------------------------------------------------------- */

static void on_nothing(struct machine_user *u)
{
	(void)u;
}

static void on_event(struct machine_user *u, const struct qmp_message *event)
{
	(void)u, (void)event;
}

static void on_gone(struct machine_user *u, const struct err *err)
{
	(void)u, (void)err;
}

static void run_qemu(const struct world *w, int door, char disks[][256], size_t n)
{
	const char *args[64] = { QEMU,
				 "-nodefaults",
				 "-no-user-config",
				 "-machine",
				 "none",
				 "-display",
				 "none",
				 "-S",
				 "-chardev",
				 "socket,id=q,fd=3,server=on,wait=off",
				 "-mon",
				 "chardev=q,mode=control" };
	char out[100];
	size_t k = 12;

	for (size_t i = 0; i < n; i++) {
		args[k++] = "-blockdev";
		args[k++] = disks[i];
	}
	path_of(w, "said", out);
	dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
	dup2(door, 3);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* SAFETY: execv does not write to its arguments; its type is older than const */
	execv(QEMU, (char **)(uintptr_t)args);
	_exit(127);
}

/* With these qcow2 files above the template's disk; the last is `disk`. */
static void start(struct world *w, const char *const *chain, size_t n)
{
	static const struct machine_user_ops ops = { on_nothing, on_nothing, on_event, on_gone };
	static struct machine_user user = { &ops };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char disks[8][256];
	struct err err;

	path_of(w, "qmp", at.sun_path);
	(void)unlink(at.sun_path);
	assert_int_equal(bind(door, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(door, 1), 0);
	snprintf(disks[0], 256, "driver=file,node-name=f0,filename=%s/base,read-only=on", w->base);
	snprintf(disks[1], 256, "driver=raw,node-name=layer0,file=f0,read-only=on");
	for (size_t i = 0; i < n; i++) {
		char name[16] = "disk";

		if (i + 1 < n)
			snprintf(name, sizeof(name), "layer%zu", i + 1);
		snprintf(disks[2 + 2 * i], 256,
			 "driver=file,node-name=f%zu,filename=%s/%s,locking=off", i + 1, w->base,
			 chain[i]);
		snprintf(disks[3 + 2 * i], 256,
			 "driver=qcow2,node-name=%s,file=f%zu,backing=layer%zu,discard=unmap", name,
			 i + 1, i);
	}
	w->qemu = fork();
	assert_true(w->qemu >= 0);
	if (w->qemu == 0)
		run_qemu(w, door, disks, 2 + 2 * n);
	close(door);
	w->machine = (struct machine){ 0 };
	if (machine_connect(&w->machine, w->loop, at.sun_path, &user, &err) < 0)
		fail_msg("%s", err.msg);
	while (!w->machine.qmp)
		(void)loop_turn(w->loop);
}

static void on_answer(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct world *w = CONTAINER_OF(c, struct world, call);

	(void)ret;
	w->err = err ? *err : (struct err){ 0 };
	w->answered = true;
}

static void wait_answer(struct world *w)
{
	while (!w->answered)
		(void)loop_turn(w->loop);
	w->answered = false;
	if (w->err.code != ERR_NONE)
		fail_msg("%s", w->err.msg);
}

static void io(struct world *w, const char *what)
{
	char line[128];
	struct err err;

	snprintf(line, sizeof(line), "qemu-io disk \"%s\"", what);
	if (machine_ask(&w->machine, &w->call, "human-monitor-command",
			json_pack("{s:s}", "command-line", line), on_answer, &err) < 0)
		fail_msg("%s", err.msg);
	wait_answer(w);
}

/* Everything that was read was what it should be. */
static void stop(struct world *w)
{
	char path[100], said[8192];
	struct err err;
	ssize_t n;
	int fd;

	if (machine_ask(&w->machine, &w->call, "quit", NULL, on_answer, &err) < 0)
		fail_msg("%s", err.msg);
	wait_answer(w);
	machine_close(&w->machine);
	assert_int_equal(waitpid(w->qemu, NULL, 0), w->qemu);
	w->qemu = 0;
	path_of(w, "said", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, said, sizeof(said) - 1);
	close(fd);
	assert_true(n > 0);
	said[n] = '\0';
	if (strstr(said, "ailed") || strstr(said, "onflict"))
		fail_msg("%s", said);
}

/* --- the tests ---------------------------------------------------------------------------- */

static void on_step(struct disk_copy *d, const struct err *err)
{
	struct world *w = d->owner;

	w->err = err ? *err : (struct err){ 0 };
	w->answered = true;
}

static void open_copy(struct world *w, struct disk_copy *d, const char *name, uint32_t layers)
{
	char path[100];
	struct err err;
	int fd;

	path_of(w, name, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (disk_copy_open(d, &w->machine, fd, layers, on_step, &err) < 0)
		fail_msg("%s", err.msg);
	d->owner = w;
	wait_answer(w);
	close(fd);
}

static void copy(struct world *w, const char *name, uint32_t layers, bool flat)
{
	struct disk_copy d = { 0 };
	struct err err;

	open_copy(w, &d, name, layers);
	if (disk_copy_begin(&d, on_step, &err) < 0)
		fail_msg("%s", err.msg);
	wait_answer(w);
	disk_copy_finish(&d, flat, on_step);
	wait_answer(w);
	disk_copy_cancel(&d);
}

/* Data, zeros over data and holes over data in each layer. */
static void fill(struct world *w)
{
	start(w, (const char *const[]){ "one" }, 1);
	io(w, "write -P 0x11 0 2M");
	io(w, "discard 1M 256k");
	stop(w);
	start(w, (const char *const[]){ "one", "disk" }, 2);
	io(w, "write -P 0x21 512k 128k");
	io(w, "write -z 768k 64k");
	io(w, "write -P 0x22 4M 1M");
}

static void check(struct world *w)
{
	io(w, "read -P 0x11 0 512k");
	io(w, "read -P 0x21 512k 128k");
	io(w, "read -P 0x11 640k 128k");
	io(w, "read -P 0 768k 64k");
	io(w, "read -P 0x11 832k 192k");
	io(w, "read -P 0 1M 256k");
	io(w, "read -P 0x11 1280k 768k");
	io(w, "read -P 0xbb 2M 2M"); /* of the template */
	io(w, "read -P 0x22 4M 1M");
}

static void top_and_flat(void **state)
{
	struct world *w = *state;

	make_disk(w, "top");
	make_disk(w, "flat");
	fill(w);
	copy(w, "top", 1, false);
	copy(w, "flat", 1, true);
	io(w, "write -P 0x77 0 8M"); /* later: of no copy */
	stop(w);
	start(w, (const char *const[]){ "one", "top" }, 2);
	check(w);
	stop(w);
	start(w, (const char *const[]){ "flat" }, 1);
	check(w);
	stop(w);
}

/* As by a node that died: the next copy is not in its way, and is whole. */
static void left_over(void **state)
{
	struct world *w = *state;
	struct disk_copy d = { 0 };
	struct err err;

	make_disk(w, "left");
	make_disk(w, "flat");
	fill(w);
	open_copy(w, &d, "left", 1);
	disk_copy_cancel(&d);
	make_disk(w, "left");
	open_copy(w, &d, "left", 1);
	if (disk_copy_begin(&d, on_step, &err) < 0)
		fail_msg("%s", err.msg);
	wait_answer(w);
	disk_copy_cancel(&d);
	copy(w, "flat", 1, true);
	stop(w);
	start(w, (const char *const[]){ "flat" }, 1);
	check(w);
	stop(w);
}

/* QEMU refuses: nothing of it stays, and the next one works. */
static void refused(void **state)
{
	struct world *w = *state;
	struct disk_copy d = { 0 };
	struct err err;

	make_disk(w, "flat");
	fill(w);
	open_copy(w, &d, "flat", 1);
	d.at++; /* no: as if it had begun */
	d.at++;
	disk_copy_finish(&d, false, on_step);
	while (!w->answered)
		(void)loop_turn(w->loop);
	w->answered = false;
	assert_int_equal(w->err.code, ERR_INTERNAL);
	disk_copy_cancel(&d);
	if (disk_copy_open(&d, &w->machine, 0, 7, on_step, &err) < 0) /* no such layer */
		fail_msg("%s", err.msg);
	d.owner = w;
	d.tries = DISK_COPY_TRIES;
	while (!w->answered)
		(void)loop_turn(w->loop);
	w->answered = false;
	assert_int_equal(w->err.code, ERR_INTERNAL);
	disk_copy_cancel(&d);
	make_disk(w, "flat");
	copy(w, "flat", 1, true);
	stop(w);
	start(w, (const char *const[]){ "flat" }, 1);
	check(w);
	stop(w);
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	char path[100];
	struct err err;
	int fd;

	snprintf(w->base, sizeof(w->base), "/tmp/disk-copy-XXXXXX");
	assert_non_null(mkdtemp(w->base));
	path_of(w, "base", path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (int i = 0; i < DISK / CLUSTER; i++) {
		uint8_t piece[CLUSTER];

		memset(piece, 0xbb, sizeof(piece));
		assert_int_equal(write(fd, piece, sizeof(piece)), sizeof(piece));
	}
	close(fd);
	make_disk(w, "one");
	make_disk(w, "disk");
	if (loop_open(&w->loop, &err) < 0)
		fail_msg("%s", err.msg);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "base", "one",  "disk", "top",
					     "flat", "left", "said", "qmp" };
	struct world *w = *state;
	char path[100];

	machine_close(&w->machine);
	if (w->qemu > 0) {
		kill(w->qemu, SIGKILL);
		waitpid(w->qemu, NULL, 0);
	}
	for (size_t i = 0; i < COUNT(names); i++) {
		path_of(w, names[i], path);
		(void)unlink(path);
	}
	rmdir(w->base);
	loop_free(w->loop);
	free(w);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(top_and_flat, set_up, tear_down),
		cmocka_unit_test_setup_teardown(left_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
	};

	if (faccessat(AT_FDCWD, QEMU, X_OK, 0) < 0)
		return 77; /* Meson's word for skipped */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
