/* h2_past.h - streams that are over, and what may still come for them.
 *
 * nghttp2 forgets a stream with its end, and then takes whatever comes for it as late. Late may be
 * what comes for a stream that we reset. What comes for one that the client itself ended, or never
 * opened, is an error (RFC 9113, 5.1 and 5.1.1).
 */
#pragma once

#include "http/h2_calm.h"

enum { H2_PAST_MAX = 256 }; /* the last so many; more than twice those that are open at once */

struct h2_past {
	struct h2_over {
		uint32_t id;
		bool ours; /* we ended it before the client had */
	} over[H2_PAST_MAX];
	size_t next;
	uint32_t last; /* the highest that was opened */
};

void h2_past_opened(struct h2_past *p, uint32_t id);
void h2_past_over(struct h2_past *p, uint32_t id, bool ours);

/* The error of a connection on which this frame came, 0 if there is none. `open`: its stream is;
 * `payload` is as much of it as came with the head. */
uint32_t h2_past_check(const struct h2_past *p, const struct h2_frame *f, bool open,
		       struct bytes payload);
