/* rebuild.c - reads every description and writes its row. */
/* #syscalls: openat openat2 newfstatat getdents64 close write */
#include "node/journal/rebuild.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/folder.h"
#include "base/log.h"
#include "node/journal/journal_thread.h"
#include "node/journal/catalog_db.h"
#include "node/journal/meta_db.h"
#include "node/journal/row_file.h"
#include "node/journal/snapshots_db.h"

enum { EXIT_PARTLY = 3, REBUILD_PATH_MAX = 512 };

/* Writes the row of a folder. 0: *why not, -1: the journal cannot be written. */
typedef int bring_fn(struct journal_db *d, int folder, const char *name, struct err *why,
		     struct err *err);

struct rebuild { /* of one kind */
	struct journal_db *db;
	struct rebuild_user *user;
	struct rebuilt *ret;
	const char *kind;
	bring_fn *bring;
	size_t *brought; /* how many */
	bool may_lack;   /* a description: it is not worth a word then */
};

/* --- one folder --------------------------------------------------------------------------- */

static int need_file(int folder, const char *name, const char *what, struct err *err)
{
	int there = row_has_file(folder, name, NULL, err);

	if (there == 0)
		return err_set(err, ERR_NOT_FOUND, 0, "its %s is missing", what);
	return there < 0 ? -1 : 0;
}

static int check_name(const char *id, const char *folder, struct err *err)
{
	if (strcmp(id, folder) == 0)
		return 0;
	return err_set(err, ERR_INVALID, 0, "its description is of %s", id);
}

static int check_sandbox(const struct journal_row *r, int folder, const char *name, struct err *err)
{
	if (check_name(r->sandbox.id, name, err) < 0)
		return -1;
	if (r->state != JOURNAL_PAUSED)
		return err_set(err, ERR_INVALID, 0, "its description is not of a paused one");
	if (need_file(folder, "disk", "disk", err) < 0)
		return -1;
	if (r->saved_bytes == 0)
		return 0;
	if (need_file(folder, "pages", "saved memory", err) < 0)
		return -1;
	return need_file(folder, "state", "saved memory", err);
}

int rebuild_read(int folder, const char *name, struct journal_row *ret, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(ROW_FILE_MAX + 1);

	if (row_file_read(folder, &text, err) < 0 || row_get(buf_view(&text), ret, err) < 0)
		return -1;
	if (check_sandbox(ret, folder, name, err) < 0) {
		row_done(ret);
		return -1;
	}
	if (ret->sandbox.reason == NODE_LOST) /* its VM was, lost_disks.h: it is paused now */
		ret->sandbox.reason = NODE_ALIVE;
	return 0;
}

int rebuild_read_snapshot(int folder, const char *name, struct journal_snapshot *ret,
			  struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(ROW_FILE_MAX + 1);

	if (row_file_read(folder, &text, err) < 0 ||
	    row_get_snapshot(buf_view(&text), ret, err) < 0)
		return -1;
	if (need_file(folder, "manifest", "manifest", err) == 0 &&
	    check_name(ret->id, name, err) == 0)
		return 0;
	row_done_snapshot(ret);
	return -1;
}

/* False: there is nothing to be brought back, which was counted. */
static bool is_described(struct rebuild *r, int folder, const char *name)
{
	struct err ignored;

	if (row_file_is_deleted(folder)) {
		r->ret->deleted++;
		return false;
	}
	if (row_has_file(folder, ROW_FILE, NULL, &ignored) != 0)
		return true;
	if (r->may_lack)
		return false;
	r->ret->undescribed++;
	r->user->say(r->user, r->kind, name,
		     "there is no description of it: it ran, or was not whole");
	return false;
}

static int bring_sandbox(struct journal_db *d, int folder, const char *name, struct err *why,
			 struct err *err)
{
	struct journal_row row;
	int rc;

	if (rebuild_read(folder, name, &row, why) < 0)
		return 0;
	rc = journal_db_put(d, &row, err);
	row_done(&row);
	return rc < 0 ? -1 : 1;
}

static int bring_snapshot(struct journal_db *d, int folder, const char *name, struct err *why,
			  struct err *err)
{
	struct journal_snapshot row;
	int rc;

	if (rebuild_read_snapshot(folder, name, &row, why) < 0)
		return 0;
	rc = journal_db_put_snapshot(d, &row, err);
	row_done_snapshot(&row);
	return rc < 0 ? -1 : 1;
}

static int bring_template(struct journal_db *d, int folder, const char *name, struct err *why,
			  struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(ROW_FILE_MAX + 1);
	struct journal_template row;
	int rc = 0;

	if (row_file_read(folder, &text, why) < 0 ||
	    row_get_template(buf_view(&text), &row, why) < 0)
		return 0;
	if (check_name(row.id, name, why) == 0)
		rc = journal_db_put_template(d, &row, err) < 0 ? -1 : 1;
	row_done_template(&row);
	return rc;
}

static int bring_build(struct journal_db *d, int folder, const char *name, struct err *why,
		       struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(ROW_FILE_MAX + 1);
	struct journal_build row;
	int rc = 0;

	if (row_file_read(folder, &text, why) < 0 || row_get_build(buf_view(&text), &row, why) < 0)
		return 0;
	if (check_name(row.id, name, why) == 0)
		rc = journal_db_put_build(d, &row, err) < 0 ? -1 : 1;
	row_done_build(&row);
	return rc;
}

static int take_folder(int dir, const char *name, void *context, struct err *err)
{
	struct rebuild *r = context;
	struct err why;
	AUTO(auto_close) int folder = folder_open(dir, name, O_RDONLY | O_DIRECTORY, 0, &why);
	int rc = 0;

	if (!folder_name_ok(name, strlen(name) + 1)) /* also a snapshot that was being made */
		return 0;
	if (folder >= 0 && !is_described(r, folder, name))
		return 0;
	if (folder >= 0)
		rc = r->bring(r->db, folder, name, &why, err);
	if (rc < 0)
		return -1;
	*(rc > 0 ? r->brought : &r->ret->unreadable) += 1;
	r->user->say(r->user, r->kind, name, rc > 0 ? NULL : why.msg);
	return 0;
}

static int fill_catalog(struct journal_db *d, struct rebuild_user *u, struct rebuilt *ret,
			struct err *err)
{
	struct rebuild templates = { d, u, ret, "template", bring_template, &ret->templates };
	struct rebuild builds = { d, u, ret, "build", bring_build, &ret->builds, true };

	if (u->templates < 0)
		return 0;
	if (folder_each(u->templates, take_folder, &templates, err) < 0)
		return -1;
	return folder_each(u->builds, take_folder, &builds, err);
}

int rebuild_fill(struct journal_db *d, struct rebuild_user *u, struct rebuilt *ret, struct err *err)
{
	struct rebuild snapshots = { d, u, ret, "snapshot", bring_snapshot, &ret->snapshots };
	struct rebuild sandboxes = { d, u, ret, "sandbox", bring_sandbox, &ret->sandboxes };
	int rc;

	*ret = (struct rebuilt){ 0 };
	if (journal_db_begin(d, true, err) < 0)
		return -1;
	rc = folder_each(u->snapshots, take_folder, &snapshots, err);
	if (rc == 0)
		rc = folder_each(u->sandboxes, take_folder, &sandboxes, err);
	if (rc == 0)
		rc = fill_catalog(d, u, ret, err);
	if (journal_db_end(d, rc, err) < 0)
		return err_wrap(err, "make a journal from the descriptions");
	return 0;
}

/* --- at start ----------------------------------------------------------------------------- */

static void log_one(struct rebuild_user *u, const char *kind, const char *id, const char *why)
{
	(void)u;
	if (why)
		log_warn("%s %s is not brought back: %s", kind, id, why);
}

int journal_rebuild(struct journal *j, struct rebuild_user *u, struct rebuilt *ret, struct err *err)
{
	struct journal_db *db = journal_lock(j);
	bool rows = false, ended = false;
	int rc = journal_db_is_used(db, &rows, &ended, err);

	*ret = (struct rebuilt){ 0 };
	if (rc == 0 && !rows && !ended)
		rc = rebuild_fill(db, u, ret, err);
	journal_unlock(j);
	return rc;
}

int rebuild_new(struct journal *j, const struct rebuild_folders *f, struct err *err)
{
	struct rebuild_user u = { f->sandboxes, f->snapshots, f->templates, f->builds, log_one };
	struct rebuilt got;

	if (journal_rebuild(j, &u, &got, err) < 0)
		return -1;
	if (got.sandboxes + got.snapshots + got.templates + got.unreadable > 0)
		log_warn("the journal is new and the data folder is not: %zu paused sandboxes and "
			 "%zu snapshots are brought back from their descriptions, %zu could not be "
			 "read; and %zu templates with %zu builds",
			 got.sandboxes, got.snapshots, got.unreadable, got.templates, got.builds);
	return 0;
}

int rebuild_check_wal(const char *journal_path, struct err *err)
{
	char wal[REBUILD_PATH_MAX];
	struct stat st;

	snprintf(wal, sizeof(wal), "%s-wal", journal_path);
	if (stat(journal_path, &st) == 0 || stat(wal, &st) < 0 || st.st_size == 0)
		return 0;
	return err_set(err, ERR_EXISTS, 0,
		       "%s is not there and its -wal is: put it back, or move the -wal away, too, "
		       "and run hotcell-node --rebuild",
		       journal_path);
}

/* --- the program -------------------------------------------------------------------------- */

static void print_one(struct rebuild_user *u, const char *kind, const char *id, const char *why)
{
	(void)u;
	if (why)
		printf("%s %s: not brought back: %s\n", kind, id, why);
	else
		printf("%s %s\n", kind, id);
}

static int open_root(const char *data_dir, const char *name, struct err *err)
{
	char path[REBUILD_PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", data_dir, name);

	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(err, ERR_INVALID, 0, "path too long");
	return folder_ensure(path, 0700, err);
}

/* Where node never was there is nothing to bring back, and a journal would hide the mistake. */
static int check_used(const char *data_dir, struct err *err)
{
	char path[REBUILD_PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/sandboxes", data_dir);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	return err_set(err, ERR_NOT_FOUND, 0,
		       "there is no folder %s: is data_dir right, and its disk mounted?", path);
}

static int check_unused(struct journal_db *d, const char *path, struct err *err)
{
	bool rows = false, ended = false;

	if (journal_db_is_used(d, &rows, &ended, err) < 0)
		return -1;
	if (!rows)
		return 0;
	return err_set(err, ERR_EXISTS, 0,
		       "%s holds rows: if they are wrong, move it away (and its -wal) first", path);
}

static int fill(const char *data_dir, struct rebuilt *ret, struct err *err)
{
	AUTO(auto_close)
	int sandboxes = check_used(data_dir, err) < 0 ? -1 : open_root(data_dir, "sandboxes", err);
	AUTO(auto_close) int snapshots = -1, templates = -1, builds = -1;
	struct rebuild_user u = { .say = print_one };
	char path[REBUILD_PATH_MAX];
	struct journal_db *d;
	int rc;

	if (sandboxes < 0)
		return -1;
	snapshots = open_root(data_dir, "snapshots", err);
	templates = snapshots < 0 ? -1 : open_root(data_dir, "catalog", err);
	builds = templates < 0 ? -1 : open_root(data_dir, "builds", err);
	if (builds < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/journal.db", data_dir);
	if (rebuild_check_wal(path, err) < 0 || journal_db_open(path, &d, err) < 0)
		return -1;
	u.sandboxes = sandboxes;
	u.snapshots = snapshots;
	u.templates = templates;
	u.builds = builds;
	rc = check_unused(d, path, err);
	if (rc == 0)
		rc = rebuild_fill(d, &u, ret, err);
	journal_db_close(d);
	return rc;
}

int rebuild_run(const char *data_dir)
{
	struct err err = { 0 };
	struct rebuilt got;

	if (fill(data_dir, &got, &err) < 0) {
		log_error("%s", err.msg);
		return 1;
	}
	printf("%zu paused sandboxes and %zu snapshots are in the journal again; %zu could not be "
	       "read, %zu have no description, %zu had been deleted\n",
	       got.sandboxes, got.snapshots, got.unreadable, got.undescribed, got.deleted);
	if (got.templates > 0)
		printf("%zu templates with %zu builds are in the journal again\n", got.templates,
		       got.builds);
	return got.unreadable + got.undescribed > 0 ? EXIT_PARTLY : 0;
}
