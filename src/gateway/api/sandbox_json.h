/* sandbox_json.h - a sandbox as E2B's clients expect it. Pure. NULL: out of memory. */
#pragma once

#include "node/protocol.h"
#include "wire/json.h"

#define SANDBOX_ENVD_VERSION "0.6.13"   /* what clients may expect of the agent */
#define SANDBOX_CLIENT_ID    "6532622b" /* once meant something; old clients want it */

/* Of create and connect. `domain` as sandbox_ask.h has it for the client. */
json_t *sandbox_json(const struct node_sandbox *s, const char *domain) NODISCARD;

/* Of list, and of get, which says more. `text` is what node remembered; NULL is fine. */
json_t *sandbox_listed_json(const struct node_sandbox *s, const json_t *text) NODISCARD;
json_t *sandbox_detail_json(const struct node_sandbox *s, const json_t *text,
			    const char *domain) NODISCARD;
/* Adds `reason` and `endedAt` of one that ended. */
int sandbox_add_end(json_t *o, uint32_t reason, uint64_t ended_ns) NODISCARD;
/* What an operator is told of any sandbox: its state, since when, and why. */
json_t *sandbox_why_json(const struct node_sandbox *s, const char *id) NODISCARD;
json_t *sandbox_tombstone_json(const struct node_tombstone *t) NODISCARD;

/* What node remembered, or NULL when it is nothing of use. */
json_t *sandbox_text(struct bytes text) NODISCARD;
