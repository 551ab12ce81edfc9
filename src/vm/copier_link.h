/* copier_link.h - a conversation with a copier (copier/protocol.h): a question, its answer.
 *
 * The copier runs with the guest's rights and reads what the guest wrote: what it answers is a
 * claim like the guest's own. Its form is checked, its numbers must be possible, its words are
 * cleansed; nothing else is believed.
 */
#pragma once

#include "copier/protocol.h"
#include "net/timer.h"
#include "net/watch.h"

enum { COPIER_LINK_ASKED_MAX = 2 }; /* the second waits in its socket for the end of the first */

struct copier_link;
typedef void copier_link_answer_fn(struct copier_link *l, enum copier_verb asked,
				   const struct copier_reply *r, const struct err *err);
struct copier_link { /* embedded by the owner; all zero: closed */
	/* From the loop: the answer, or NULL and why: refused, late, of the wrong form, not asked
	 * for, or it ended. After a failure it says nothing more. */
	copier_link_answer_fn *on_answer;
	struct watch ready;
	struct timer deadline;
	uint64_t deadline_ms; /* of each answer, from the one before */
	int fd;               /* ours while on_answer is set */
	enum copier_verb asked[COPIER_LINK_ASKED_MAX];
	size_t n_asked;
};

/* Takes `fd` in any case. The copier may not be there yet: what it is asked waits for it. */
int copier_link_open(struct copier_link *l, struct loop *loop, int fd,
		     copier_link_answer_fn *on_answer, struct err *err) NODISCARD;
/* Answers come in order. `base_crc`: see struct copier_request. */
int copier_link_ask(struct copier_link *l, enum copier_verb verb, uint32_t base_crc,
		    uint64_t deadline_ms, struct err *err) NODISCARD;
/* The copier ends. No callback; fine when closed. */
void copier_link_close(struct copier_link *l);
