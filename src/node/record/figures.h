/* figures.h - what node counts for an operator's monitoring, and tells: NODE_FIGURES.
 *
 * Everything is counted when it happens. To tell it costs the same with ten sandboxes as with
 * thousands.
 */
#pragma once

#include "base/latency.h"
#include "net/process_use.h"
#include "node/door/gateway_door.h"
#include "node/protocol.h"

enum {
	FIGURES_EGRESS_MS = 2000, /* how long egress is waited for; then its part is left out */
	FIGURES_ASKS_MAX = 8,     /* at once; more are answered without egress */
	FIGURES_TEXT_MAX = 96 * 1024,
};

enum figures_path { PATH_POOL, PATH_TEMPLATE, PATH_SNAPSHOT, PATH_FORK, PATH_BOOT, PATHS };
enum figures_build { BUILD_WAS_READY, BUILD_WAS_FAILED, BUILD_WAS_CANCELLED, BUILD_ENDS };

struct create;
struct err;
struct sandbox;
struct figures_ask;

struct figures {
	struct latency create[PATHS], pause, resume, snapshot, fork;
	uint64_t refused[ERR_CODES], limited; /* creates; `limited`: by what its key or team has */
	uint64_t pauses_failed, resumes_failed, snapshots_failed;
	uint64_t ended[NODE_REASONS], builds[BUILD_ENDS];
	struct process_use process;
	struct figures_ask *asks; /* under way; so many: */
	size_t n_asks;
};

/* A create ended: `s` is its sandbox; or `why` not. Those of builds are not counted. */
void figures_created(struct node *n, const struct create *c, const struct sandbox *s);
void figures_refused(struct node *n, const struct create *c, const struct err *why);
/* It took so long since then, by clock_mono_ns(). */
void figures_took(struct latency *l, uint64_t since_ns);
void figures_close(struct node *n); /* those who ask are not answered */

/* NODE_FIGURES */
verb_fn figures_ask;
void figures_print(void); /* its table: exposition_print() */
