/* gateway_door.h - where gateways ask node. Any number of gateways, any number of requests each. */
#pragma once

#include "base/bytes.h"
#include "net/loop.h"
#include "node/protocol.h"

enum {
	DOOR_GATEWAYS_MAX = 64,
	DOOR_ASKED_MAX =
		4096, /* requests of one gateway without an answer; more wait in its queue */
};

struct gateway_door;
struct door_asked; /* one request; ends by door_answer() */

/* Of one request: who wants to know what becomes of it beside whoever answers it. */
struct door_watch;
struct door_watch_ops {
	void (*on_left)(struct door_watch *w); /* its gateway has gone */
	/* Once, the last call; r and after are borrowed. `told`: a gateway was there to hear it. */
	void (*on_answered)(struct door_watch *w, const struct node_reply *r, struct bytes after,
			    bool told);
};
struct door_watch { /* embedded by the owner */
	const struct door_watch_ops *ops;
};

struct door_user;
struct door_user_ops {
	/* A well-formed request; rq and text (JSON, not yet parsed) are borrowed for the call.
	 * Answer at once or later, exactly once, also when the gateway has gone meanwhile. */
	void (*on_request)(struct door_user *u, struct door_asked *a, const struct node_request *rq,
			   struct bytes text);
};
struct door_user { /* embedded by the owner */
	const struct door_user_ops *ops;
};

/* Listens on `path` (mode 0660, group gid). Only root and the user `uid` may connect. */
int door_open(struct loop *l, const char *path, uid_t uid, gid_t gid, struct door_user *u,
	      struct gateway_door **ret, struct err *err) NODISCARD;
/* Unanswered requests are forgotten: none may be answered after. NULL is fine. */
void door_close(struct gateway_door *d);

/* What is done about a request of one verb. */
struct node;
typedef void verb_fn(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text);

/* Tag and text_len are filled in. Takes the descriptors. `after` follows the struct: the text, or
 * entries. A gateway that does not read is dropped after a bounded queue. */
void door_answer(struct door_asked *a, const struct node_reply *r, struct bytes after,
		 const int *fds, size_t n_fds);
void door_refuse(struct door_asked *a, const struct err *err);

/* It lives until the answer, or until door_close(), after which nothing is called. */
void door_set_watch(struct door_asked *a, struct door_watch *w);
bool door_is_here(const struct door_asked *a); /* its gateway is */
/* Nobody wants the answer any more, but it is still to be given. */
void door_give_up(struct door_asked *a);
bool door_wanted(const struct door_asked *a);

/* To every gateway. */
void door_tell_gone(struct gateway_door *d, const char *id, uint32_t generation);
