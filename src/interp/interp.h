/* interp.h - hotcell-interp: the server of part of a sandbox, on port 49999. */
#pragma once

#include "http/server.h"
#include "interp/context.h"
#include "net/listen.h"
#include "net/signals.h"

enum {
	INTERP_PORT = 49999,
	INTERP_CONNECTIONS_MAX = 512,
	INTERP_BODY_MAX = 32 * 1024 * 1024, /* of a request: code, mostly */
	INTERP_EAGER_MAX = 8,
};

struct interp_options {
	const char *listen; /* an address */
	uint16_t port;      /* 0: any; then `ready N` is printed */
	const char *run, *cwd, *programs;
	const char *agent;                   /* HOST:PORT; NULL: none */
	const char *partings;                /* a file, see partings.h */
	const char *eager[INTERP_EAGER_MAX]; /* languages that have a kernel from the start */
	size_t n_eager;
	struct kernel_dirs dirs;
};

struct interp {
	const struct interp_options *options;
	struct loop *loop;
	struct http_server http;
	struct listener door;
	struct contexts contexts;
	struct addr agent;
	struct signal_end end;
	struct signal_watch child;
	bool well; /* every kernel that is there from the start has been ready */
};

/* Serves until SIGTERM. `env` is what kernels get. Returns an exit status. */
int interp_serve(const struct interp_options *o, const char *const *env);

void interp_route(struct http_server *sv, struct http_request *rq); /* in routes.c */
