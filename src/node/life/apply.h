/* apply.h - a copier writes the saved pages into the memory of a VM that waits for its state. */
#pragma once

#include "node/links/warden_client.h"
#include "vm/copier_link.h"

enum { APPLY_MS = 120 * 1000 };

struct apply;
typedef void apply_done_fn(struct apply *a, const struct copier_reply *ret, const struct err *err);
struct apply { /* embedded by the owner; all zero: nothing under way */
	/* Once, from the loop. What the copier says is a claim, as it runs with the VM's rights. */
	apply_done_fn *on_done;
	struct link_call call;
	struct copier_link copier;
	bool started;     /* warden has answered */
	struct err ended; /* it is gone, before that */
};

struct apply_spec {
	const char *id; /* of the VM */
	int pages, memory;
	uint32_t
		base_crc; /* of the memory; 0: not known. ERR_BASE_LOST: the pages are of another */
};

/* Takes `pages` and `memory` in any case. Failure (-1): on_done will not come. */
int apply_start(struct apply *a, struct loop *l, struct warden_client *w,
		const struct apply_spec *spec, apply_done_fn *on_done, struct err *err) NODISCARD;
void apply_cancel(struct apply *a); /* fine when nothing is under way */
