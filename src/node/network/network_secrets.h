/* network_secrets.h - sealed values that rules of headers name: another one, or none any more. */
#pragma once

#include "node/door/gateway_door.h"
#include "wire/json.h"

enum {
	SECRETS_LOOK_MS = 50,        /* one is on its way to another state: how often to look */
	SECRETS_WAIT_MS = 60 * 1000, /* and for how long */
};

struct sandbox;
struct secret_change {
	char team[NODE_ID_MAX + 1];
	const char *name;
	json_t *sealed; /* NULL: it is gone */
};

/* Of a create, a fork or a change of rules that is under way; may be NULL. False: it needed none.
 */
bool secret_change_text(const struct secret_change *c, char **text);

/* Of one that has other rules now: secrets that do not exist are named in its log. Whoever wrote
 * the rules may have meant another name, or makes them later. */
void secrets_note_missing(struct sandbox *s);

/* NODE_SECRET: answered when every sandbox of the team that uses it has it in its row, and those
 * that run have a worker that knows it. Snapshots have no rules: who is made of one has those of
 * its create, and a fork those of its source. */
verb_fn secrets_ask;
/* NODE_SEAL_KEY: the injector's, or that of the images daemon */
verb_fn secrets_key_ask;
void secrets_close(struct node *n);
