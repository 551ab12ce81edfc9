/* guest_cache.h - the sandboxes that have traffic: their sockets, and who uses them.
 *
 *	guest_join() -> guest_socket() -> now, or later by on_socket -> ... -> guest_leave()
 *
 * Whoever asks for a sandbox that is not known waits for one and the same question to node. What
 * node said is believed until it says otherwise (guest_cache_gone) or was out of reach meanwhile
 * (guest_cache_forget). A refusal is not remembered.
 *
 * A question for somebody who waits may resume the sandbox, and is asked with what he brought; a
 * question that only verifies, or that fetches sockets ahead, never does.
 */
#pragma once

#include "gateway/gateway.h"
#include "gateway/relay/guest_users.h"
#include "gateway/parse/ingress.h"
#include "http/client.h"

#define GUEST_ADDRESS "169.254.77.2" /* of every sandbox, in a network of its own */

enum {
	GUEST_SPARE_MAX = NODE_FDS_MAX,
	GUEST_AHEAD = 2,            /* sockets asked for before somebody wants them */
	GUEST_CALL_MS = 15 * 1000,  /* for node's answer; it may come back meanwhile */
	GUEST_WAKE_MS = 120 * 1000, /* the same, where it may have to resume the sandbox */
	GUEST_SWEEP_MS = 5 * 1000,
	GUEST_IDLE_MS = 60 * 1000,       /* without an exchange; then forgotten */
	GUEST_IDLE_MAX = 4096,           /* sandboxes without an exchange; the oldest goes first */
	GUEST_POOL_MAX = 256,            /* connections of one sandbox without an exchange */
	GUEST_POOL_MS = 15 * 1000,       /* how long one is kept; less than the agent does */
	GUEST_POOL_SERVICE_MS = 1000,    /* the same, of a service of the user's, */
	GUEST_POOL_LIFE_MS = 5 * 1000,   /* and how old such a one becomes */
	GUEST_AGENT_MS = 10 * 60 * 1000, /* for the agent to begin its answer, or to read on */
	GUEST_BUCKETS = 4096,
	GUEST_TOKEN_MAX = 256, /* nothing longer is right */
	GUEST_USERS_MAX = 5000,
};

struct guest_pooled {
	struct http_client *client;
	uint64_t since_ms; /* when it was dialled */
	uint64_t until_ms;
	uint16_t port;
};

struct guest { /* one sandbox */
	struct guest_cache *cache;
	struct guest *next, **prev; /* of the same bucket */
	struct guest *newer, *older;
	bool idle; /* in the list of idle ones, since: */
	uint64_t idle_ms;
	char id[NODE_ID_MAX + 1];
	bool known; /* `info` is what node said, and nothing was missed since */
	bool ever;  /* it was so once: there may be traffic of info.generation */
	struct node_sandbox info;
	struct ingress ingress; /* of the same generation */
	int spare[GUEST_SPARE_MAX];
	size_t n_spare;
	struct guest_pooled *pool;
	size_t n_pool, room_pool;
	struct timer pool_due; /* runs if there are any */
	struct guest_users waiting, busy;
	size_t n_users; /* in both */
	struct link_call call;
	bool asked; /* call is under way, */
	bool wakes; /* and is for somebody who waits */
	bool asked_to_agent;
	char asked_token[GUEST_TOKEN_MAX + 1];
	struct timer failed;
	struct err why;    /* for `failed` */
	unsigned int hold; /* not freed while its users are being told */
};

struct guest_cache {
	struct gateway *gateway;
	struct guest *buckets[GUEST_BUCKETS];
	struct guest *newest, *oldest; /* idle ones */
	size_t n_idle, n_guests;
	size_t n_held; /* descriptors that wait for somebody: spare sockets, pooled connections */
	uint64_t seed;
	struct timer sweep;
	size_t users_max;    /* of one sandbox, but for those of its agent */
	const char *address; /* these five are as in the constants, but for tests */
	uint16_t agent_port;
	size_t held_max;
	uint64_t idle_ms;
	uint64_t agent_ms;
};

int guest_cache_open(struct gateway *g, struct err *err) NODISCARD; /* sets g->guests */
void guest_cache_close(struct guest_cache *c); /* ends every relayed stream; NULL is fine */

/* As node's link tells. */
void guest_cache_gone(struct guest_cache *c, const char *id, uint32_t generation);
void guest_cache_forget(struct guest_cache *c); /* events were missed: verify before use again */

int guest_join(struct guest_cache *c, const char *id, struct guest_user *u,
	       const struct guest_user_ops *ops, struct err *err) NODISCARD;
void guest_leave(struct guest_user *u); /* fine when not joined */

/* True: *ret_fd is the caller's. False: on_socket will come. */
bool guest_socket(struct guest_user *u, int *ret_fd) NODISCARD;

/* A socket of this sandbox reached nobody: ask node before the next one is used. */
void guest_doubt(struct guest_user *u);

/* Room for `n` more descriptors, at the cost of the sandboxes that were idle for longest. */
bool guest_cache_room(struct guest_cache *c, size_t n);
