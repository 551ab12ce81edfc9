/* run_keep.h - a sandbox is kept alive while somebody is at work in it: told every minute, it then
 * lives for five.
 */
#pragma once

#include "cli/run_session.h"

enum {
	RUN_KEEP_MS = 60 * 1000,
	RUN_KEEP_SOON_MS = 50, /* for a test */
	RUN_KEEP_S = 300,
};

struct run_keep { /* all zero: nothing is kept */
	struct run_session *s;
	struct timer timer;
	char target[RUN_ID_MAX + 32]; /* borrowed by `x` */
	struct client_exchange x;
	bool busy;
};

void run_keep_begin(struct run_keep *k, struct run_session *s);
void run_keep_end(struct run_keep *k);
