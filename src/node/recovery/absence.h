/* absence.h - sandboxes that should have a VM, and warden's list does not show one.
 *
 * A few of them have lost it. Many at once are more likely a warden that looks at the wrong folder:
 * beyond ABSENT_AT_ONCE_MAX they wait for a second look, and are lost if it does not find them
 * either. More than a tenth of all wait for an operator's word, and so does one whose QEMU still
 * talks to node. That the host was booted since explains any number.
 *
 * While they wait they are NODE_ABSENT: they are listed, nothing is asked of their VMs, their time
 * goes on. One that the list shows again goes on as if nothing had been.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/door/gateway_door.h"
#include "wire/json.h"

enum {
	ABSENT_AT_ONCE_MAX = 8,
	ABSENT_SHARE = 10, /* of so many one */
	ABSENT_AGAIN_MS = 60 * 1000,
};

struct absent {            /* part of a sandbox */
	uint64_t since_ms; /* 0: it is not missed */
	bool kept;         /* until it is seen, or an operator says that it is lost */
	bool other_boot;   /* it was begun before the host was booted */
	bool keeps_disk;   /* it ends because of that: its disk stays for a day, lost_disks.h */
	bool seen_files;   /* and what there is of it is known: it may have been saved */
};

/* What is to become of one that is missed at the look of `now_ms`, of `n_absent` among `n_all`.
 * `lives`: its QEMU talks to node. */
enum absent_end { ABSENT_WAITS, ABSENT_KEPT, ABSENT_LOST };
enum absent_end absent_end_of(const struct absent *a, bool lives, uint64_t now_ms, size_t n_absent,
			      size_t n_all);

struct absence { /* part of node */
	size_t n, n_kept;
};

struct sandbox;

void absence_judge(struct node *n);   /* a look at all of warden's list is complete */
void absence_over(struct sandbox *s); /* it was seen */
int absence_check(const struct sandbox *s, struct err *err) NODISCARD; /* -1: it is absent */
int absence_describe(const struct node *n, json_t *status) NODISCARD;
/* NODE_CONFIRM_LOST */
verb_fn absence_confirm;
