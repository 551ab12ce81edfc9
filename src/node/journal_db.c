/* journal_db.c - one table; each column is named once, in the order of the enum. */
/* #syscalls: openat flock close fcntl pread64 pwrite64 fdatasync fsync ftruncate lseek fstat
 *	newfstatat access unlink getpid geteuid fchown clock_nanosleep mmap munmap mremap brk */
#include "node/journal_db.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>

#include "base/bytes.h"

enum column {
	COL_ID,
	COL_TEAM,
	COL_TEMPLATE,
	COL_ALIAS,
	COL_ACCESS_TOKEN,
	COL_CONTROL_TOKEN,
	COL_STARTED,
	COL_END,
	COL_VCPUS,
	COL_MEMORY,
	COL_DISK,
	COL_NODE_STATE,
	COL_GENERATION,
	COL_FLAGS,
	COL_STATE,
	COL_SLOT,
	COL_TEXT,
};

static const char schema[] =
	"CREATE TABLE sandbox ("
	" id TEXT PRIMARY KEY, team TEXT NOT NULL, template_id TEXT NOT NULL, alias TEXT NOT NULL,"
	" access_token TEXT NOT NULL, control_token TEXT NOT NULL,"
	" started_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,"
	" vcpus INTEGER NOT NULL, memory_mib INTEGER NOT NULL, disk_mib INTEGER NOT NULL,"
	" node_state INTEGER NOT NULL, generation INTEGER NOT NULL, flags INTEGER NOT NULL,"
	" state INTEGER NOT NULL, slot INTEGER NOT NULL, text TEXT) STRICT";
static const char sql_each[] =
	"SELECT id, team, template_id, alias, access_token, control_token, started_ns, end_ns,"
	" vcpus, memory_mib, disk_mib, node_state, generation, flags, state, slot, text"
	" FROM sandbox ORDER BY started_ns, id";
static const char sql_put[] =
	"INSERT OR REPLACE INTO sandbox (id, team, template_id, alias, access_token, control_token,"
	" started_ns, end_ns, vcpus, memory_mib, disk_mib, node_state, generation, flags, state,"
	" slot, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
static const char sql_remove[] = "DELETE FROM sandbox WHERE id = ?";

struct journal_db {
	sqlite3 *db;
	sqlite3_stmt *begin, *commit, *put, *remove;
	int lock; /* flock: one node per journal; others may look */
	int wal_pages;
	bool full_sync, damaged;
};

static void close_statement(sqlite3_stmt **s)
{
	sqlite3_finalize(*s);
}

static enum err_code code_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_FULL:
	case SQLITE_NOMEM:
		return ERR_EXHAUSTED;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return ERR_UNAVAILABLE;
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_READONLY:
		return ERR_DENIED;
	default:
		return ERR_INTERNAL;
	}
}

static int failed(struct journal_db *d, const char *what, struct err *err)
{
	int rc = sqlite3_extended_errcode(d->db);
	int sys = sqlite3_system_errno(d->db);

	return err_set(err, code_of(rc), sys, "journal: %s: %s", what, sqlite3_errmsg(d->db));
}

static int prepare(struct journal_db *d, const char *sql, sqlite3_stmt **ret, struct err *err)
{
	if (sqlite3_prepare_v3(d->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL) != SQLITE_OK)
		return failed(d, "prepare", err);
	return 0;
}

static int exec(struct journal_db *d, const char *sql, struct err *err)
{
	if (sqlite3_exec(d->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return failed(d, sql, err);
	return 0;
}

/* A statement without rows. */
static int run(struct journal_db *d, sqlite3_stmt *s, const char *what, struct err *err)
{
	int rc = sqlite3_step(s);

	if (rc != SQLITE_DONE)
		failed(d, what, err);
	sqlite3_reset(s);
	return rc == SQLITE_DONE ? 0 : -1;
}

static int read_number(struct journal_db *d, const char *sql, int *ret, struct err *err)
{
	AUTO(close_statement) sqlite3_stmt *s = NULL;

	if (prepare(d, sql, &s, err) < 0)
		return -1;
	if (sqlite3_step(s) != SQLITE_ROW)
		return failed(d, sql, err);
	*ret = sqlite3_column_int(s, 0);
	return 0;
}

static int check_health(struct journal_db *d, struct err *err)
{
	AUTO(close_statement) sqlite3_stmt *s = NULL;
	const char *said;

	if (prepare(d, "PRAGMA quick_check(1)", &s, err) < 0)
		return -1;
	if (sqlite3_step(s) != SQLITE_ROW)
		return failed(d, "check", err);
	said = (const char *)sqlite3_column_text(s, 0);
	if (said && strcmp(said, "ok") == 0)
		return 0;
	d->damaged = true;
	return err_set(err, ERR_INTERNAL, 0, "journal: %s", said ? said : "no memory to check it");
}

static int make_schema(struct journal_db *d, struct err *err)
{
	int version = 0, tables = 0;

	static_assert(JOURNAL_SCHEMA == 1, "a change of the table comes with its migration");
	if (read_number(d, "PRAGMA user_version", &version, err) < 0 ||
	    read_number(d, "SELECT count(*) FROM sqlite_schema", &tables, err) < 0)
		return -1;
	if (version > JOURNAL_SCHEMA)
		return err_set(err, ERR_MISMATCH, 0,
			       "its format %d is of a later version of Hotcell, this one knows %d",
			       version, JOURNAL_SCHEMA);
	if (version == JOURNAL_SCHEMA)
		return 0;
	if (tables > 0)
		return err_set(err, ERR_INVALID, 0, "it is a database, but not a journal");
	if (exec(d, "BEGIN IMMEDIATE", err) < 0 || exec(d, schema, err) < 0 ||
	    exec(d, "PRAGMA user_version = 1", err) < 0)
		return -1;
	return exec(d, "COMMIT", err);
}

static int on_commit(void *arg, sqlite3 *db, const char *name, int pages)
{
	struct journal_db *d = arg;

	(void)db;
	(void)name;
	d->wal_pages = pages;
	return SQLITE_OK;
}

static int set_up(struct journal_db *d, struct err *err)
{
	sqlite3_busy_timeout(d->db, JOURNAL_BUSY_MS);
	if (exec(d, "PRAGMA journal_mode = WAL", err) < 0 ||
	    exec(d, "PRAGMA synchronous = NORMAL", err) < 0 || check_health(d, err) < 0 ||
	    make_schema(d, err) < 0)
		return -1;
	if (prepare(d, "BEGIN IMMEDIATE", &d->begin, err) < 0 ||
	    prepare(d, "COMMIT", &d->commit, err) < 0 || prepare(d, sql_put, &d->put, err) < 0 ||
	    prepare(d, sql_remove, &d->remove, err) < 0)
		return -1;
	sqlite3_wal_hook(d->db, on_commit, d); /* in place of SQLite's own checkpoints */
	return 0;
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
				"%s is damaged: move it away (and its -wal) and start again; "
				"sandboxes that run will be ended",
				path);
	return err_wrap(err, "%s", path);
}

int journal_db_open(const char *path, struct journal_db **ret, struct err *err)
{
	struct journal_db *d = calloc(1, sizeof(*d));
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;

	if (!d)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate the journal");
	d->lock = take_file(path, err);
	if (d->lock < 0) {
		journal_db_close(d);
		return -1;
	}
	if (sqlite3_open_v2(path, &d->db, flags, NULL) != SQLITE_OK)
		failed(d, "open", err);
	else if (set_up(d, err) == 0) {
		*ret = d;
		return 0;
	}
	cannot_open(d, path, err);
	journal_db_close(d);
	return -1;
}

void journal_db_close(struct journal_db *d)
{
	if (!d)
		return;
	sqlite3_finalize(d->begin);
	sqlite3_finalize(d->commit);
	sqlite3_finalize(d->put);
	sqlite3_finalize(d->remove);
	sqlite3_close(d->db);
	/* last: to close any descriptor of the file ends SQLite's locks on it */
	auto_close(&d->lock);
	free(d);
}

static bool take_text(sqlite3_stmt *s, enum column c, char *ret, size_t size)
{
	struct bytes b = { sqlite3_column_text(s, (int)c),
			   (size_t)sqlite3_column_bytes(s, (int)c) };

	return b.ptr && bytes_to_str(b, ret, size);
}

static uint32_t take_u32(sqlite3_stmt *s, enum column c)
{
	return (uint32_t)sqlite3_column_int64(s, (int)c);
}

/* `text` is borrowed from the statement until its next step. */
static bool take_row(sqlite3_stmt *s, struct journal_row *r)
{
	struct node_sandbox *b = &r->sandbox;
	const unsigned char *text = sqlite3_column_text(s, COL_TEXT);
	uint32_t state = take_u32(s, COL_STATE);

	*r = (struct journal_row){ .slot = take_u32(s, COL_SLOT) };
	memcpy(&r->text, &text, sizeof(text)); /* only read by who is called */
	b->started_ns = (uint64_t)sqlite3_column_int64(s, COL_STARTED);
	b->end_ns = (uint64_t)sqlite3_column_int64(s, COL_END);
	b->vcpus = take_u32(s, COL_VCPUS);
	b->memory_mib = take_u32(s, COL_MEMORY);
	b->disk_mib = take_u32(s, COL_DISK);
	b->state = take_u32(s, COL_NODE_STATE);
	b->generation = take_u32(s, COL_GENERATION);
	b->flags = take_u32(s, COL_FLAGS);
	if (state >= JOURNAL_STATES)
		return false;
	r->state = (enum journal_state)state;
	return take_text(s, COL_ID, b->id, sizeof(b->id)) &&
	       take_text(s, COL_TEAM, b->team, sizeof(b->team)) &&
	       take_text(s, COL_TEMPLATE, b->template_id, sizeof(b->template_id)) &&
	       take_text(s, COL_ALIAS, b->alias, sizeof(b->alias)) &&
	       take_text(s, COL_ACCESS_TOKEN, b->access_token, sizeof(b->access_token)) &&
	       take_text(s, COL_CONTROL_TOKEN, r->control_token, sizeof(r->control_token));
}

int journal_db_each(struct journal_db *d, journal_each_fn *each, void *context, struct err *err)
{
	AUTO(close_statement) sqlite3_stmt *s = NULL;
	struct journal_row row;
	int rc;

	if (prepare(d, sql_each, &s, err) < 0)
		return -1;
	while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
		if (!take_row(s, &row))
			return err_set(err, ERR_INTERNAL, 0, "journal: a row makes no sense: %.64s",
				       (const char *)sqlite3_column_text(s, COL_ID));
		if (each(&row, context, err) < 0)
			return -1;
	}
	return rc == SQLITE_DONE ? 0 : failed(d, "read", err);
}

int journal_db_begin(struct journal_db *d, bool durable, struct err *err)
{
	if (durable != d->full_sync) {
		if (exec(d, durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL",
			 err) < 0)
			return -1;
		d->full_sync = durable;
	}
	return run(d, d->begin, "begin", err);
}

int journal_db_commit(struct journal_db *d, struct err *err)
{
	return run(d, d->commit, "commit", err);
}

void journal_db_rollback(struct journal_db *d)
{
	/* fails where SQLite rolled back by itself, which it does after most errors */
	if (!sqlite3_get_autocommit(d->db))
		(void)sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
}

static void give_text(sqlite3_stmt *s, enum column c, const char *text)
{
	(void)sqlite3_bind_text(s, (int)c + 1, text, -1, SQLITE_STATIC); /* NULL is fine */
}

static void give_number(sqlite3_stmt *s, enum column c, uint64_t n)
{
	(void)sqlite3_bind_int64(s, (int)c + 1, (sqlite3_int64)n);
}

int journal_db_put(struct journal_db *d, const struct journal_row *row, struct err *err)
{
	const struct node_sandbox *b = &row->sandbox;

	give_text(d->put, COL_ID, b->id);
	give_text(d->put, COL_TEAM, b->team);
	give_text(d->put, COL_TEMPLATE, b->template_id);
	give_text(d->put, COL_ALIAS, b->alias);
	give_text(d->put, COL_ACCESS_TOKEN, b->access_token);
	give_text(d->put, COL_CONTROL_TOKEN, row->control_token);
	give_number(d->put, COL_STARTED, b->started_ns);
	give_number(d->put, COL_END, b->end_ns);
	give_number(d->put, COL_VCPUS, b->vcpus);
	give_number(d->put, COL_MEMORY, b->memory_mib);
	give_number(d->put, COL_DISK, b->disk_mib);
	give_number(d->put, COL_NODE_STATE, b->state);
	give_number(d->put, COL_GENERATION, b->generation);
	give_number(d->put, COL_FLAGS, b->flags);
	give_number(d->put, COL_STATE, row->state);
	give_number(d->put, COL_SLOT, row->slot);
	give_text(d->put, COL_TEXT, row->text);
	return run(d, d->put, "put", err);
}

int journal_db_remove(struct journal_db *d, const char *id, struct err *err)
{
	give_text(d->remove, COL_ID, id);
	return run(d, d->remove, "remove", err);
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
