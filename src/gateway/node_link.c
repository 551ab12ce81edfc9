/* node_link.c - node's words: deadlines, tokens, and what is given up. */
/* #syscalls: memfd_create pwrite64 close */
#include "gateway/node_link.h"

#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory_file.h"
#include "base/random.h"
#include "gateway/node_reply.h"
#include "net/addr.h"

enum { LINK_KERNEL_ROOM = 4 * 1024 * 1024 }; /* wished for, in bytes; the kernel may give less */

static_assert(offsetof(struct node_request, verb) == offsetof(struct link_head, what) &&
		      offsetof(struct node_reply, code) == offsetof(struct link_head, what),
	      "they begin as all do");

struct node_link {
	struct link link;
	struct node_link_user *user;
	size_t n_give_ups;
};

static struct node_link *of_link(struct link *l)
{
	return CONTAINER_OF(l, struct node_link, link);
}

static bool is_once(const struct node_request *rq)
{
	return node_verb_needs(rq->verb) & NODE_DONE_ONCE;
}

/* What no datagram holds goes in a file in memory, and once: it is not sent again. */
static int put_aside(const struct node_request *rq, struct link_ask *what, int *fd, struct err *err)
{
	if (rq->verb != NODE_BUILD_START || what->text.len <= NODE_TEXT_MAX ||
	    what->text.len > NODE_FILE_TEXT_MAX)
		return 0;
	*fd = memory_file_make("node-request", what->text, err);
	if (*fd < 0)
		return -1;
	what->text = (struct bytes){ 0 };
	what->fds = fd;
	what->n_fds = 1;
	what->sends_max = 1;
	return 0;
}

static int ask(struct node_link *n, struct link_call *c, struct node_request *rq,
	       struct link_ask what, link_done_fn *on_done, struct err *err)
{
	int fd;

	what.sends_max = NODE_SENDS_MAX;
	if (put_aside(rq, &what, &fd, err) < 0)
		return -1;
	rq->deadline_ns = clock_boot_ns() + what.deadline_ms * NSEC_PER_MSEC;
	rq->text_len = (uint32_t)what.text.len;
	what.request = (struct bytes){ (const uint8_t *)rq, sizeof(*rq) };
	return link_ask(&n->link, c, &what, on_done, err);
}

static void on_given_up(struct link_call *c, const struct link_reply *r)
{
	(void)c;
	if (r->err)
		log_warn("node was not told that a request was given up: %s", r->err->msg);
	of_link(r->link)->n_give_ups--;
}

/* Node may have done it, and nobody hears of it. */
static void on_unanswered(struct link *l, struct bytes request)
{
	const struct link_ask what = { .deadline_ms = NODE_GIVE_UP_MS, .wait_ms = LINK_EVER };
	struct node_request rq = { .verb = NODE_GIVE_UP }, was;
	struct node_link *n = of_link(l);
	struct err err;

	memcpy(&was, request.ptr, sizeof(was));
	if (!is_once(&was))
		return;
	memcpy(rq.token, was.token, sizeof(rq.token));
	err_set(&err, ERR_EXHAUSTED, 0, "%zu were", n->n_give_ups);
	if (n->n_give_ups < NODE_GIVE_UPS_MAX && ask(n, NULL, &rq, what, on_given_up, &err) == 0)
		n->n_give_ups++;
	else
		log_warn("node is not told that a request was given up: %s", err.msg);
}

static void on_again(struct link_call *c)
{
	struct node_request rq;

	memcpy(&rq, c->message, sizeof(rq));
	if (is_once(&rq))
		rq.flags |= NODE_AGAIN;
	memcpy(c->message, &rq, sizeof(rq));
}

static void on_unasked(struct link *l, const struct link_reply *r)
{
	const struct node_reply *e = node_reply_of(r);
	struct node_link_user *u = of_link(l)->user;

	if (e->event == NODE_GONE)
		u->ops->on_gone(u, e->sandbox.id, e->sandbox.generation);
}

static bool reply_ok(struct bytes reply)
{
	const void *at = reply.ptr;

	return node_reply_ok(at, reply.len);
}

static void on_up(struct link *l)
{
	of_link(l)->user->ops->on_up(of_link(l)->user);
}

static void on_down(struct link *l)
{
	of_link(l)->user->ops->on_down(of_link(l)->user);
}

int node_link_call(struct node_link *n, struct link_call *c, const struct node_request *rq,
		   struct bytes text, uint64_t deadline_ms, link_done_fn *on_done, struct err *err)
{
	const struct link_ask what = { .text = text,
				       .deadline_ms = deadline_ms,
				       .wait_ms = NODE_LINK_WAIT_MS };
	struct node_request ours = *rq;

	assert(deadline_ms > 0);
	if (is_once(&ours))
		random_name(ours.token, NODE_TOKEN_LENGTH);
	return ask(n, c, &ours, what, on_done, err);
}

static void on_free(struct link *l)
{
	free(of_link(l));
}

int node_link_open(struct loop *l, const char *path, struct node_link_user *u,
		   struct node_link **ret, struct err *err)
{
	static const struct link_words words = {
		.name = "node",
		.own_name = "gateway",
		.min = NODE_VERSION_MIN,
		.max = NODE_VERSION_MAX,
		.request_max = sizeof(struct node_request) + NODE_TEXT_MAX,
		.reply_min = sizeof(struct node_reply),
		.reply_max = NODE_MESSAGE_MAX,
		.msg = offsetof(struct node_reply, msg),
		.msg_size = sizeof(((struct node_reply *)0)->msg),
		.calls_max = NODE_CALLS_MAX,
		.fds_max = NODE_FDS_MAX,
		.batch = NODE_REPLIES_BATCH,
		.room = LINK_KERNEL_ROOM,
	};
	static const struct link_ops ops = { .on_up = on_up,
					     .on_down = on_down,
					     .on_unasked = on_unasked,
					     .reply_ok = reply_ok,
					     .on_again = on_again,
					     .on_unanswered = on_unanswered,
					     .on_free = on_free };
	struct node_link *n;
	struct addr at;

	if (addr_unix(path, &at, err) < 0)
		return err_wrap(err, "socket of node");
	n = calloc(1, sizeof(*n));
	if (!n)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate the link to node");
	n->user = u;
	link_open(&n->link, l, path, &words, &ops);
	*ret = n;
	return 0;
}

const struct link *node_link_state(const struct node_link *n)
{
	return &n->link;
}

void node_link_close(struct node_link *n)
{
	if (n)
		link_close(&n->link);
}
