/* worker.h - opens the TLS of one sandbox's connections, for the hosts it has rules for.
 *
 * It holds that sandbox's header values and a branch of the installation's authority that is good
 * for those hosts alone. Where refusals are shown as pages it has a second branch, for any name and
 * for two days: with it connections are answered that go nowhere. Its one channel is egress's
 * (injector/protocol.h): connections come in, notes that they are over go out. When the channel
 * ends, so does the worker.
 */
#pragma once

#include "net/share.h"
#include "injector/protocol.h"
#include "injector/rules.h"
#include "injector/worker/leaves.h"
#include "injector/worker/rule.h"
#include "tls/tls_stream.h"

enum {
	WORKER_TEXT_MAX = 8 * 1024 * 1024, /* the values with what JSON adds to them */
	WORKER_CONNECTIONS_MAX = 512,
	WORKER_MEMORY_MAX = 512 * 1024 * 1024,
	WORKER_BATCH = 8,      /* connections taken per turn */
	WORKER_LATE_MAX = 512, /* notes kept for an egress that is busy */
	WORKER_TELL_MS = 1000, /* how often it is told what connections moved that go on */
	WORKER_PAGES_MS = (AUTHORITY_ANY_DAYS * 24 - 1) * 3600 * 1000, /* pages are shown */
};

struct worker_tools { /* of the process, borrowed */
	struct tls_context *client, *server;
};

struct worker;
struct opened;
struct worker_ops {
	/* The channel is gone, or broken: close the worker. From the loop. */
	void (*on_end)(struct worker *w);
};

struct worker {
	const struct worker_ops *ops;
	struct loop *loop;
	struct worker_tools tools;
	json_t *text; /* what the rules borrow from */
	struct rules rules;
	struct leaves leaves;    /* no branch: there are no rules */
	struct leaves pages;     /* no branch: refusals are not shown */
	uint64_t pages_until_ms; /* of the loop: then its branch is too old */
	struct worker_channel *channel;
	struct opened *all;
	size_t n;
	struct share share;
	struct timer telling;
};

/* Takes `channel`, also on failure. `text`: as rules_fill() makes it, with "cert" and
 * "key" if there are rules, "pagesCert" and "pagesKey" with "refusalPages". */
int worker_open(struct worker *w, struct loop *l, const struct worker_ops *ops,
		const struct worker_tools *tools, int channel, struct bytes text,
		struct err *err) NODISCARD;
void worker_close(struct worker *w); /* cuts all connections */

bool worker_has_pages(const struct worker *w);

/* For a connection that is over. */
void worker_over(struct worker *w, const struct injector_over *over);
/* For one that goes on. False: not now, egress is busy. */
bool worker_goes_on(struct worker *w, const struct injector_over *over);
