/* relay_node.h - for fuzz_relay.c: a node in the hand of the input, in place of
 * gateway/node_link.c. It answers well, not at all, or with what no node would say.
 */
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include "fuzz/must.h"
#include "gateway/relay/relay.h"
#include "gateway/relay/relay_refuse.h"

struct node_link {
	struct link link; /* of which nothing is used */
	struct link_call *calls;
	struct timer answer;
	unsigned int mood;
	uint32_t generation, flags;
	const char *text;
};

enum { MOOD_BARE = 9, MOOD_FILES, MOOD_OTHER, MOOD_ENDING, MOOD_SILENT, MOOD_FULL };

static inline void unlink_call(struct link_call *c)
{
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->link = NULL;
}

void link_cancel(struct link_call *c)
{
	if (c->link)
		unlink_call(c);
}

static inline bool refuse_call(struct link_call *c, const struct node_reply *r, unsigned int mood)
{
	static const enum err_code codes[] = { ERR_NONE,   ERR_NOT_FOUND, ERR_UNAVAILABLE,
					       ERR_EXISTS, ERR_EXHAUSTED, ERR_MISMATCH,
					       ERR_DENIED, ERR_NO_SPACE,  ERR_TIMEOUT };
	struct err err;

	if (mood == 0 || mood >= COUNT(codes))
		return false;
	err_set(&err, codes[mood], 0, "no");
	c->on_done(c, &(struct link_reply){
			      .head = { mood & 1 ? (const uint8_t *)r : NULL, sizeof(*r) },
			      .err = &err });
	return true;
}

static inline void describe(const struct node_link *n, struct link_call *c,
			    struct node_sandbox *ret)
{
	if (c->len == 0) { /* who signed? */
		(void)snprintf(ret->id, sizeof(ret->id), "abc");
		(void)snprintf(ret->access_token, sizeof(ret->access_token), "tok");
	} else {
		memcpy(ret->id, CONTAINER_OF(c, struct guest, call)->id, sizeof(ret->id));
	}
	if (n->mood == MOOD_OTHER)
		ret->id[0] ^= 1;
	ret->generation = n->generation;
	ret->state = n->mood == MOOD_ENDING ? NODE_ENDING : NODE_RUNNING;
	ret->flags = n->flags;
	if (n->flags & (NODE_PRIVATE | NODE_INGRESS))
		(void)snprintf(ret->traffic_token, sizeof(ret->traffic_token), "sesame");
}

static inline void answer_call(struct node_link *n, struct link_call *c)
{
	struct node_reply r = { .tag = c->tag };
	size_t count = n->mood == MOOD_BARE ? 0 : c->len;
	int fds[NODE_FDS_MAX];

	unlink_call(c);
	if (refuse_call(c, &r, n->mood))
		return;
	for (size_t i = 0; i < count; i++)
		fds[i] = n->mood == MOOD_FILES
				 ? open("/dev/null", O_RDWR | O_CLOEXEC)
				 : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	describe(n, c, &r.sandbox);
	c->on_done(c, &(struct link_reply){ .head = { (const uint8_t *)&r, sizeof(r) },
					    .after = bytes_str(n->text ? n->text : ""),
					    .fds = fds,
					    .n_fds = count });
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static inline void on_answer(struct timer *t)
{
	struct node_link *n = CONTAINER_OF(t, struct node_link, answer);

	while (n->calls && n->mood != MOOD_SILENT)
		answer_call(n, n->calls);
}

int node_link_call(struct node_link *n, struct link_call *c, const struct node_request *rq,
		   struct bytes text, uint64_t deadline_ms, link_done_fn *on_done, struct err *err)
{
	MUST(!c->link && deadline_ms > 0 && text.len <= NODE_MESSAGE_MAX);
	if (n->mood == MOOD_FULL)
		return err_set(err, ERR_EXHAUSTED, 0, "full");
	*c = (struct link_call){
		.on_done = on_done, .link = &n->link, .tag = 7, .prev = &n->calls
	};
	c->len = rq->verb == NODE_SIGNED ? 0 : rq->count;
	c->next = n->calls;
	if (c->next)
		c->next->prev = &c->next;
	n->calls = c;
	timer_start(&n->answer, 0);
	return 0;
}
