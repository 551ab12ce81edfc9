/* figures.h - what the gateway counts of requests, and the line that its log has of each.
 *
 * Everything is counted when it happens, in fixed memory. What a request is about is noted in it
 * (struct http_note), because whoever answers it may be gone when it is over.
 */
#pragma once

#include "net/process_use.h"
#include "http/server.h"
#include "wire/exposition.h"

enum figures_class {
	CLASS_UNNOTED, /* not counted */
	CLASS_SANDBOXES,
	CLASS_TEMPLATES,
	CLASS_SNAPSHOTS,
	CLASS_SECRETS,
	CLASS_TEAMS,
	CLASS_HEALTH,
	CLASS_ADMIN,
	CLASS_METRICS,
	CLASS_OTHER,   /* no such route, or refused before one was looked for */
	CLASS_TRAFFIC, /* into sandboxes; guests choose the codes */
	CLASSES,
};

enum {
	FIGURES_STATUS_MIN = 100,
	FIGURES_STATUSES = 500,
	FIGURES_LEFT = 499, /* the client left before it was answered: nginx's number */
	REQUEST_ID_LENGTH = 20,
};

struct figures {
	uint64_t answered[CLASSES][FIGURES_STATUSES];
	struct latency took[CLASSES];
	struct process_use process;
	bool logs; /* a line for each request to the API */
};

struct figures_now { /* what is not counted here */
	size_t calls, connections, connections_max, streams;
	bool node_up;
};

/* A request has come: it gets an id, which is never the client's. */
void figures_begin(struct http_request *rq, enum figures_class c);
/* Its route, of which both are literals. */
void figures_route(struct http_request *rq, const char *method, const char *path);
void figures_over(struct figures *f, struct http_request *rq, unsigned int status);

void figures_put(const struct figures *f, const struct figures_now *now, struct exposition *e);
void figures_print(void); /* the table: exposition_print() */
