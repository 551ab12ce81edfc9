/* sandbox_egress.h - all that one sandbox has here: its rules, what it was told, its connections,
 * counts.
 *
 * Without rules nobody gets out: a connection is reset, a name does not exist.
 */
#pragma once

#include "egress/audit.h"
#include "egress/house.h"
#include "egress/known_names.h"
#include "egress/protocol.h"
#include "net/share.h"

enum {
	SANDBOX_EGRESS_NAMES_MAX = 64, /* its questions under way; more are not heard */
	SANDBOX_EGRESS_PAGES_PER_S =
		20, /* refusals over TLS that it sees as pages; others: a reset */
};

struct front;
struct hand_over;
struct name_asked;

struct sandbox_egress {
	const struct house *house; /* borrowed */
	char id[EGRESS_ID_MAX + 1];
	bool ruled;
	struct policy policy;
	struct known_names known;
	struct audit audit;
	struct hand_over *injector; /* owned; NULL: none */
	struct front *fronts;
	size_t n_fronts, n_handed;
	struct name_asked *asked;
	size_t n_asked;
	struct asker asker; /* of names, those of connections too */
	struct share share;
	uint64_t pages_since_ms; /* when counting `n_pages` began */
	unsigned int n_pages;
	struct egress_counts counts;
};

void sandbox_egress_open(struct sandbox_egress *o, const struct house *house);
/* New rules hold at once: connections they do not allow any more are cut. A text that cannot be
 * read leaves it without rules. */
int sandbox_egress_rule(struct sandbox_egress *o, struct bytes text, struct err *err) NODISCARD;
/* Whom connections to hosts with a rule are handed to from now on; those that were handed to the
 * one before are over. Takes fd, also on failure; -1: nobody. */
int sandbox_egress_injector(struct sandbox_egress *o, int fd, struct err *err) NODISCARD;
void sandbox_egress_forget(
	struct sandbox_egress *o); /* another sandbox follows: nothing of this one is left */

/* A decision, kept and logged. */
void sandbox_egress_audit(struct sandbox_egress *o, const struct audit_entry *e);
