/* audit.h - what was decided for one sandbox: the last decisions, kept, and a line of the log for
 * each, as many as a log should bear.
 */
#pragma once

#include "base/bytes.h"

enum {
	AUDIT_KEPT = 256,  /* decisions; the oldest goes first */
	AUDIT_LINES = 50,  /* of the log, by one sandbox */
	AUDIT_LINES_S = 5, /* in so much time; more are counted */
	AUDIT_TEXT_MAX = 2560 * AUDIT_KEPT,
};

enum sandbox_egress_kind {
	SANDBOX_EGRESS_NAME,
	SANDBOX_EGRESS_TCP,
	SANDBOX_EGRESS_TLS,
	SANDBOX_EGRESS_HTTP
};
enum audit_verdict { AUDIT_REFUSED, AUDIT_ALLOWED, AUDIT_FAILED }; /* failed: and nobody there */

struct audit_entry { /* borrowed */
	enum sandbox_egress_kind kind;
	enum audit_verdict verdict;
	const char *name; /* may be empty */
	uint32_t ip;      /* 0: none */
	uint16_t port;    /* 0: none */
	const char *why;
};

struct audit {                    /* all zero: none */
	struct audit_kept **kept; /* owned, a ring */
	size_t n, next;
	uint64_t since_ns; /* when counting `lines` began */
	unsigned int lines;
	uint64_t unsaid;
};

/* `id`: whose. Without memory it is not kept. */
void audit_add(struct audit *a, const char *id, const struct audit_entry *e);
/* Says how many lines were left out, and forgets everything. */
void audit_done(struct audit *a, const char *id);

/* [{"at":"2026-01-02T03:04:05.678Z","kind":"name"|"tcp"|"tls"|"http","verdict":"allowed"|"refused"
 * |"failed","name":"example.com","address":"1.2.3.4","port":443,"why":""},...], the oldest first;
 * name, address and port only where there is one. */
int audit_tell(const struct audit *a, struct buf *out, struct err *err) NODISCARD;
