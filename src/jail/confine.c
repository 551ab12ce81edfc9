/* confine.c - the order matters: each step needs what the next one takes away. */
#include "jail/confine.h"

#include <errno.h>
#include <pwd.h>
#include <seccomp.h>
#include <sys/prctl.h>

#include "base/bytes.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/open_files.h"
#include "jail/confine_calls.h"
#include "jail/confine_files.h"
#include "jail/credentials.h"
#include "jail/resources.h"
#include "jail/sanitized.h"

/* A number without an entry of its own stands for its group as well. */
static int find_user(const char *user, struct credentials *ret, struct err *err)
{
	const struct passwd *entry;
	uint64_t number;
	bool is_number = bytes_to_u64(bytes_str(user), &number);

	if (is_number && number >= UINT32_MAX)
		return err_set(err, ERR_INVALID, 0, "user %s is not a user's number", user);
	entry = is_number ? getpwuid((uid_t)number) : getpwnam(user);
	if (!entry && !is_number)
		return err_set(err, ERR_NOT_FOUND, 0, "user %s does not exist", user);
	ret->uid = entry ? entry->pw_uid : (uid_t)number;
	ret->gid = entry ? entry->pw_gid : (gid_t)number;
	return 0;
}

static int refuse_io_uring(struct err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int rc = filter ? 0 : -ENOMEM;

	if (rc == 0)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(io_uring_setup), 0);
	if (rc == 0)
		rc = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	if (rc < 0)
		return err_set(err, ERR_INTERNAL, -rc, "refuse io_uring");
	return 0;
}

/* No core of it, whatever its limit, and nothing in its /proc folder for others of its user. One
 * with sanitizers reads that folder itself. */
static int hide(struct err *err)
{
	if (prctl(PR_SET_DUMPABLE, SANITIZED, 0, 0, 0) < 0)
		return err_set(err, ERR_INTERNAL, errno, "hide the process");
	return 0;
}

int confine_begin(uint64_t files, struct err *err)
{
	uint64_t most = open_files_raise(files);

	if (most < files)
		log_warn("%lu descriptors at most, %lu are wanted", most, files);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, ERR_DENIED, errno, "set no_new_privs");
	if (resources_no_core(err) < 0 || hide(err) < 0)
		return -1;
	return refuse_io_uring(err);
}

int confine_uid(const char *user, uid_t *ret, struct err *err)
{
	struct credentials who;

	if (find_user(user, &who, err) < 0)
		return -1;
	*ret = who.uid;
	return 0;
}

int confine_folder(const char *path, const char *user, struct err *err)
{
	AUTO(auto_close) int dir = folder_ensure(path, 0700, err);
	struct credentials who;

	if (dir < 0)
		return -1;
	if (geteuid() != 0 || !user[0])
		return 0;
	if (find_user(user, &who, err) < 0)
		return -1;
	if (fchown(dir, who.uid, who.gid) < 0)
		return err_set(err, ERR_DENIED, errno, "give %s to %s", path, user);
	return 0;
}

/* Who is not root has nothing to drop, and may not even try to. A change of user undoes hiding
 * where fs.suid_dumpable says so: it is 2 where cores are collected. */
int confine_become(const struct credentials *who, struct err *err)
{
	if (geteuid() != 0)
		return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
			       ? err_set(err, ERR_DENIED, errno, "set no_new_privs")
			       : hide(err);
	return credentials_become(who, err) < 0 ? -1 : hide(err);
}

int confine_who(const char *user, struct credentials *ret, struct err *err)
{
	*ret = (struct credentials){ .uid = getuid(), .gid = getgid() };
	return user[0] && geteuid() == 0 ? find_user(user, ret, err) : 0;
}

static int confine_user(const char *user, struct err *err)
{
	struct credentials who;

	return confine_who(user, &who, err) < 0 ? -1 : confine_become(&who, err);
}

int confine(const struct confine *c, struct err *err)
{
	int landlock;

	if (confine_user(c->user, err) < 0)
		return err_wrap(err, "give up privileges");
	landlock = confine_files(c->paths, c->n_paths, err);
	if (landlock < 0)
		return err_wrap(err, "give up files");
	if (c->syscalls && confine_calls(c->syscalls, err) < 0)
		return err_wrap(err, "give up system calls");
	if (landlock == 0)
		log_info("confined, but for files: this kernel has no Landlock");
	return 0;
}
