/* fork.h - several copies of a running sandbox at once: one snapshot that nobody sees, and as many
 * creates from it. It goes with the last of them.
 */
#pragma once

#include "node/life/sandbox.h"

struct fork;
struct secret_change;

/* NODE_FORK */
verb_fn fork_ask;
void forks_close(struct node *n); /* at node's own end */

/* For network_secrets.c: of those whose creates are not there yet. */
void forks_change_secret(struct node *n, const struct secret_change *change);

/* For creates.c: who waits for it; the answer to one of its creates. */
struct door_asked *fork_asked(const struct fork *f);
void fork_answer(struct fork *f, size_t at, const struct node_reply *r);
