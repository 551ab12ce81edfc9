/* database.c - SQLite behind a wall that PostgreSQL could stand behind too. */
/* What SQLite needs, with its write-ahead log. */
/* #syscalls: openat read write pread64 pwrite64 lseek fstat newfstatat stat lstat statx access
 * fcntl fsync fdatasync ftruncate unlink readlink getcwd geteuid getpid fchmod fchown
 * pselect6 nanosleep clock_nanosleep */
#include "store/database.h"

#include "base/log.h"

/* Each takes the schema from its index to the next. Never changed once released, only added to. */
static const char *const migrations[] = {
	"CREATE TABLE teams ("
	" id TEXT PRIMARY KEY,"
	" name TEXT NOT NULL UNIQUE,"
	" slug TEXT NOT NULL,"
	" created BIGINT NOT NULL);"
	"CREATE TABLE keys ("
	" id TEXT PRIMARY KEY,"
	" team_id TEXT NOT NULL REFERENCES teams (id),"
	" name TEXT NOT NULL,"
	" hash TEXT NOT NULL UNIQUE,"
	" mask_head TEXT NOT NULL,"
	" mask_tail TEXT NOT NULL,"
	" created BIGINT NOT NULL,"
	" last_used BIGINT NOT NULL);"
	"CREATE INDEX keys_of_team ON keys (team_id, created);",
	"ALTER TABLE keys ADD COLUMN max_sandboxes BIGINT NOT NULL DEFAULT 0;"
	"ALTER TABLE keys ADD COLUMN max_vcpus BIGINT NOT NULL DEFAULT 0;"
	"ALTER TABLE keys ADD COLUMN max_memory BIGINT NOT NULL DEFAULT 0;"
	"ALTER TABLE keys ADD COLUMN max_disk BIGINT NOT NULL DEFAULT 0;",
	"ALTER TABLE keys ADD COLUMN services TEXT NOT NULL DEFAULT '';",
	"CREATE TABLE secrets ("
	" id TEXT PRIMARY KEY,"
	" team_id TEXT NOT NULL REFERENCES teams (id),"
	" name TEXT NOT NULL,"
	" version BIGINT NOT NULL,"
	" metadata TEXT NOT NULL,"
	" sealed TEXT NOT NULL,"
	" created BIGINT NOT NULL,"
	" updated BIGINT NOT NULL,"
	" UNIQUE (team_id, name));",
	"ALTER TABLE keys ADD COLUMN max_paused BIGINT NOT NULL DEFAULT 0;",
	"ALTER TABLE keys ADD COLUMN maker TEXT REFERENCES keys (id);"
	"ALTER TABLE keys ADD COLUMN family TEXT NOT NULL DEFAULT '';"
	"UPDATE keys SET family = id;"
	"CREATE INDEX keys_of_maker ON keys (maker);"
	"ALTER TABLE teams ADD COLUMN max_sandboxes BIGINT NOT NULL DEFAULT 0;"
	"ALTER TABLE teams ADD COLUMN max_vcpus BIGINT NOT NULL DEFAULT 0;"
	"ALTER TABLE teams ADD COLUMN max_memory BIGINT NOT NULL DEFAULT 0;"
	"ALTER TABLE teams ADD COLUMN max_disk BIGINT NOT NULL DEFAULT 0;"
	"ALTER TABLE teams ADD COLUMN max_paused BIGINT NOT NULL DEFAULT 0;",
	"CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);",
};

static enum err_code code_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_FULL:
	case SQLITE_NOMEM:
		return ERR_EXHAUSTED;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
		return ERR_UNAVAILABLE;
	case SQLITE_CONSTRAINT:
		return rc == SQLITE_CONSTRAINT_FOREIGNKEY ? ERR_NOT_FOUND : ERR_EXISTS;
	default:
		return ERR_INTERNAL;
	}
}

static int fail(struct database *d, int rc, struct err *err)
{
	return err_set(err, code_of(rc), 0, "database: %s",
		       d->handle ? sqlite3_errmsg(d->handle) : sqlite3_errstr(rc));
}

/* No rows come of it. */
static int database_run(struct database *d, const char *text, struct err *err)
{
	int rc = sqlite3_exec(d->handle, text, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : fail(d, rc, err);
}

int database_changed(const struct database *d)
{
	return sqlite3_changes(d->handle);
}

int database_begin(struct database *d, struct err *err)
{
	/* IMMEDIATE: two processes that both read first would otherwise refuse each other */
	return database_run(d, "BEGIN IMMEDIATE", err);
}

int database_commit(struct database *d, struct err *err)
{
	return database_run(d, "COMMIT", err);
}

void database_rollback(struct database *d)
{
	struct err ignored;

	if (!sqlite3_get_autocommit(d->handle) && database_run(d, "ROLLBACK", &ignored) < 0)
		log_warn("%s", ignored.msg);
}

void sql_begin(struct sql *q, struct database *d, const char *text)
{
	*q = (struct sql){ .db = d };
	q->failed = sqlite3_prepare_v2(d->handle, text, -1, &q->stmt, NULL) != SQLITE_OK;
}

void sql_bind_text(struct sql *q, const char *value)
{
	if (!q->failed &&
	    sqlite3_bind_text(q->stmt, ++q->n_bound, value, -1, SQLITE_TRANSIENT) != SQLITE_OK)
		q->failed = true;
}

void sql_bind_u64(struct sql *q, uint64_t value)
{
	if (!q->failed &&
	    sqlite3_bind_int64(q->stmt, ++q->n_bound, (sqlite3_int64)value) != SQLITE_OK)
		q->failed = true;
}

int sql_next(struct sql *q, struct err *err)
{
	int rc;

	if (q->failed)
		return fail(q->db, sqlite3_extended_errcode(q->db->handle), err);
	q->n_read = 0;
	rc = sqlite3_step(q->stmt);
	if (rc == SQLITE_ROW)
		return 1;
	return rc == SQLITE_DONE ? 0 : fail(q->db, rc, err);
}

void sql_read_text(struct sql *q, char *ret, size_t size)
{
	const unsigned char *text = sqlite3_column_text(q->stmt, q->n_read++);

	snprintf(ret, size, "%s", text ? (const char *)text : "");
}

char *sql_read_copy(struct sql *q)
{
	const unsigned char *text = sqlite3_column_text(q->stmt, q->n_read++);

	return strdup(text ? (const char *)text : "");
}

uint64_t sql_read_u64(struct sql *q)
{
	return (uint64_t)sqlite3_column_int64(q->stmt, q->n_read++);
}

void sql_done(struct sql *q)
{
	sqlite3_finalize(q->stmt); /* its error was told by sql_next() */
	q->stmt = NULL;
}

static int read_version(struct database *d, uint64_t *ret, struct err *err)
{
	AUTO(sql_done) struct sql q;
	int rc;

	sql_begin(&q, d, "SELECT version FROM schema_version");
	rc = sql_next(&q, err);
	*ret = rc == 1 ? sql_read_u64(&q) : 0;
	return rc < 0 ? -1 : 0;
}

static int write_version(struct database *d, uint64_t version, struct err *err)
{
	AUTO(sql_done) struct sql q;

	if (database_run(d, "DELETE FROM schema_version", err) < 0)
		return -1;
	sql_begin(&q, d, "INSERT INTO schema_version (version) VALUES ($1)");
	sql_bind_u64(&q, version);
	return sql_next(&q, err);
}

static int migrate(struct database *d, struct err *err)
{
	uint64_t version;

	if (database_run(d, "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)",
			 err) < 0 ||
	    read_version(d, &version, err) < 0)
		return -1;
	if (version > COUNT(migrations))
		return err_set(err, ERR_MISMATCH, 0,
			       "the database has schema %llu, this program knows %zu",
			       (unsigned long long)version, COUNT(migrations));
	if (version == COUNT(migrations))
		return 0;
	for (; version < COUNT(migrations); version++)
		if (database_run(d, migrations[version], err) < 0)
			return -1;
	return write_version(d, version, err);
}

static int set_up(struct database *d, struct err *err)
{
	sqlite3_extended_result_codes(d->handle, 1);
	sqlite3_busy_timeout(d->handle, DATABASE_BUSY_MS);
	if (database_run(d, "PRAGMA journal_mode = WAL", err) < 0 ||
	    database_run(d, "PRAGMA synchronous = FULL", err) < 0 ||
	    database_run(d, "PRAGMA temp_store = MEMORY", err) < 0 ||
	    database_run(d, "PRAGMA foreign_keys = ON", err) < 0 || database_begin(d, err) < 0)
		return -1;
	if (migrate(d, err) < 0 || database_commit(d, err) < 0) {
		database_rollback(d);
		return -1;
	}
	return 0;
}

int database_open(struct database *d, const char *path, struct err *err)
{
	/* one thread at a time uses it, first the injector's, then the store's */
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
	int rc = sqlite3_open_v2(path, &d->handle, flags, NULL);

	if (rc != SQLITE_OK)
		fail(d, rc, err);
	if (rc != SQLITE_OK || set_up(d, err) < 0) {
		database_close(d);
		return err_wrap(err, "open %s", path);
	}
	return 0;
}

void database_close(struct database *d)
{
	sqlite3_close_v2(d->handle);
	d->handle = NULL;
}
