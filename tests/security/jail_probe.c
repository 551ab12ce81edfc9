/* jail_probe.c - stands in QEMU's place and tells what it sees and what it is refused.
 *
 * The scenario is the first word of /kernel, the one file that is the test's to choose. Facts go to
 * standard output, the VM's log, as one JSON object per line; what they should be is test_jail.py's
 * business. It tries what an attacker would try who has taken over QEMU.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <linux/capability.h>

#include "jail_calls.h"

enum { PATH_SIZE = 512, DEPTH_MAX = 16, FDS_SEEN = 1024, NEST_DEPTH = 40 };
enum { CHUNK = 4 << 20, CHUNKS_MAX = 128, THREADS_MAX = 512, SPIN_MS = 2000 };

static const char *own_path;

static void say_fact(const char *name, long value)
{
	printf("{\"fact\": \"%s\", \"value\": %ld}\n", name, value);
}

/* --- who it is ----------------------------------------------------------------------------- */

static void say_ids(void)
{
	uid_t uid[3];
	gid_t gid[3];

	if (getresuid(&uid[0], &uid[1], &uid[2]) < 0 || getresgid(&gid[0], &gid[1], &gid[2]) < 0)
		return;
	for (int i = 0; i < 3; i++) {
		printf("{\"fact\": \"uid%d\", \"value\": %u}\n", i, uid[i]);
		printf("{\"fact\": \"gid%d\", \"value\": %u}\n", i, gid[i]);
	}
	say_fact("groups", getgroups(0, NULL));
	say_fact("pid", getpid());
	say_fact("parent", getppid());
}

static void say_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	int bounding = 0, ambient = 0;

	if (syscall(SYS_capget, &head, data) < 0)
		return;
	for (int cap = 0; cap < 64; cap++) {
		bounding += prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1;
		ambient += prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1;
	}
	say_fact("effective", (long)(data[0].effective | data[1].effective));
	say_fact("permitted", (long)(data[0].permitted | data[1].permitted));
	say_fact("inheritable", (long)(data[0].inheritable | data[1].inheritable));
	say_fact("bounding", bounding);
	say_fact("ambient", ambient);
	say_fact("no_new_privs", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	say_fact("seccomp", prctl(PR_GET_SECCOMP));
}

static void say_limits(void)
{
	struct rlimit core = { 0, 0 }, files = { 0 };
	sigset_t blocked;
	long n = 0;

	getrlimit(RLIMIT_CORE, &core);
	getrlimit(RLIMIT_NOFILE, &files);
	say_fact("core_now", (long)core.rlim_cur);
	say_fact("core_max", (long)core.rlim_max);
	say_fact("files_max", (long)files.rlim_max);
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	for (int i = 1; i < 32; i++)
		n += sigismember(&blocked, i) == 1;
	say_fact("signals_blocked", n);
	for (n = 0; environ[n]; n++)
		printf("{\"variable\": \"%s\"}\n", environ[n]);
}

/* In its own pid namespace it is alone: no signal reaches anybody. */
static void say_neighbours(void)
{
	long reached = 0;

	for (pid_t pid = 2; pid < 1 << 16; pid++)
		reached += kill(pid, 0) == 0 || errno != ESRCH;
	say_fact("others_reached", reached);
	say_fact("all_reached", kill(-1, 0) == 0 ? 1 : 0);
	say_fact("parent_reached", kill(0, 0) == 0 ? getpgrp() : 0);
}

/* --- what it sees of files ------------------------------------------------------------------ */

static void say_tried(const char *path, const char *how, int result)
{
	printf("{\"tried\": \"%s\", \"path\": \"%s\", \"errno\": %d}\n", how, path,
	       result < 0 ? errno : 0);
}

static int open_close(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd;
}

static void try_folder(const char *path)
{
	char name[PATH_SIZE + 16];

	snprintf(name, sizeof(name), "%s/probe-file", path);
	say_tried(path, "create", open_close(name, O_CREAT | O_EXCL | O_WRONLY));
	unlink(name);
	snprintf(name, sizeof(name), "%s/probe-folder", path);
	say_tried(path, "mkdir", mkdir(name, 0700));
	rmdir(name);
	snprintf(name, sizeof(name), "%s/probe-link", path);
	say_tried(path, "symlink", symlink("/", name));
	unlink(name);
	snprintf(name, sizeof(name), "%s/probe-device", path);
	say_tried(path, "mknod", mknod(name, S_IFCHR | 0600, (dev_t)1 << 8 | 1));
}

static void try_file(const char *path, const struct stat *st)
{
	static const struct timespec now[2] = { { .tv_nsec = UTIME_NOW },
						{ .tv_nsec = UTIME_NOW } };

	say_tried(path, "write", open_close(path, O_WRONLY));
	say_tried(path, "read-write", open_close(path, O_RDWR));
	say_tried(path, "truncate", truncate(path, st->st_size));
	say_tried(path, "link", link(path, "/vm/probe-link"));
	unlink("/vm/probe-link");
	say_tried(path, "touch", utimensat(AT_FDCWD, path, now, 0));
}

static void try_any(const char *path, const struct stat *st)
{
	char name[PATH_SIZE + 16];

	snprintf(name, sizeof(name), "%s-moved", path);
	say_tried(path, "chmod", chmod(path, st->st_mode & 07777));
	say_tried(path, "rename", rename(path, name));
	say_tried(path, "take", rename(path, "/vm/taken"));
	if (strcmp(path, "/") != 0)
		say_tried(path, "unlink", S_ISDIR(st->st_mode) ? rmdir(path) : unlink(path));
}

static void walk(const char *path, int depth)
{
	struct stat st;
	struct statvfs fs = { 0 };
	struct dirent *e;
	DIR *d;

	if (depth > DEPTH_MAX || lstat(path, &st) < 0 || statvfs(path, &fs) < 0)
		return;
	printf("{\"file\": \"%s\", \"mode\": %u, \"uid\": %u, \"mount\": %lu}\n", path, st.st_mode,
	       st.st_uid, fs.f_flag);
	if (S_ISDIR(st.st_mode))
		try_folder(strcmp(path, "/") == 0 ? "" : path);
	else
		try_file(path, &st);
	if (strcmp(path, "/vm") != 0)
		try_any(path, &st);
	d = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
	while (d && (e = readdir(d))) {
		char name[PATH_SIZE];

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(name, sizeof(name), "%s/%s", path[1] ? path : "", e->d_name);
		walk(name, depth + 1);
	}
	if (d)
		closedir(d);
}

/* Its own folder: a place for data, not for programs, and no way out of it. */
static void say_own_folder(void)
{
	int fd = open("/vm/data", O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	void *code;

	say_tried("/vm/data", "own-write", (int)write(fd, "x", 1));
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	say_tried("/vm/data", "own-execute", code == MAP_FAILED ? -1 : 0);
	close(fd);
	say_tried("/vm/data", "own-unlink", unlink("/vm/data"));
	say_tried("/vm/way", "own-symlink", symlink("../../../../etc/passwd", "/vm/way"));
	say_tried("/vm/way", "own-follow", open_close("/vm/way", O_RDONLY));
	unlink("/vm/way");
	say_tried("/", "climb", open_close("/../../etc/passwd", O_RDONLY));
}

static void say_memory(void)
{
	int fd = open("/memory", O_RDONLY | O_CLOEXEC);
	void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *private = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	say_tried("/memory", "map-shared", shared == MAP_FAILED ? -1 : 0);
	say_tried("/memory", "map-private", private == MAP_FAILED ? -1 : 0);
	if (private != MAP_FAILED)
	private[0] = 'x'; /* its own copy */
	close(fd);
}

/* --- what it was given ---------------------------------------------------------------------- */

static int try_map(int fd)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0;
}

static void say_fd(int fd)
{
	char name[16];
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fstat(fd, &st) < 0)
		return;
	printf("{\"fd\": %d, \"flags\": %d, \"mode\": %u, \"dev\": %lu, \"ino\": %lu}\n", fd, flags,
	       st.st_mode, st.st_dev, st.st_ino);
	if (!S_ISREG(st.st_mode) || fd < 3)
		return;
	snprintf(name, sizeof(name), "fd %d", fd);
	say_tried(name, "truncate", ftruncate(fd, st.st_size));
	say_tried(name, "punch",
		  fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
	say_tried(name, "extend", fallocate(fd, 0, st.st_size, 4096));
	say_tried(name, "write", (int)pwrite(fd, "x", 1, st.st_size));
	say_tried(name, "map-shared", try_map(fd));
	say_tried(name, "chmod", fchmod(fd, 0666));
	say_tried(name, "chown", fchown(fd, getuid(), getgid()));
	say_tried(name, "link", linkat(fd, "", AT_FDCWD, "/vm/linked", AT_EMPTY_PATH));
}

static void look(const char *text)
{
	for (int fd = 0; fd < FDS_SEEN; fd++) /* first, before anything is opened here */
		say_fd(fd);
	say_ids();
	say_capabilities();
	say_limits();
	say_neighbours();
	walk("/", 0);
	say_own_folder();
	say_memory();
	calls_try(own_path, text);
}

/* --- single acts ---------------------------------------------------------------------------- */

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void fill_memory(const char *text)
{
	(void)text;
	for (long i = 1; i <= CHUNKS_MAX; i++) {
		char *p = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED)
			break;
		memset(p, 1, CHUNK);
		say_fact("filled_mib", i * (CHUNK >> 20));
	}
	say_fact("survived", 1);
}

static uint64_t now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void spin(const char *text)
{
	uint64_t from = now_ms(CLOCK_MONOTONIC), cpu_from = now_ms(CLOCK_PROCESS_CPUTIME_ID);

	(void)text;
	while (now_ms(CLOCK_MONOTONIC) < from + SPIN_MS)
		;
	say_fact("spin_wall_ms", (long)(now_ms(CLOCK_MONOTONIC) - from));
	say_fact("spin_cpu_ms", (long)(now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu_from));
}

static void make_threads(const char *text)
{
	pthread_t t;
	long n = 0;
	int error = 0;

	(void)text;
	while (n < THREADS_MAX && (error = pthread_create(&t, NULL, wait_for_ever, NULL)) == 0)
		n++;
	say_fact("threads", n);
	say_fact("threads_errno", error);
}

/* Leaves what is hard to remove: deep folders, closed folders, links that lead elsewhere. */
static void nest(const char *text)
{
	(void)text;
	if (chdir("/vm") < 0 || mkdir("closed", 0700) < 0 || mkdir("closed/inner", 0) < 0 ||
	    chmod("closed", 0) < 0 || symlink("/", "root") < 0 || symlink("..", "up") < 0)
		say_fact("nest_errno", errno);
	for (int i = 0; i < NEST_DEPTH; i++)
		if (mkdir("d", 0700) < 0 || chdir("d") < 0)
			say_fact("nest_errno", errno);
	say_fact("nested", NEST_DEPTH);
}

static void grow(const char *text)
{
	struct rlimit size = { 0 };

	(void)text;
	getrlimit(RLIMIT_FSIZE, &size);
	say_fact("limit_mib", (long)(size.rlim_cur >> 20));
	calls_grow(size.rlim_cur);
}

static void idle(const char *text)
{
	(void)text;
	say_fact("idle", 1);
}

static void *call_i386(void *unused)
{
	say_fact("before", 1);
	say_fact("i386_pid", calls_i386_getpid());
	return unused;
}

static void use_i386(const char *text)
{
	(void)text;
	call_i386(NULL);
}

/* The forbidden call in a second thread: does the first one go on? */
static void use_i386_thread(const char *text)
{
	pthread_t t;

	(void)text;
	if (pthread_create(&t, NULL, call_i386, NULL) == 0)
		pthread_join(t, NULL);
	say_fact("survived", 1);
}

static void use_x32(const char *text)
{
	(void)text;
	say_fact("before", 1);
	say_fact("x32_pid", calls_x32_getpid());
}

static const struct {
	const char *word;
	void (*run)(const char *text);
} scenarios[] = {
	{ "look", look },     { "memory", fill_memory },
	{ "spin", spin },     { "threads", make_threads },
	{ "nest", nest },     { "idle", idle },
	{ "i386", use_i386 }, { "i386-thread", use_i386_thread },
	{ "x32", use_x32 },   { "grow", grow },
};

static bool read_scenario(char *word, size_t size, char *text, size_t text_size)
{
	int fd = open("/kernel", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, text_size - 1);
	size_t len;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	len = strcspn(text, " \n");
	if (len >= size)
		return false;
	memcpy(word, text, len);
	word[len] = '\0';
	return true;
}

int main(int argc, char **argv)
{
	char word[32], text[PATH_SIZE];

	setvbuf(stdout, NULL, _IOLBF,
		BUFSIZ); /* a line is out before the next act, which may kill */
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("QEMU emulator version 10.0.0 (jail probe)\n");
		return 0;
	}
	own_path = argv[0];
	if (!read_scenario(word, sizeof(word), text, sizeof(text)))
		return 1;
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (strcmp(scenarios[i].word, word) != 0)
			continue;
		scenarios[i].run(text);
		printf("{\"end\": \"%s\"}\n", word);
		wait_for_ever(NULL);
	}
	return 1;
}
