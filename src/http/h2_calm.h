/* h2_calm.h - how much of nothing a client of HTTP/2 may say, and what it may make us say.
 *
 * A PING, a SETTINGS, an empty DATA and their like cost the client nine bytes and us an answer, or
 * at least a look. So each of them takes from a purse that fills with time, and with work that
 * somebody asked for: requests, and bytes that moved. So does every reset that the client provoked:
 * nghttp2 counts the resets that it receives, not those that it has to send.
 *
 * Also here: where one frame ends and the next begins, for a turn of the loop is so many frames.
 */
#pragma once

#include "base/bytes.h"

enum {
	H2_PREFACE_LEN = 24,
	H2_FRAME_HEAD = 9,
	/* Frames of no use: a burst, and so many each second. */
	H2_CALM_MAX = 1000,
	H2_CALM_PER_S = 100,
	H2_CALM_REQUEST = 4,  /* given back for a request that was served */
	H2_CALM_BYTES = 1024, /* and one for so many bytes of a body, either way */
	H2_CALM_PIECE = 2,    /* and so many for a piece of ours that left whole */
	H2_CALM_COST = 8,     /* of HTTP_TURN_CHUNKS: so that many at once do not fill a turn */
	/* Resets that we had to send. */
	H2_PROVOKED_MAX = 100,
	H2_PROVOKED_PER_S = 10,
};

struct h2_frame {
	uint32_t len; /* of the payload */
	uint8_t type, flags;
	uint32_t stream;
};

struct h2_cut {                      /* all zero: before the preface */
	size_t preface;              /* bytes of it that were seen */
	uint8_t head[H2_FRAME_HEAD]; /* of a frame */
	size_t have;                 /* of the head */
	uint32_t left;               /* of the payload */
};

/* Takes a slice off *in that ends where the preface or a frame ends, or where *in does. True: the
 * head of a frame became whole with it. */
bool h2_cut_next(struct h2_cut *k, struct bytes *in, struct bytes *ret, struct h2_frame *ret_frame);
bool h2_cut_at_edge(const struct h2_cut *k); /* between two frames */

struct h2_purse {
	int64_t left, max, per_s;
	uint64_t at_ms;
};

struct h2_calm {
	struct h2_purse frames, resets;
	size_t bytes; /* that moved, and were not counted yet */
};

void h2_calm_init(struct h2_calm *c, uint64_t now_ms);

/* Does it neither begin a request nor carry a body? */
bool h2_calm_is_idle(const struct h2_frame *f);
/* False: enough is enough. */
bool h2_calm_frame(struct h2_calm *c, const struct h2_frame *f, uint64_t now_ms);
bool h2_calm_nothing(struct h2_calm *c, uint64_t now_ms); /* a frame that turned out to be empty */
bool h2_calm_reset(struct h2_calm *c, uint64_t now_ms);

void h2_calm_earn(struct h2_calm *c, int64_t n); /* see H2_CALM_REQUEST and below */
void h2_calm_moved(struct h2_calm *c, size_t bytes);
