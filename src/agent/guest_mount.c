/* guest_mount.c - the file systems that are not on the disk. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "agent/guest.h"
#include "base/bytes.h"
#include "base/log.h"

static const struct {
	const char *type, *at, *options;
	unsigned long flags;
	mode_t mode; /* of the directory, if it has to be made */
} mounts[] = {
	{ "proc", "/proc", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC, 0555 },
	{ "sysfs", "/sys", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC, 0555 },
	{ "devtmpfs", "/dev", "mode=0755", MS_NOSUID, 0755 },
	{ "devpts", "/dev/pts", "gid=5,mode=620,ptmxmode=666", MS_NOSUID | MS_NOEXEC, 0755 },
	{ "tmpfs", "/dev/shm", "mode=1777,size=50%", MS_NOSUID | MS_NODEV, 01777 },
	{ "tmpfs", "/run", "mode=0755,size=20%", MS_NOSUID | MS_NODEV, 0755 },
	{ "cgroup2", GUEST_CGROUPS, "nsdelegate", MS_NOSUID | MS_NODEV | MS_NOEXEC, 0755 },
};

static const struct {
	const char *at;
	mode_t mode;
} dirs[] = {
	{ "/tmp", 01777 },        { "/var/tmp", 01777 }, { "/run/lock", 01777 },
	{ "/run/hotcell", 0755 }, { "/run/e2b", 0755 },
};

/* The kernel makes nodes for devices, not these. */
static const struct {
	const char *at, *to;
} links[] = {
	{ "/dev/fd", "/proc/self/fd" },
	{ "/dev/stdin", "/proc/self/fd/0" },
	{ "/dev/stdout", "/proc/self/fd/1" },
	{ "/dev/stderr", "/proc/self/fd/2" },
};

static void make_dir(const char *at, mode_t mode)
{
	if (mkdir(at, mode) < 0 && errno != EEXIST)
		log_error("make %s: %s", at, strerror(errno));
	else if (chmod(at, mode) < 0)
		log_error("set the mode of %s: %s", at, strerror(errno));
}

static void mount_all(void)
{
	for (size_t i = 0; i < COUNT(mounts); i++) {
		(void)mkdir(mounts[i].at, mounts[i].mode);
		/* the kernel may have mounted /dev itself */
		if (mount(mounts[i].type, mounts[i].at, mounts[i].type, mounts[i].flags,
			  mounts[i].options) < 0 &&
		    errno != EBUSY)
			log_error("mount %s: %s", mounts[i].at, strerror(errno));
	}
}

/* Without a console the kernel starts init with no descriptors at all. */
static void ensure_stdio(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd < 3);
	if (fd >= 3)
		close(fd);
}

void guest_mount(void)
{
	/* the disk may have been mounted read-only, to be looked at first */
	if (mount(NULL, "/", NULL, MS_REMOUNT | MS_RELATIME, NULL) < 0)
		log_error("make / writable: %s", strerror(errno));
	mount_all();
	ensure_stdio();
	for (size_t i = 0; i < COUNT(dirs); i++)
		make_dir(dirs[i].at, dirs[i].mode);
	for (size_t i = 0; i < COUNT(links); i++)
		if (symlink(links[i].to, links[i].at) < 0 && errno != EEXIST)
			log_error("link %s: %s", links[i].at, strerror(errno));
}
