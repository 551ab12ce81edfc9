/* record.h - the one note warden keeps about a VM, written before anything else of it exists.
 *
 * It says what a later warden needs to adopt the VM or to remove all of it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "warden/protocol.h"

/* Members are only ever added at the end, and the version stays: an earlier warden reads what it
 * knows, and of an earlier one's record the rest is zero. Another version would be a record that
 * the other warden takes for none, and its VM would be removed. */
enum { RECORD_VERSION = 1 };

struct record {
	uint32_t version;
	uint32_t slot;
	uint32_t uid;
	uint32_t build; /* 1 while a template is being built */
	char id[WARDEN_ID_MAX + 1];
	char template_id[WARDEN_ID_MAX + 1];
	char installation[WARDEN_ID_MAX + 1]; /* of the client that started it; "": not known */
};
#define RECORD_FIRST_SIZE \
	offsetof(struct record, installation) /* the least that was ever written */

/* In the VM's folder. A record that is not whole counts as absent. */
int record_write(int folder, const struct record *r, struct err *err) NODISCARD;
int record_read(int folder, struct record *ret, struct err *err) NODISCARD;
