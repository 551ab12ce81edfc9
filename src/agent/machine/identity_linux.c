/* identity_linux.c - the few things only the kernel can do for an identity. */
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>

#include "agent/machine/identity.h"
#include "base/clock.h"

static const char kernel_boot_id[] = "/proc/sys/kernel/random/boot_id";

enum { LOOKS_MAX = 50, LOOK_CLOSE_NS = 100 * 1000 };

/* How far the wall clock is ahead of the other. A virtual processor may be held up between two
 * looks, for longer than the clock may be wrong: the closest pair of several counts. */
static int64_t wall_ahead_ns(void)
{
	uint64_t closest = UINT64_MAX;
	int64_t ahead = 0;

	for (int i = 0; i < LOOKS_MAX && closest > LOOK_CLOSE_NS; i++) {
		uint64_t before = clock_mono_ns(), wall = clock_wall_ns(), took;

		took = clock_mono_ns() - before;
		if (took >= closest)
			continue;
		closest = took;
		ahead = (int64_t)(wall - (before + took / 2));
	}
	return ahead;
}

/* By the difference, not to a time: it stays true however long the message took, and however long
 * the call is held up. */
static int set_clock(int64_t offset_ns, struct err *err)
{
	const int64_t second = (int64_t)NSEC_PER_SEC;
	struct timex by = { .modes = ADJ_SETOFFSET | ADJ_NANO };
	int64_t wall, ns;

	if (__builtin_add_overflow((int64_t)clock_mono_ns(), offset_ns, &wall) || wall < 0)
		return err_set(err, ERR_INVALID, 0, "no such time");
	ns = offset_ns - wall_ahead_ns();
	by.time.tv_sec = ns / second - (ns % second < 0);
	by.time.tv_usec = ns % second + (ns % second < 0 ? second : 0);
	if (clock_adjtime(CLOCK_REALTIME, &by) < 0)
		return err_set(err, ERR_INTERNAL, errno, "set the clock");
	return 0;
}

static int add_entropy(struct bytes entropy, struct err *err)
{
	struct {
		int bits, bytes;
		uint8_t pool[IDENTITY_ENTROPY_BYTES];
	} request = { .bits = (int)(entropy.len * 8), .bytes = (int)entropy.len };
	AUTO(auto_close) int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
	int rc = -1;

	static_assert(offsetof(__typeof__(request), pool) == offsetof(struct rand_pool_info, buf),
		      "laid out as the kernel has it");
	assert(entropy.len <= sizeof(request.pool));
	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "open /dev/urandom");
	memcpy(request.pool, entropy.ptr, entropy.len);
	/* credited, and then used at once: a copy of this machine has the same pool until it is */
	if (ioctl(fd, RNDADDENTROPY, &request) < 0)
		err_set(err, ERR_INTERNAL, errno, "add entropy");
	else if (ioctl(fd, RNDRESEEDCRNG) < 0)
		err_set(err, ERR_INTERNAL, errno, "reseed the random number generator");
	else
		rc = 0;
	explicit_bzero(&request, sizeof(request));
	return rc;
}

static int set_hostname(const char *name, struct err *err)
{
	if (sethostname(name, strlen(name)) < 0)
		return err_set(err, ERR_INTERNAL, errno, "set the host name");
	return 0;
}

static int show_boot_id(const char *file, struct err *err)
{
	struct stat ours, shown;

	if (stat(file, &ours) < 0 || stat(kernel_boot_id, &shown) < 0)
		return err_set(err, ERR_INTERNAL, errno, "look at the boot id");
	if (ours.st_dev == shown.st_dev && ours.st_ino == shown.st_ino)
		return 0;
	if (mount(file, kernel_boot_id, NULL, MS_BIND, NULL) < 0)
		return err_set(err, ERR_INTERNAL, errno, "mount over the boot id");
	return 0;
}

const struct identity_effects identity_effects_linux = {
	.set_clock = set_clock,
	.add_entropy = add_entropy,
	.set_hostname = set_hostname,
	.show_boot_id = show_boot_id,
	.flush_disks = sync,
};
