/* warden_client.h - warden, as long as it takes: a link that comes back by itself.
 *
 * VMs live on while warden is gone. What may be asked twice without harm is asked again when it is
 * back; what may not fails with ERR_UNAVAILABLE, and its owner finds out what became of it.
 */
#pragma once

#include "net/link.h"
#include "warden/protocol.h"

enum {
	WARDEN_BUSY_MS = 20,        /* it cleans up after its predecessor: asked again */
	WARDEN_CALL_MS = 60 * 1000, /* longer than any of its jobs but those of templates */
	WARDEN_TEMPLATE_MS = 16 * 60 * 1000,
	WARDEN_CALLS_MAX = 4096, /* requests without a reply yet, */
	WARDEN_SENT_MAX = 1024,  /* and of these with warden */
};

struct warden_client;
struct warden_client_ops {
	void (*on_up)(struct warden_client *k);   /* it answers; facts are those of now */
	void (*on_down)(struct warden_client *k); /* what it had not bound to a VM is lost */
};

struct warden_client {
	struct link link;
	const struct warden_client_ops *ops;
	const char *installation;  /* goes with all that is asked; NULL: none */
	struct warden_sizes sizes; /* whose facts are wanted */
	struct link_call first;
	struct warden_facts facts;
	uint64_t facts_number; /* another one when they have changed */
};

void warden_client_open(struct warden_client *k, struct loop *l, const char *path,
			const struct warden_sizes *sizes, const struct warden_client_ops *ops);
void warden_client_close(struct warden_client *k); /* as link_close() */

/* NULL: none came. */
const struct warden_reply *warden_reply_of(const struct link_reply *r);
const struct warden_request *warden_request_of(const struct link_reply *r); /* what was asked */

struct warden_asked {
	const struct warden_request *request;
	const int *fds; /* taken in any case */
	size_t n_fds;
	uint64_t deadline_ms; /* then ERR_TIMEOUT; warden may still do what was asked */
};

/* Asked once. Fails when warden is not up. */
int warden_once_fds(struct warden_client *k, struct link_call *c, const struct warden_asked *what,
		    link_done_fn *on_done, struct err *err) NODISCARD;
/* The same without descriptors, within WARDEN_CALL_MS. */
int warden_once(struct warden_client *k, struct link_call *c, const struct warden_request *rq,
		link_done_fn *on_done, struct err *err) NODISCARD;

/* Asked until warden answered, at most wait_ms (0: however long). */
void warden_again(struct warden_client *k, struct link_call *c, const struct warden_request *rq,
		  uint64_t wait_ms, link_done_fn *on_done);
