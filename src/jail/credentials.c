/* credentials.c - the order matters: what needs a capability comes before it is dropped. */
#include "jail/credentials.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static bool kept(const struct credentials *c, unsigned int cap)
{
	return c->keep & (1ull << cap);
}

static int drop_bounding_set(const struct credentials *c, struct err *err)
{
	/* the kernel may know more capabilities than our headers: go on until it says EINVAL */
	for (unsigned int cap = 0; cap < 64; cap++) {
		if (kept(c, cap) || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL)
			return 0;
		return err_set(err, ERR_DENIED, errno, "drop capability %u", cap);
	}
	return 0;
}

static int set_ids(const struct credentials *c, struct err *err)
{
	if (c->keep && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return err_set(err, ERR_DENIED, errno, "keep capabilities");
	if (setgroups(0, NULL) < 0)
		return err_set(err, ERR_DENIED, errno, "drop supplementary groups");
	if (setresgid(c->gid, c->gid, c->gid) < 0 || setresuid(c->uid, c->uid, c->uid) < 0)
		return err_set(err, ERR_DENIED, errno, "become uid %u", c->uid);
	return 0;
}

static int set_capabilities(const struct credentials *c, struct err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	for (size_t i = 0; i < 2; i++) {
		uint32_t half = (uint32_t)(c->keep >> (32 * i));

		data[i] = (struct __user_cap_data_struct){ half, half, half };
	}
	if (syscall(SYS_capset, &head, data) < 0)
		return err_set(err, ERR_DENIED, errno, "set capabilities");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_set(err, ERR_DENIED, errno, "clear ambient capabilities");
	for (unsigned int cap = 0; cap < 64; cap++)
		if (kept(c, cap) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return err_set(err, ERR_DENIED, errno, "keep capability %u", cap);
	return 0;
}

int credentials_become(const struct credentials *c, struct err *err)
{
	if (drop_bounding_set(c, err) < 0 || set_ids(c, err) < 0 || set_capabilities(c, err) < 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, ERR_DENIED, errno, "set no_new_privs");
	return 0;
}
