/* confine_files.c - Landlock by its three system calls: libc has no names for them. */
#include "jail/confine_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/bytes.h"
#include "jail/sanitized.h"

/* By their numbers: headers older than the kernel lack them. */
#define ACCESS_REFER     (1ull << 13)
#define ACCESS_TRUNCATE  (1ull << 14)
#define ACCESS_IOCTL_DEV (1ull << 15)

static const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t writing = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
				LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
				LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
				LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
				ACCESS_REFER | ACCESS_TRUNCATE;
static const uint64_t running =
	LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE;
static const uint64_t of_files = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				 LANDLOCK_ACCESS_FS_EXECUTE | ACCESS_TRUNCATE;

/* What each version of Landlock can refuse, so that all it knows is refused. */
static uint64_t known_to(int version)
{
	static const uint64_t known[] = {
		[1] = (1ull << 13) - 1, [2] = (1ull << 14) - 1, [3] = (1ull << 15) - 1,
		[4] = (1ull << 15) - 1, [5] = (1ull << 16) - 1,
	};

	static_assert(ACCESS_IOCTL_DEV == 1ull << 15, "the last one known here");
	return known[version < (int)COUNT(known) ? version : (int)COUNT(known) - 1];
}

static uint64_t wanted(enum confine_access access)
{
	if (access == CONFINE_WRITE)
		return writing;
	return access == CONFINE_RUN ? running : reading;
}

static int allow(int rules, uint64_t known, const struct confine_path *p, struct err *err)
{
	AUTO(auto_close) int fd = open(p->path, O_PATH | O_CLOEXEC);
	struct landlock_path_beneath_attr rule = { .parent_fd = fd };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "%s", p->path);
	rule.allowed_access = known & wanted(p->access);
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= of_files;
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return err_set(err, ERR_INTERNAL, errno, "allow %s", p->path);
	return 0;
}

static int allow_all(int rules, uint64_t known, const struct confine_path *paths, size_t n,
		     struct err *err)
{
	static const struct confine_path sanitizer = { "/proc", CONFINE_READ };

	for (size_t i = 0; i < n; i++)
		if (allow(rules, known, &paths[i], err) < 0)
			return -1;
	return SANITIZED ? allow(rules, known, &sanitizer, err) : 0;
}

int confine_files(const struct confine_path *paths, size_t n, struct err *err)
{
	int version =
		(int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct landlock_ruleset_attr all = { 0 };
	AUTO(auto_close) int rules = -1;

	if (version < 1)
		return 0;
	all.handled_access_fs = known_to(version);
	/* the first member alone: kernels refuse a struct longer than theirs */
	rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all.handled_access_fs), 0);
	if (rules < 0)
		return err_set(err, ERR_INTERNAL, errno, "make a Landlock ruleset");
	if (allow_all(rules, all.handled_access_fs, paths, n, err) < 0)
		return -1;
	if (syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		return err_set(err, ERR_INTERNAL, errno, "enter the Landlock ruleset");
	return version;
}
