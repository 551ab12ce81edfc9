/* warden_client.c - warden's words: its facts first, then what is asked in the installation's name.
 */
#include "node/links/warden_client.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>

#include "base/log.h"

enum { WARDEN_REPLIES_BATCH = 16 };

static_assert(offsetof(struct warden_request, verb) == offsetof(struct link_head, what) &&
		      offsetof(struct warden_reply, code) == offsetof(struct link_head, what),
	      "they begin as all do");
static_assert((int)FDMSG_FDS_MAX >= (int)WARDEN_FDS_MAX, "a message holds fewer than warden sends");

static struct warden_client *of_link(struct link *l)
{
	return CONTAINER_OF(l, struct warden_client, link);
}

const struct warden_reply *warden_reply_of(const struct link_reply *r)
{
	const void *at = r->head.ptr; /* aligned: a message has memory of its own */

	return at;
}

const struct warden_request *warden_request_of(const struct link_reply *r)
{
	const void *at = r->request.ptr; /* the same */

	return at;
}

/* In the name of the installation. */
static int ask(struct warden_client *k, struct link_call *c, const struct warden_request *rq,
	       struct link_ask what, link_done_fn *on_done, struct err *err)
{
	struct warden_request ours = *rq;

	snprintf(ours.installation, sizeof(ours.installation), "%s", k->installation ?: "");
	what.request = (struct bytes){ (const uint8_t *)&ours, sizeof(ours) };
	return link_ask(&k->link, c, &what, on_done, err);
}

static void on_facts(struct link_call *c, const struct link_reply *r)
{
	struct warden_client *k = CONTAINER_OF(c, struct warden_client, first);
	const struct warden_reply *reply = warden_reply_of(r);

	if (r->err) {
		log_warn("warden: %s", r->err->msg);
		link_hang_up(&k->link);
		return;
	}
	k->facts_number += memcmp(&k->facts, &reply->facts, sizeof(k->facts)) != 0;
	k->facts = reply->facts;
	log_info("warden has %s, %s", k->facts.accel, k->facts.vmm_version);
	link_up(&k->link);
}

static void on_hello(struct link *l)
{
	struct warden_client *k = of_link(l);
	const struct warden_request rq = { .verb = WARDEN_FACTS, .sizes = k->sizes };
	const struct link_ask first = { .answer_ms = WARDEN_CALL_MS,
					.busy_ms = WARDEN_BUSY_MS,
					.first = true };
	struct err err;

	if (ask(k, &k->first, &rq, first, on_facts, &err) < 0)
		link_hang_up(l);
}

static void on_up(struct link *l)
{
	of_link(l)->ops->on_up(of_link(l));
}

static void on_down(struct link *l)
{
	of_link(l)->ops->on_down(of_link(l));
}

void warden_client_open(struct warden_client *k, struct loop *l, const char *path,
			const struct warden_sizes *sizes, const struct warden_client_ops *ops)
{
	static const struct link_words words = {
		.name = "warden",
		.own_name = "node",
		.min = WARDEN_VERSION_MIN,
		.max = WARDEN_VERSION_MAX,
		.request_max = sizeof(struct warden_request),
		.reply_min = sizeof(struct warden_reply),
		.reply_max = sizeof(struct warden_reply),
		.msg = offsetof(struct warden_reply, msg),
		.msg_size = sizeof(((struct warden_reply *)0)->msg),
		.sys = offsetof(struct warden_reply, sys),
		.calls_max = WARDEN_CALLS_MAX,
		.sent_max = WARDEN_SENT_MAX,
		.fds_max = WARDEN_FDS_MAX,
		.batch = WARDEN_REPLIES_BATCH,
	};
	static const struct link_ops link_ops = { .on_hello = on_hello,
						  .on_up = on_up,
						  .on_down = on_down };

	*k = (struct warden_client){ .ops = ops, .sizes = *sizes };
	link_open(&k->link, l, path, &words, &link_ops);
}

void warden_client_close(struct warden_client *k)
{
	link_close(&k->link);
}

int warden_once_fds(struct warden_client *k, struct link_call *c, const struct warden_asked *what,
		    link_done_fn *on_done, struct err *err)
{
	const struct link_ask once = { .fds = what->fds,
				       .n_fds = what->n_fds,
				       .deadline_ms = what->deadline_ms };

	return ask(k, c, what->request, once, on_done, err);
}

int warden_once(struct warden_client *k, struct link_call *c, const struct warden_request *rq,
		link_done_fn *on_done, struct err *err)
{
	const struct warden_asked what = { .request = rq, .deadline_ms = WARDEN_CALL_MS };

	return warden_once_fds(k, c, &what, on_done, err);
}

void warden_again(struct warden_client *k, struct link_call *c, const struct warden_request *rq,
		  uint64_t wait_ms, link_done_fn *on_done)
{
	const struct link_ask again = { .deadline_ms = wait_ms,
					.wait_ms = LINK_EVER,
					.answer_ms = WARDEN_CALL_MS,
					.busy_ms = WARDEN_BUSY_MS,
					.sends_max = UINT_MAX };
	struct err err;

	if (ask(k, c, rq, again, on_done, &err) == 0)
		return;
	/* there is no memory for a message; the next node goes on with what this one leaves */
	log_error("warden: %s", err.msg);
	abort();
}
