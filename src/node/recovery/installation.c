/* installation.c - the id of the installation, in its two places. */
/* #syscalls: openat read write fsync renameat newfstatat close */
#include "node/recovery/installation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/random.h"
#include "base/read_all.h"

enum { ID_BYTES = 16 };

static const char meta_id[] = "installation", meta_boot[] = "boot", meta_born[] = "born";

static ssize_t read_line(int dir, const char *path, char *ret, size_t size)
{
	ssize_t n = read_text(dir, path, ret, size);

	ret[strcspn(ret, "\n")] = '\0';
	return n;
}

void installation_boot(struct installation *i)
{
	if (read_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id", i->boot_id, sizeof(i->boot_id)) <
	    0)
		log_warn("which boot of the host this is cannot be told");
}

/* "": there is none yet. */
static int read_file(int dir, char *ret, size_t size, struct err *err)
{
	if (read_line(dir, INSTALLATION_FILE, ret, size) < 0 && errno != ENOENT)
		return err_set(err, ERR_INTERNAL, errno, "read data_dir/" INSTALLATION_FILE);
	if (ret[0] && !folder_name_ok(ret, size))
		return err_set(err, ERR_INVALID, 0,
			       "data_dir/" INSTALLATION_FILE " is damaged: remove it, and it is "
			       "written again");
	return 0;
}

/* All of it or nothing, on the disk when it returns. */
static int write_file(int dir, const char *id, struct err *err)
{
	static const char half[] = "." INSTALLATION_FILE;
	AUTO(auto_close) int fd = folder_open(dir, half, O_WRONLY | O_CREAT | O_TRUNC, 0600, err);
	ssize_t n = (ssize_t)strlen(id);

	if (fd < 0)
		return -1;
	if (write(fd, id, (size_t)n) != n || write(fd, "\n", 1) != 1 || fsync(fd) < 0 ||
	    renameat(dir, half, dir, INSTALLATION_FILE) < 0 || fsync(dir) < 0)
		return err_set(err, errno == ENOSPC ? ERR_NO_SPACE : ERR_INTERNAL, errno,
			       "write data_dir/" INSTALLATION_FILE);
	return 0;
}

/* The folder comes first: a journal without an id takes that of its folder. */
static int make_id(struct installation *i, struct journal *j, int dir, struct err *err)
{
	char born[32];

	random_hex(i->id, ID_BYTES);
	i->born_ns = journal_fresh(j) ? clock_wall_ns() : 0;
	snprintf(born, sizeof(born), "%" PRIu64, i->born_ns);
	log_info("this installation is %s from now on", i->id);
	if (write_file(dir, i->id, err) < 0 || journal_put_meta(j, meta_born, born, err) < 0)
		return -1;
	return journal_put_meta(j, meta_id, i->id, err);
}

static int agree(struct installation *i, struct journal *j, int dir, const char *in_file,
		 struct err *err)
{
	char *id = i->id;

	if (!id[0] && !in_file[0])
		return make_id(i, j, dir, err);
	if (!in_file[0])
		return write_file(dir, id, err);
	if (!id[0]) {
		memcpy(id, in_file, sizeof(i->id));
		return journal_put_meta(j, meta_id, id, err);
	}
	if (strcmp(id, in_file) == 0)
		return 0;
	return err_set(err, ERR_MISMATCH, 0,
		       "the journal is of installation %.8s.., its folder of %.8s..: is data_dir "
		       "right? was journal.db of another machine put here? If the two belong "
		       "together, remove the file `" INSTALLATION_FILE "` in it",
		       id, in_file);
}

static int load_boot(struct installation *i, struct journal *j, struct err *err)
{
	char boot[NODE_ID_MAX + 1], born[32];

	if (journal_get_meta(j, meta_boot, boot, sizeof(boot), err) < 0 ||
	    journal_get_meta(j, meta_born, born, sizeof(born), err) < 0)
		return -1;
	i->other_boot = boot[0] && i->boot_id[0] && strcmp(boot, i->boot_id) != 0;
	i->boot_noted = strcmp(boot, i->boot_id) == 0;
	if (born[0] && !bytes_to_u64(bytes_str(born), &i->born_ns))
		return err_set(err, ERR_INTERNAL, 0, "journal: its %s makes no sense", meta_born);
	return 0;
}

int installation_open(struct installation *i, struct journal *j, const char *data_dir,
		      struct err *err)
{
	AUTO(auto_close) int dir = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char in_file[sizeof(i->id)];

	if (dir < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open %s", data_dir);
	if (journal_get_meta(j, meta_id, i->id, sizeof(i->id), err) < 0 ||
	    load_boot(i, j, err) < 0 || read_file(dir, in_file, sizeof(in_file), err) < 0 ||
	    agree(i, j, dir, in_file, err) < 0)
		return err_wrap(err, "%.64s", data_dir);
	return 0;
}

void installation_close(struct installation *i)
{
	journal_write_cancel(&i->note);
}

static void on_noted(struct journal_write *w, const struct err *err)
{
	struct installation *i = CONTAINER_OF(w, struct installation, note);

	i->boot_noted = !err; /* else after the next look */
}

void installation_note_boot(struct installation *i, struct journal *j)
{
	struct err err;

	i->other_boot = false;
	if (i->boot_noted || i->note.journal || !i->boot_id[0])
		return;
	if (journal_note_meta(j, &i->note, meta_boot, i->boot_id, on_noted, &err) < 0)
		log_warn("note the boot of the host: %s", err.msg);
}

bool installation_is_younger(const struct installation *i, int dir, const char *name)
{
	struct stat st;

	return i->born_ns > 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (uint64_t)st.st_mtim.tv_sec < i->born_ns / NSEC_PER_SEC;
}

bool installation_is_other(const struct installation *i, const char *id)
{
	return id[0] && strcmp(id, i->id) != 0;
}
