/* signals.h - a signal as a callback on the loop: SIGTERM, SIGCHLD, SIGHUP.
 *
 * After signal_close() no call comes and the owner may be freed at once, also from inside
 * on_signal. When the last one for a signal closes, its default action is back.
 */
#pragma once

#include "net/loop.h"

struct signal_handle;
struct signal_watch;
typedef void signal_fn(struct signal_watch *w);
struct signal_watch { /* all zero: closed */
	struct signal_handle *handle;
	signal_fn *on_signal;
};

/* Signals of one kind that arrive together are one call: reap children until none is left. */
int signal_open(struct signal_watch *w, struct loop *l, int signo, signal_fn *on_signal,
		struct err *err) NODISCARD;
void signal_close(struct signal_watch *w); /* a second time does nothing */

/* For a daemon that has nothing to finish: SIGTERM and SIGINT stop its loop. */
struct signal_end { /* all zero: closed */
	struct loop *loop;
	struct signal_watch term, interrupt;
};
int signal_end_open(struct signal_end *e, struct loop *l, struct err *err) NODISCARD;
void signal_end_close(struct signal_end *e); /* a second time does nothing */
