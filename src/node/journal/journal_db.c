/* journal_db.c - the file, its migrations, and the table of sandboxes. */
/* #syscalls: openat flock close fcntl pread64 pwrite64 fdatasync fsync ftruncate lseek fstat
 *	newfstatat access unlink getpid geteuid fchown clock_nanosleep mmap munmap mremap brk */
#include "node/journal/journal_db.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "base/bytes.h"
#include "node/journal/catalog_db.h"
#include "node/journal/reserve_db.h"
#include "node/journal/rows_db.h"
#include "node/journal/snapshots_db.h"
#include "node/journal/tombstones_db.h"

static const struct column columns[] = {
#define MEMBER(name, kind, m) \
	{ name, kind, offsetof(struct journal_row, m), sizeof(((struct journal_row *)0)->m) }
	MEMBER("id", COL_TEXT, sandbox.id),
	MEMBER("team", COL_TEXT, sandbox.team),
	MEMBER("template_id", COL_TEXT, sandbox.template_id),
	MEMBER("alias", COL_TEXT, sandbox.alias),
	MEMBER("access_token", COL_TEXT, sandbox.access_token),
	MEMBER("control_token", COL_TEXT, control_token),
	MEMBER("started_ns", COL_U64, sandbox.started_ns),
	MEMBER("end_ns", COL_U64, sandbox.end_ns),
	MEMBER("vcpus", COL_U32, sandbox.vcpus),
	MEMBER("memory_mib", COL_U32, sandbox.memory_mib),
	MEMBER("disk_mib", COL_U32, sandbox.disk_mib),
	MEMBER("node_state", COL_U32, sandbox.state),
	MEMBER("generation", COL_U32, sandbox.generation),
	MEMBER("flags", COL_U32, sandbox.flags),
	MEMBER("reason", COL_U32, sandbox.reason),
	MEMBER("ended_ns", COL_U64, sandbox.ended_ns),
	MEMBER("state", COL_U32, state),
	MEMBER("slot", COL_U32, slot),
	MEMBER("machine_id", COL_TEXT, machine_id),
	MEMBER("boot_id", COL_TEXT, boot_id),
	MEMBER("key_id", COL_TEXT, key_id),
	MEMBER("pages_crc", COL_U32, pages_crc),
	MEMBER("state_crc", COL_U32, state_crc),
	MEMBER("disk_crc", COL_U32, disk_crc),
	MEMBER("saved_bytes", COL_U64, saved_bytes),
	MEMBER("run_boot_ns", COL_U64, run_boot_ns),
	MEMBER("end_boot_ns", COL_U64, end_boot_ns),
	MEMBER("idempotency", COL_TEXT, idempotency),
	MEMBER("request_print", COL_U64, request_print),
	MEMBER("base_id", COL_TEXT, base_id),
	MEMBER("traffic_token", COL_TEXT, sandbox.traffic_token),
	MEMBER("token", COL_TEXT, token),
	MEMBER("base_sums", COL_U64, base_sums),
	MEMBER("blank", COL_U32, blank),
	MEMBER("text", COL_LONG, text),
	MEMBER("known", COL_LONG, known),
#undef MEMBER
};
static_assert(sizeof(enum journal_state) == sizeof(uint32_t), "a state is kept as a number");

const struct row_kind sandbox_rows = { "sandbox", columns, COUNT(columns),
				       sizeof(struct journal_row) };

/* migrations[i] takes the file from schema i to i + 1. Released ones never change; append only. */
static const char *const migrations[] = {
	"CREATE TABLE sandbox ("
	" id TEXT PRIMARY KEY, team TEXT NOT NULL, template_id TEXT NOT NULL, alias TEXT NOT NULL,"
	" access_token TEXT NOT NULL, control_token TEXT NOT NULL,"
	" started_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,"
	" vcpus INTEGER NOT NULL, memory_mib INTEGER NOT NULL, disk_mib INTEGER NOT NULL,"
	" node_state INTEGER NOT NULL, generation INTEGER NOT NULL, flags INTEGER NOT NULL,"
	" state INTEGER NOT NULL, slot INTEGER NOT NULL, text TEXT) STRICT",
	"ALTER TABLE sandbox ADD COLUMN reason INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandbox ADD COLUMN ended_ns INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandbox ADD COLUMN machine_id TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE sandbox ADD COLUMN boot_id TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE sandbox ADD COLUMN key_id TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE sandbox ADD COLUMN pages_crc INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandbox ADD COLUMN state_crc INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandbox ADD COLUMN saved_bytes INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandbox ADD COLUMN run_boot_ns INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandbox ADD COLUMN end_boot_ns INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandbox ADD COLUMN idempotency TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE sandbox ADD COLUMN request_print INTEGER NOT NULL DEFAULT 0;"
	/* seq: the order of the ends, and what is dropped first */
	"CREATE TABLE tombstone (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,"
	" team TEXT NOT NULL, template_id TEXT NOT NULL, started_ns INTEGER NOT NULL,"
	" ended_ns INTEGER NOT NULL, reason INTEGER NOT NULL) STRICT;"
	"CREATE INDEX tombstone_all ON tombstone (ended_ns, id);"
	"CREATE INDEX tombstone_team ON tombstone (team, ended_ns, id)",
	"ALTER TABLE sandbox ADD COLUMN base_id TEXT NOT NULL DEFAULT '';"
	"CREATE TABLE snapshot (id TEXT PRIMARY KEY, team TEXT NOT NULL, base_id TEXT NOT NULL,"
	" parent TEXT NOT NULL, source TEXT NOT NULL, name TEXT NOT NULL, tag TEXT NOT NULL,"
	" control_token TEXT NOT NULL, created_ns INTEGER NOT NULL, memory_bytes INTEGER NOT NULL,"
	" disk_bytes INTEGER NOT NULL, vcpus INTEGER NOT NULL, memory_mib INTEGER NOT NULL,"
	" disk_mib INTEGER NOT NULL, layers INTEGER NOT NULL, hidden INTEGER NOT NULL) STRICT",
	"ALTER TABLE sandbox ADD COLUMN traffic_token TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE sandbox ADD COLUMN known TEXT;"
	"ALTER TABLE snapshot ADD COLUMN known TEXT",
	("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;"
	 "ALTER TABLE sandbox ADD COLUMN token TEXT NOT NULL DEFAULT '';"
	 "ALTER TABLE snapshot ADD COLUMN token TEXT NOT NULL DEFAULT '';"
	 "ALTER TABLE sandbox ADD COLUMN base_sums INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE snapshot ADD COLUMN base_sums INTEGER NOT NULL DEFAULT 0"),
	"ALTER TABLE sandbox ADD COLUMN disk_crc INTEGER NOT NULL DEFAULT 0",
	("ALTER TABLE snapshot ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE snapshot ADD COLUMN key TEXT NOT NULL DEFAULT '';"
	 "ALTER TABLE snapshot ADD COLUMN context TEXT;"
	 "ALTER TABLE sandbox ADD COLUMN blank INTEGER NOT NULL DEFAULT 0"),
	("CREATE TABLE template (id TEXT PRIMARY KEY, team TEXT NOT NULL,"
	 " namespace TEXT NOT NULL, name TEXT NOT NULL, created_ns INTEGER NOT NULL,"
	 " updated_ns INTEGER NOT NULL, spawned_ns INTEGER NOT NULL, spawns INTEGER NOT NULL,"
	 " public INTEGER NOT NULL, tags TEXT) STRICT;"
	 "CREATE TABLE build (id TEXT PRIMARY KEY, template_id TEXT NOT NULL,"
	 " snapshot_id TEXT NOT NULL, step TEXT NOT NULL, created_ns INTEGER NOT NULL,"
	 " finished_ns INTEGER NOT NULL, status INTEGER NOT NULL, vcpus INTEGER NOT NULL,"
	 " memory_mib INTEGER NOT NULL, disk_mib INTEGER NOT NULL,"
	 " free_disk_mib INTEGER NOT NULL, copied INTEGER NOT NULL, tags TEXT,"
	 " reason TEXT) STRICT;"
	 "CREATE INDEX build_template ON build (template_id)"),
};
static_assert(COUNT(migrations) == JOURNAL_SCHEMA, "a change of the tables is a migration");

static const char sql_remove[] = "DELETE FROM sandbox WHERE id = ?";

static int exec(struct journal_db *d, const char *sql, struct err *err)
{
	if (sqlite3_exec(d->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return journal_db_failed(d, sql, err);
	return 0;
}

static int check_health(struct journal_db *d, struct err *err)
{
	AUTO(statement_done) sqlite3_stmt *s = NULL;
	const char *said;

	if (journal_db_prepare(d, "PRAGMA quick_check(1)", &s, err) < 0)
		return -1;
	if (sqlite3_step(s) != SQLITE_ROW)
		return journal_db_failed(d, "check", err);
	said = (const char *)sqlite3_column_text(s, 0);
	if (said && strcmp(said, "ok") == 0)
		return 0;
	d->damaged = true;
	return err_set(err, ERR_INTERNAL, 0, "journal: %s", said ? said : "no memory to check it");
}

/* All in one transaction: a node that dies meanwhile leaves the file as it was. */
static int migrate(struct journal_db *d, size_t from, struct err *err)
{
	char done[64];

	snprintf(done, sizeof(done), "PRAGMA user_version = %d", JOURNAL_SCHEMA);
	if (exec(d, "BEGIN IMMEDIATE", err) < 0)
		return -1;
	for (size_t i = from; i < COUNT(migrations); i++)
		if (exec(d, migrations[i], err) < 0)
			return -1;
	if (exec(d, done, err) < 0)
		return -1;
	return exec(d, "COMMIT", err);
}

static int make_schema(struct journal_db *d, struct err *err)
{
	int version = 0, tables = 0;

	if (journal_db_number(d, "PRAGMA user_version", &version, err) < 0 ||
	    journal_db_number(d, "SELECT count(*) FROM sqlite_schema", &tables, err) < 0)
		return -1;
	if (version > JOURNAL_SCHEMA)
		return err_set(err, ERR_MISMATCH, 0,
			       "its format %d is of a later version of Hotcell, this one knows %d",
			       version, JOURNAL_SCHEMA);
	if (version == JOURNAL_SCHEMA)
		return 0;
	d->fresh = version == 0 && tables == 0;
	if (version < 0 || (version == 0 && tables > 0))
		return err_set(err, ERR_INVALID, 0, "it is a database, but not a journal");
	return migrate(d, (size_t)version, err);
}

static int on_commit(void *arg, sqlite3 *db, const char *name, int pages)
{
	struct journal_db *d = arg;

	(void)db;
	(void)name;
	d->wal_pages = pages;
	return SQLITE_OK;
}

static int set_up(struct journal_db *d, bool alone, struct err *err)
{
	sqlite3_busy_timeout(d->db, JOURNAL_BUSY_MS);
	/* there is no folder for temporary files that a confined node may write to */
	if (exec(d, "PRAGMA temp_store = MEMORY", err) < 0 ||
	    (alone && exec(d, "PRAGMA locking_mode = EXCLUSIVE", err) < 0) ||
	    exec(d, "PRAGMA journal_mode = WAL", err) < 0 ||
	    exec(d, "PRAGMA synchronous = NORMAL", err) < 0 || check_health(d, err) < 0 ||
	    make_schema(d, err) < 0)
		return -1;
	if (journal_db_prepare(d, "BEGIN IMMEDIATE", &d->begin, err) < 0 ||
	    journal_db_prepare(d, "COMMIT", &d->commit, err) < 0 ||
	    rows_db_prepare_put(d, &sandbox_rows, &d->put, err) < 0 ||
	    journal_db_prepare(d, sql_remove, &d->remove, err) < 0 ||
	    tombstones_db_open(d, err) < 0 || snapshots_db_open(d, err) < 0 ||
	    catalog_db_open(d, err) < 0)
		return -1;
	sqlite3_wal_hook(d->db, on_commit, d); /* in place of SQLite's own checkpoints */
	return reserve_db_open(d, err);
}

/* It holds tokens: nobody else may read it. SQLite gives its other files the same mode. */
static int take_file(const char *path, struct err *err)
{
	AUTO(auto_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_set(err, ERR_DENIED, errno, "open the journal %s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_EXISTS, errno, "another node uses the journal %s", path);
	return take_fd(&fd);
}

static int cannot_open(const struct journal_db *d, const char *path, struct err *err)
{
	int rc = d->db ? sqlite3_errcode(d->db) : SQLITE_OK;

	if ((rc & 0xff) == SQLITE_CORRUPT || rc == SQLITE_NOTADB || d->damaged)
		return err_wrap(err,
				"%s is damaged: move it away (and its -wal) and run "
				"hotcell-node --rebuild, which makes a journal from what is saved",
				path);
	return err_wrap(err, "%s", path);
}

static int open_db(struct journal_db *d, const char *path, bool alone, struct err *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;

	if (sqlite3_open_v2(path, &d->db, flags, NULL) != SQLITE_OK)
		return journal_db_failed(d, "open", err);
	return set_up(d, alone, err);
}

static void close_db(struct journal_db *d)
{
	sqlite3_finalize(d->begin);
	sqlite3_finalize(d->commit);
	sqlite3_finalize(d->put);
	sqlite3_finalize(d->remove);
	tombstones_db_close(d);
	snapshots_db_close(d);
	catalog_db_close(d);
	reserve_db_close(d);
	sqlite3_close(d->db);
	*d = (struct journal_db){ .lock = d->lock };
}

/* On a full disk there may be no room for the file by which SQLite shares what is in the log. It
 * does without one where nobody else may look. */
static int open_anyhow(struct journal_db *d, const char *path, struct err *err)
{
	if (open_db(d, path, false, err) == 0)
		return 0;
	if (err->sys != ENOSPC && err->code != ERR_NO_SPACE)
		return -1;
	close_db(d);
	return open_db(d, path, true, err);
}

int journal_db_open(const char *path, struct journal_db **ret, struct err *err)
{
	struct journal_db *d = calloc(1, sizeof(*d));

	if (!d)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate the journal");
	d->lock = take_file(path, err);
	if (d->lock >= 0 && open_anyhow(d, path, err) == 0) {
		*ret = d;
		return 0;
	}
	if (d->lock >= 0)
		cannot_open(d, path, err);
	journal_db_close(d);
	return -1;
}

void journal_db_close(struct journal_db *d)
{
	if (!d)
		return;
	close_db(d);
	/* last: to close any descriptor of the file ends SQLite's locks on it */
	auto_close(&d->lock);
	free(d);
}

struct sandboxes_walk {
	struct rows_walk rows;
	journal_each_fn *each;
};

static int take_sandbox(struct rows_walk *rows, struct err *err)
{
	struct sandboxes_walk *w = CONTAINER_OF(rows, struct sandboxes_walk, rows);
	struct journal_row r;

	if (rows_db_take(rows, (char *)&r, err) < 0)
		return -1;
	if (r.state >= JOURNAL_STATES)
		return err_set(err, ERR_INVALID, 0, "state %u is not known", r.state);
	if (r.sandbox.reason >= NODE_REASONS)
		return err_set(err, ERR_INVALID, 0, "reason %u is not known", r.sandbox.reason);
	return w->each(&r, rows->context, err);
}

int journal_db_each(struct journal_db *d, journal_each_fn *each, journal_odd_fn *odd, void *context,
		    struct err *err)
{
	struct sandboxes_walk w = { { &sandbox_rows, "started_ns", take_sandbox, odd, context },
				    each };

	return rows_db_each(d, &w.rows, err);
}

int journal_db_begin(struct journal_db *d, bool durable, struct err *err)
{
	if (durable != d->full_sync) {
		if (exec(d, durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL",
			 err) < 0)
			return -1;
		d->full_sync = durable;
	}
	return journal_db_run(d, d->begin, "begin", err);
}

int journal_db_end(struct journal_db *d, int rc, struct err *err)
{
	if (rc == 0)
		rc = journal_db_run(d, d->commit, "commit", err);
	/* fails where SQLite rolled back by itself, which it does after most errors */
	if (rc < 0 && !sqlite3_get_autocommit(d->db))
		(void)sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}

int journal_db_put(struct journal_db *d, const struct journal_row *row, struct err *err)
{
	rows_db_give(d->put, &sandbox_rows, (const char *)row);
	return journal_db_run(d, d->put, "put", err);
}

int journal_db_remove(struct journal_db *d, const char *id, struct err *err)
{
	statement_text(d->remove, 1, id);
	return journal_db_run(d, d->remove, "remove", err);
}

int journal_db_wal_pages(const struct journal_db *d)
{
	return d->wal_pages;
}

void journal_db_checkpoint(struct journal_db *d)
{
	(void)sqlite3_wal_checkpoint_v2(d->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	d->wal_pages = 0; /* the next commit tells what is left */
}
