/* statements_db.h - the journal's file as SQLite has it, and its statements. Only the files with
 * the journal's SQL include it. */
#pragma once

#include <sqlite3.h>

#include "node/journal/journal_db.h"

struct journal_db {
	sqlite3 *db;
	sqlite3_stmt *begin, *commit, *put, *remove;
	sqlite3_stmt *bury, *shorten, *find, *list, *list_all, *prune; /* tombstones_db.c */
	sqlite3_stmt *put_snapshot, *remove_snapshot;                  /* snapshots_db.c */
	sqlite3_stmt *put_template, *put_build, *remove_template;      /* catalog_db.c */
	sqlite3_stmt *remove_builds, *remove_build;                    /* the same */
	sqlite3_stmt *free_pages;                                      /* reserve_db.c */
	uint64_t reserve_after_ns; /* there was no room for a reserve: not again before */
	int lock;                  /* flock: one node per journal; others may look */
	int wal_pages;
	bool full_sync, damaged, fresh; /* `fresh`: its tables were made just now */
};

void statement_done(sqlite3_stmt **s);                                          /* for AUTO() */
int journal_db_failed(struct journal_db *d, const char *what, struct err *err); /* -1 */
int journal_db_prepare(struct journal_db *d, const char *sql, sqlite3_stmt **ret,
		       struct err *err) NODISCARD;
/* A statement without rows. */
int journal_db_run(struct journal_db *d, sqlite3_stmt *s, const char *what,
		   struct err *err) NODISCARD;
/* Of a statement that gives one. */
int journal_db_number(struct journal_db *d, const char *sql, int *ret, struct err *err) NODISCARD;
/* What a statement is given: from 1 on; a text is borrowed until it was run, NULL is fine. */
void statement_text(sqlite3_stmt *s, int i, const char *text);
void statement_number(sqlite3_stmt *s, int i, uint64_t n);
/* False: it does not fit, or is no text. */
bool journal_db_text(sqlite3_stmt *s, int column, char *ret, size_t size);
