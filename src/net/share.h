/* share.h - what the connections of one sandbox may take together: so many bytes in a second, and
 * of a turn of the loop no more than any other sandbox, however many connections it has.
 *
 * Bytes are counted after they moved. A connection that took more than there was waits in line with
 * its sandbox's others; what was taken too much is paid back before anybody goes on.
 */
#pragma once

#include "net/timer.h"

enum {
	SHARE_OF_TURN = LOOP_READ_MAX, /* bytes for each turn of the loop */
	SHARE_LEAST = 1024,            /* of them for each move, of however few bytes: it is work */
	SHARE_BURST_MS = 100,          /* of its rate that may be saved up */
	SHARE_GO_MAX = 8,              /* let go on at a time; most have nothing to move */
};

struct share_taker { /* embedded in a connection; all zero: not in line */
	void (*on_go)(struct share_taker *t);
	struct share *share;
	struct share_taker *next, **prev;
};

struct share {
	struct loop *loop;
	uint64_t bytes_per_s; /* 0: no limit */
	int64_t saved;        /* bytes of that rate; below 0: owed */
	uint64_t at_ms;       /* when `saved` was counted */
	int64_t of_turn;
	uint64_t turn;
	struct share_taker *first, **last;
	struct timer again; /* runs while somebody is in line */
};

void share_open(struct share *s, struct loop *l, uint64_t bytes_per_s);
void share_close(struct share *s); /* nobody is in line any more */

/* `n` bytes were moved. False: no more now, t->on_go comes. */
bool share_take(struct share *s, struct share_taker *t, size_t n);
void share_leave(struct share_taker *t); /* fine when it is not in line */
