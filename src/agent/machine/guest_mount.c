/* guest_mount.c - the file systems that are not on the disk. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "agent/machine/files_small.h"
#include "agent/machine/guest.h"
#include "base/bytes.h"
#include "base/log.h"

enum { PERSONAL_MAX = 64 * 1024 };

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
	{ "tmpfs", "/run", "mode=0755,size=20%", MS_NOSUID | MS_NODEV | MS_NOATIME, 0755 },
	/* of their own, so that nobody who fills one of them takes away what the others need */
	{ "tmpfs", "/run/lock", "mode=1777,size=4m", MS_NOSUID | MS_NODEV | MS_NOEXEC, 01777 },
	{ "tmpfs", "/run/hotcell", "mode=0755,size=12m",
	  MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME, 0755 },
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

/* Every sandbox gets its own of these as its first act. In memory that costs no disk, no journal
 * and nothing to write back. */
static const struct {
	const char *at, *kept;
} personal[] = {
	{ "/etc/hostname", "/run/hotcell/hostname" },
	{ "/etc/hosts", "/run/hotcell/hosts" },
	{ "/etc/machine-id", "/run/hotcell/machine-id" },
	{ "/proc/sys/kernel/random/boot_id", "/run/hotcell/boot_id" },
};

static int keep_in_memory(const char *at, const char *kept, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(PERSONAL_MAX);

	/* a missing one is made, for the mount to stand on */
	if (file_read(at, &text, err) < 0 &&
	    (err->code != ERR_NOT_FOUND || file_settle(at, buf_view(&text), 0644, err) < 0))
		return -1;
	if (file_prepare(kept, buf_view(&text), 0644, err) < 0)
		return -1;
	if (mount(kept, at, NULL, MS_BIND, NULL) < 0)
		return err_set(err, ERR_INTERNAL, errno, "mount %s", at);
	return 0;
}

static void keep_personal_files(void)
{
	for (size_t i = 0; i < COUNT(personal); i++) {
		struct err err = { 0 };

		if (keep_in_memory(personal[i].at, personal[i].kept, &err) < 0)
			log_error("keep %s in memory: %s", personal[i].at, err.msg);
	}
}

void guest_mount(void)
{
	/* the disk may have been mounted read-only; and reading a file must not write to it */
	if (mount(NULL, "/", NULL, MS_REMOUNT | MS_NOATIME, "noinit_itable") < 0)
		log_error("make / writable: %s", strerror(errno));
	mount_all();
	ensure_stdio();
	for (size_t i = 0; i < COUNT(dirs); i++)
		make_dir(dirs[i].at, dirs[i].mode);
	for (size_t i = 0; i < COUNT(links); i++)
		if (symlink(links[i].to, links[i].at) < 0 && errno != EEXIST)
			log_error("link %s: %s", links[i].at, strerror(errno));
	keep_personal_files();
}
