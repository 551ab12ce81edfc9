/* warden_client.h - warden, as long as it takes: a link that comes back by itself.
 *
 * VMs live on while warden is gone. What may be asked twice without harm is asked again when it is
 * back; what may not fails with ERR_UNAVAILABLE, and its owner finds out what became of it.
 */
#pragma once

#include "node/links/warden_link.h"

enum {
	WARDEN_RETRY_MS = 100,      /* between two attempts to connect */
	WARDEN_BUSY_MS = 20,        /* it cleans up after its predecessor: asked again */
	WARDEN_CALL_MS = 60 * 1000, /* longer than any of its jobs but those of templates */
	WARDEN_TEMPLATE_MS = 16 * 60 * 1000,
};

struct warden_client;
struct warden_client_ops {
	void (*on_up)(struct warden_client *k);   /* it answers; facts are those of now */
	void (*on_down)(struct warden_client *k); /* what it had not bound to a VM is lost */
};

struct warden_ask { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop; as of struct warden_call. */
	void (*on_done)(struct warden_ask *a, const struct warden_reply *reply, int *fds,
			size_t n_fds, const struct err *err);
	struct warden_client *keep; /* NULL: not under way */
	struct warden_call call;
	struct warden_request request;
	struct timer late;
	struct warden_ask *next, **prev; /* among those who wait for warden */
};

struct warden_client {
	const struct warden_client_ops *ops;
	struct loop *loop;
	const char *path;
	const char *installation;  /* goes with all that is asked; NULL: none */
	struct warden_sizes sizes; /* whose facts are wanted */
	struct warden_link *link;  /* NULL: not connected */
	struct warden_link_user user;
	struct warden_call hello;
	struct timer retry;
	struct warden_facts facts;
	uint64_t facts_number; /* another one when they have changed */
	bool up, told;         /* `told`: of why it cannot be reached */
	uint64_t down_since_ms;
	struct warden_ask *waiting, **last;
};

void warden_client_open(struct warden_client *k, struct loop *l, const char *path,
			const struct warden_sizes *sizes, const struct warden_client_ops *ops);
void warden_client_close(struct warden_client *k);

/* As warden_link_call(). Fails when warden is not up. */
int warden_once_fds(struct warden_client *k, struct warden_call *c, const struct warden_request *rq,
		    const int *fds, size_t n_fds, uint64_t deadline_ms,
		    void (*on_done)(struct warden_call *c, const struct warden_reply *reply,
				    int *fds, size_t n_fds, const struct err *err),
		    struct err *err) NODISCARD;
/* The same without descriptors, within WARDEN_CALL_MS. */
int warden_once(struct warden_client *k, struct warden_call *c, const struct warden_request *rq,
		void (*on_done)(struct warden_call *c, const struct warden_reply *reply, int *fds,
				size_t n_fds, const struct err *err),
		struct err *err) NODISCARD;

/* Asked until warden answered, at most wait_ms (0: however long). */
void warden_again(struct warden_client *k, struct warden_ask *a, const struct warden_request *rq,
		  uint64_t wait_ms,
		  void (*on_done)(struct warden_ask *a, const struct warden_reply *reply, int *fds,
				  size_t n_fds, const struct err *err));
void warden_ask_cancel(struct warden_ask *a); /* fine when over */
