/* folders.c - the folders of the daemons: their disks, who may use them, what is in them. One
 * function each; nothing is changed but for a file without a name that is gone at once. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/read_all.h"
#include "cli/doctor.h"

enum {
	DISK_GIB = 20,
	DISK_GIB_LEAST = 2,
	INODES_LEAST = 1000,
	LOCKS_MAX = 64 * 1024,
	MAGIC_FUSE = 0x65735546,
	MAGIC_CIFS = 0xff534d42,
	MAGIC_SMB2 = 0xfe534d42,
	MAGIC_XFS = 0x58465342,
	SQLITE_PAGE_AT = 16, /* of the size of a page, in a file of SQLite's; two bytes */
	SQLITE_HEAD = 100,
};

/* Is it to be looked at? Before an installation the two that grow are. */
static bool counts(const struct told *t, enum place_folder i)
{
	return t->places.folders[i].configured ||
	       (!t->places.configured && !t->node && (i == FOLDER_STATE || i == FOLDER_DATA));
}

/* The folder, or what there is above it: it may not have been made yet. */
static bool nearest(const char *folder, char ret[static CONF_VALUE_MAX])
{
	struct stat st;

	snprintf(ret, CONF_VALUE_MAX, "%s", folder);
	while (stat(ret, &st) < 0) {
		char *slash = strrchr(ret, '/');

		if (errno != ENOENT || !slash || !ret[1])
			return false;
		slash[slash == ret ? 1 : 0] = '\0';
	}
	return true;
}

/* --- room ----------------------------------------------------------------------------------- */

static void look_room(const struct place *p, struct finding *f)
{
	char path[CONF_VALUE_MAX];
	unsigned long long gib, mib;
	struct statvfs v;

	if (!nearest(p->path, path) || statvfs(path, &v) < 0) {
		finding_add(f, VERDICT_FAIL, "mount it, or see who may read it", "%.128s: %s",
			    p->path, strerror(errno));
		return;
	}
	mib = (unsigned long long)v.f_bavail * v.f_frsize >> 20;
	gib = mib >> 10;
	if (gib >= DISK_GIB)
		finding_add(f, VERDICT_OK, NULL, "%llu GiB free for %.128s", gib, p->path);
	else
		finding_add(f, gib >= DISK_GIB_LEAST ? VERDICT_WARN : VERDICT_FAIL,
			    "give it a larger disk, or end sandboxes and snapshots that are of no "
			    "use: hotcell ps --all, hotcell snapshots",
			    "%llu MiB free for %.128s (%s of %s.conf); 20 GiB or more are wanted",
			    mib, p->path, p->setting, p->daemon);
	if (v.f_files > 0 && v.f_favail < INODES_LEAST)
		finding_add(f, VERDICT_FAIL,
			    "remove small files there, or make the file system "
			    "anew with more inodes (mkfs.ext4 -N)",
			    "%.128s has no inodes left", p->path);
}

/* Those on one disk are said once. */
static bool is_first_on_disk(const struct told *t, enum place_folder i)
{
	char path[CONF_VALUE_MAX], other[CONF_VALUE_MAX];
	struct stat a, b;

	if (!nearest(t->places.folders[i].path, path) || stat(path, &a) < 0)
		return true;
	for (enum place_folder k = 0; k < i; k++)
		if (counts(t, k) && nearest(t->places.folders[k].path, other) &&
		    stat(other, &b) == 0 && a.st_dev == b.st_dev)
			return false;
	return true;
}

static void look_disk(const struct told *t, struct finding *f)
{
	for (enum place_folder i = 0; i < FOLDERS; i++)
		if (counts(t, i) && is_first_on_disk(t, i))
			look_room(&t->places.folders[i], f);
}

/* --- file systems --------------------------------------------------------------------------- */

static const struct fs_kind {
	unsigned long magic;
	const char *name;
	enum verdict verdict;
	const char *why;
} fs_kinds[] = {
	{ EXT4_SUPER_MAGIC, "ext4", VERDICT_OK, NULL },
	{ MAGIC_XFS, "xfs", VERDICT_OK, NULL },
	{ BTRFS_SUPER_MAGIC, "btrfs", VERDICT_OK, NULL },
	{ NFS_SUPER_MAGIC, "nfs", VERDICT_FAIL, "a network's: locks and the journal are not safe" },
	{ MAGIC_CIFS, "cifs", VERDICT_FAIL, "a network's: locks and the journal are not safe" },
	{ MAGIC_SMB2, "smb", VERDICT_FAIL, "a network's: locks and the journal are not safe" },
	{ V9FS_MAGIC, "9p", VERDICT_FAIL, "shared with a hypervisor: mapped memory is not safe" },
	{ MAGIC_FUSE, "fuse", VERDICT_WARN, "of a program's: slow, and gone when it ends" },
	{ OVERLAYFS_SUPER_MAGIC, "overlay", VERDICT_WARN,
	  "a container's own: gone with it, and files are copied whole" },
	{ TMPFS_MAGIC, "tmpfs", VERDICT_WARN, "in memory: gone after a reboot" },
};

static const struct fs_kind *kind_of(const char *path)
{
	struct statfs s;

	for (size_t i = 0; statfs(path, &s) == 0 && i < COUNT(fs_kinds); i++)
		if ((unsigned long)s.f_type == fs_kinds[i].magic)
			return &fs_kinds[i];
	return NULL;
}

/* Are copies free? -1: not known. */
static int has_reflink(const char *folder)
{
	AUTO(auto_close) int from = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	AUTO(auto_close) int to = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (from < 0 || to < 0 || write(from, "x", 1) != 1)
		return -1;
	return ioctl(to, FICLONE, from) == 0;
}

static void look_mount(const struct place *p, const char *path, struct finding *f)
{
	struct statvfs v;

	if (statvfs(path, &v) < 0)
		return;
	if (v.f_flag & ST_RDONLY)
		finding_add(f, VERDICT_FAIL,
			    "mount it for writing; if the kernel made it read-only, look at dmesg "
			    "and at the disk's health",
			    "%.128s (%s of %s.conf) is read-only", p->path, p->setting, p->daemon);
	if (v.f_flag & ST_SYNCHRONOUS)
		finding_add(f, VERDICT_WARN, "mount it without sync",
			    "%.128s is mounted with sync: everything waits for the disk", p->path);
}

static void look_type(const struct place *p, struct finding *f)
{
	static const char fix[] = "put it on a disk of this host: ext4, XFS or btrfs";
	char path[CONF_VALUE_MAX];
	const struct fs_kind *k;
	int reflink;

	if (!nearest(p->path, path))
		return;
	look_mount(p, path, f);
	k = kind_of(path);
	reflink = has_reflink(path);
	if (k && k->why)
		finding_add(f, k->verdict, fix, "%.128s is on %s, %s", p->path, k->name, k->why);
	else
		finding_add(f, VERDICT_OK, NULL, "%.128s is on %s%s", p->path,
			    k ? k->name : "another file system",
			    reflink == 1   ? ", where copies are free (reflink)"
			    : reflink == 0 ? ", without reflink"
					   : "");
}

static void look_filesystem(const struct told *t, struct finding *f)
{
	for (enum place_folder i = 0; i < FOLDERS; i++)
		if (counts(t, i) && is_first_on_disk(t, i))
			look_type(&t->places.folders[i], f);
}

/* --- users and permissions ------------------------------------------------------------------ */

static void look_users(const struct told *t, struct finding *f)
{
	static const char *const daemons[] = { "node",     "gateway", "egress",
					       "injector", "images",  "signer" };
	static const char fix[] = "systemd-sysusers, which makes those of "
				  "/usr/lib/sysusers.d/hotcell.conf; or set `user` in that file";
	size_t n = 0;

	for (size_t i = 0; i < COUNT(daemons); i++) {
		char user[CONF_VALUE_MAX];
		struct conf conf;
		uid_t uid;
		gid_t gid;

		conf_read_daemon(&conf, t->cli->conf_dir, daemons[i]);
		conf_value(&conf, "user", user);
		if (!conf.there)
			continue;
		n++;
		if (!user[0])
			finding_add(f, VERDICT_WARN, "set `user` to one of its own",
				    "%s.conf names no user: it stays who starts it", daemons[i]);
		else if (!conf_user(user, &uid, &gid))
			finding_add(f, VERDICT_FAIL, fix, "%s.conf: there is no user %.64s",
				    daemons[i], user);
		else if (uid == 0)
			finding_add(f, VERDICT_FAIL, "set `user` to one of its own",
				    "%s.conf: it would run as root", daemons[i]);
	}
	if (f->verdict == VERDICT_OK)
		finding_set(f, VERDICT_OK, NULL,
			    n ? "%zu daemons have one of their own"
			      : "not known: %zu daemons have a file",
			    n);
}

/* May that user pass through all that is above it? Groups are left out of account. */
static bool passes(const char *path, uid_t uid, char ret_at[static CONF_VALUE_MAX])
{
	struct stat st;

	snprintf(ret_at, CONF_VALUE_MAX, "%s", path);
	for (char *slash = strrchr(ret_at, '/'); slash && slash != ret_at;
	     slash = strrchr(ret_at, '/')) {
		*slash = '\0';
		if (stat(ret_at, &st) == 0 && !(st.st_mode & S_IXOTH) &&
		    !(st.st_uid == uid && (st.st_mode & S_IXUSR)) && !(st.st_mode & S_IXGRP))
			return false;
	}
	return true;
}

static void look_owner(const struct place *p, const struct stat *st, struct finding *f)
{
	char above[CONF_VALUE_MAX];
	uid_t uid = 0;
	gid_t gid;

	if (p->user[0] && !conf_user(p->user, &uid, &gid))
		return; /* said of users */
	if (st->st_uid != uid && st->st_uid != 0) {
		finding_add(f, VERDICT_FAIL, "", "%.128s (%s of %s.conf) belongs to uid %u, not %u",
			    p->path, p->setting, p->daemon, st->st_uid, uid);
		finding_fix(f, "chown -R %s: %s", p->user[0] ? p->user : "root", p->path);
	} else if (st->st_mode & (S_IWOTH | S_IWGRP)) {
		finding_add(f, VERDICT_FAIL, "", "%.128s (%s of %s.conf): others may write to it",
			    p->path, p->setting, p->daemon);
		finding_fix(f, "chmod go-w %s", p->path);
	} else if (!passes(p->path, uid, above)) {
		finding_add(f, VERDICT_FAIL, "", "hotcell-%s cannot reach %.128s: %.128s is closed",
			    p->daemon, p->path, above);
		finding_fix(f, "chmod o+x %s", above);
	}
}

static void look_folders(const struct told *t, struct finding *f)
{
	size_t n = 0;

	for (enum place_folder i = 0; i < FOLDERS; i++) {
		const struct place *p = &t->places.folders[i];
		struct stat st;

		if (!counts(t, i) || (stat(p->path, &st) < 0 && errno == ENOENT))
			continue; /* its daemon makes it */
		n++;
		if (stat(p->path, &st) < 0)
			finding_add(f, VERDICT_FAIL, "run it as root, and look at what is above it",
				    "%.128s: %s", p->path, strerror(errno));
		else if (!S_ISDIR(st.st_mode))
			finding_add(f, VERDICT_FAIL, "move it away", "%.128s is no folder",
				    p->path);
		else
			look_owner(p, &st, f);
	}
	if (f->verdict == VERDICT_OK)
		finding_set(f, VERDICT_OK, NULL, "%zu belong to their daemons", n);
}

/* --- the guest's files ---------------------------------------------------------------------- */

static void look_guest(const struct told *t, struct finding *f)
{
	static const char *const names[] = { "kernel", "disk" };
	static const char fix[] = "install hotcell-guest, or make them: tools/artefact kernel and "
				  "image; and name them in node.conf";
	struct conf conf;

	conf_read_daemon(&conf, t->cli->conf_dir, "node");
	for (size_t i = 0; i < COUNT(names); i++) {
		char path[CONF_VALUE_MAX];
		struct stat st;

		conf_value(&conf, names[i], path);
		if (!conf.there)
			continue;
		if (!path[0])
			finding_add(f, VERDICT_WARN, fix, "node.conf names no %s", names[i]);
		else if (stat(path, &st) < 0)
			finding_add(f, VERDICT_FAIL, fix, "%s of node.conf, %.128s: %s", names[i],
				    path, strerror(errno));
		else if (st.st_size == 0 || !S_ISREG(st.st_mode))
			finding_add(f, VERDICT_FAIL, fix, "%s of node.conf, %.128s, is empty",
				    names[i], path);
		else if (!(st.st_mode & S_IROTH)) {
			finding_add(f, VERDICT_FAIL, "", "hotcell-node may not read %s, %.128s",
				    names[i], path);
			finding_fix(f, "chmod a+r %s", path);
		}
	}
	if (f->verdict == VERDICT_OK)
		finding_set(f, VERDICT_OK, NULL,
			    conf.there ? "kernel and disk are there"
				       : "not known: there is no node.conf");
}

/* --- templates, of a node that does not run -------------------------------------------------- */

/* As warden publishes them. */
static const char *const template_files[] = { "kernel", "disk",  "overlay",
					      "memory", "state", "manifest" };

static void look_template(int dir, const char *id, struct finding *f)
{
	static const char fix[] =
		"look at the disk's health; put templates/ID below warden's state_dir back from a "
		"backup; if nothing is paused, or kept as a snapshot, remove that folder: node "
		"makes `base` anew";

	for (size_t i = 0; i < COUNT(template_files); i++) {
		char path[512];
		struct stat st;

		snprintf(path, sizeof(path), "%.200s/%s", id, template_files[i]);
		if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			finding_add(f, VERDICT_FAIL, fix, "template %.64s: %s: %s", id,
				    template_files[i], strerror(errno));
		else if (st.st_size == 0 || !S_ISREG(st.st_mode))
			finding_add(f, VERDICT_FAIL, fix, "template %.64s: %s is empty", id,
				    template_files[i]);
	}
}

static void look_template_files(const struct told *t, struct finding *f)
{
	char path[CONF_VALUE_MAX + 16];
	const struct dirent *e;
	size_t n = 0;
	DIR *d;

	if (t->node) {
		finding_set(f, VERDICT_OK, NULL, "node looks at them: see `templates`");
		return;
	}
	snprintf(path, sizeof(path), "%s/templates", t->places.folders[FOLDER_STATE].path);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			n++;
			look_template(dirfd(d), e->d_name, f);
		}
	if (d)
		closedir(d);
	if (f->verdict == VERDICT_OK)
		finding_set(f, VERDICT_OK, NULL, "%zu have all of their files", n);
}

/* --- locks ---------------------------------------------------------------------------------- */

/* Who has it, of /proc/locks: `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF`. 0: nobody. */
static long holder_of(const struct stat *st)
{
	char text[LOCKS_MAX], want[64];
	struct bytes rest, line;

	snprintf(want, sizeof(want), "%02x:%02x:%llu ", major(st->st_dev), minor(st->st_dev),
		 (unsigned long long)st->st_ino);
	if (read_text(AT_FDCWD, "/proc/locks", text, sizeof(text)) < 0)
		return 0;
	rest = bytes_str(text);
	while (bytes_next(&rest, '\n', &line)) {
		char one[256], *write;

		if (!bytes_to_str(line, one, sizeof(one)) || !strstr(one, want) ||
		    !strstr(one, "FLOCK"))
			continue;
		write = strstr(one, "WRITE");
		return write ? strtol(write + strlen("WRITE"), NULL, 10) : 0;
	}
	return 0;
}

static void look_lock(const struct place *p, struct finding *f)
{
	AUTO(auto_close) int fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[64], name[64] = "?";
	struct stat st;
	long pid;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK ||
	    fstat(fd, &st) < 0)
		return;
	pid = holder_of(&st);
	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	if (read_text(AT_FDCWD, path, name, sizeof(name)) > 0)
		name[strcspn(name, "\n")] = '\0';
	finding_add(f, VERDICT_WARN, "",
		    "%.128s (%s of %s.conf) is in use by pid %ld, %s: another one does not start",
		    p->path, p->setting, p->daemon, pid, name);
	finding_fix(f, "if that is not the hotcell-%s that should run, end it: kill %ld", p->daemon,
		    pid);
}

/* Of a server that answers they are its own. */
static void look_locks(const struct told *t, struct finding *f)
{
	if (t->node)
		finding_set(f, VERDICT_OK, NULL, "the daemons that answer have them");
	if (t->node)
		return;
	look_lock(&t->places.folders[FOLDER_STATE], f);
	look_lock(&t->places.folders[FOLDER_DATA], f);
	if (f->verdict == VERDICT_OK)
		finding_set(f, VERDICT_OK, NULL, "nobody has one");
}

/* --- databases, of daemons that do not run ------------------------------------------------ */

static const char *database_fault(int fd, const struct stat *st)
{
	static const char magic[] = "SQLite format 3";
	uint8_t head[SQLITE_HEAD];
	size_t page;

	if (st->st_size == 0)
		return NULL; /* node makes one */
	if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head, magic, sizeof(magic)) != 0)
		return "is no database: it was overwritten, or half of it was written";
	page = (size_t)head[SQLITE_PAGE_AT] << 8 | head[SQLITE_PAGE_AT + 1];
	page = page == 1 ? 65536 : page;
	if (page < 512 || (size_t)st->st_size % page != 0)
		return "was cut off";
	return NULL;
}

/* `name` below that folder, of a daemon that does not run. */
static void look_database(const struct place *p, const char *name, const char *fix,
			  struct finding *f)
{
	char path[CONF_VALUE_MAX + 32];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", p->path, name);
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 && errno == ENOENT)
		finding_set(f, VERDICT_OK, NULL, "none yet: hotcell-%s makes it", p->daemon);
	else if (fd < 0 || fstat(fd, &st) < 0)
		finding_set(f, VERDICT_WARN, "run it as root", "%.128s: %s", path, strerror(errno));
	else if (database_fault(fd, &st))
		finding_set(f, VERDICT_FAIL, fix, "%.128s %s", path, database_fault(fd, &st));
	else
		finding_set(f, VERDICT_OK, NULL, "%.128s looks whole", path);
}

static void look_journal_file(const struct told *t, struct finding *f)
{
	static const char fix[] =
		"look at the disk's health; move journal.db and journal.db-wal away and run "
		"hotcell-node --rebuild /etc/hotcell/node.conf, which makes a journal from what is "
		"saved: see docs/operations.md, A journal that is damaged";

	if (t->node)
		finding_set(f, VERDICT_OK, NULL, "node has it open");
	else
		look_database(&t->places.folders[FOLDER_DATA], "journal.db", fix, f);
}

static void look_store_file(const struct told *t, struct finding *f)
{
	static const char fix[] =
		"look at the disk's health; put store.db back from a backup and start the gateway; "
		"without one move it away: teams and keys are made anew. See docs/operations.md, "
		"Backup";

	if (t->gateway)
		finding_set(f, VERDICT_OK, NULL, "the gateway has it open");
	else
		look_database(&t->places.folders[FOLDER_GATEWAY], "store.db", fix, f);
}

static const struct check checks[] = {
	{ "disk", look_disk, CHECK_ALWAYS },
	{ "filesystem", look_filesystem, CHECK_ALWAYS },
	{ "folders", look_folders, CHECK_INSTALLED },
	{ "users", look_users, CHECK_INSTALLED },
	{ "guest", look_guest, CHECK_INSTALLED },
	{ "template-files", look_template_files, CHECK_INSTALLED },
	{ "locks", look_locks, CHECK_INSTALLED },
	{ "journal-file", look_journal_file, CHECK_INSTALLED },
	{ "store-file", look_store_file, CHECK_INSTALLED },
};
const struct checks folder_checks = { checks, COUNT(checks) };
