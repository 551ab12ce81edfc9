/* reply_queue.c - a queue of datagrams with their descriptors. */
/* #syscalls: close */
#include "node/door/reply_queue.h"

#include <assert.h>
#include <errno.h>

#include "base/fdmsg.h"

struct letter {
	struct letter *next;
	struct node_reply reply;
	int fds[NODE_FDS_MAX];
	size_t n_fds;
	size_t len; /* of after */
	uint8_t after[];
};

static void close_fds(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

static size_t weight(const struct letter *l)
{
	return sizeof(*l) + l->len;
}

static struct node_reply without_fds(const struct node_reply *r)
{
	struct node_reply poor = { .tag = r->tag, .code = ERR_EXHAUSTED };

	snprintf(poor.msg, sizeof(poor.msg), "too many descriptors are on their way");
	return poor;
}

static int post(int sock, const struct node_reply *r, struct bytes after, const int *fds,
		size_t n_fds, struct err *err)
{
	struct bytes head = { (const uint8_t *)r, sizeof(*r) };
	struct node_reply poor;

	if (fdmsg_send_pair(sock, head, after, fds, n_fds, err) == 0)
		return 0;
	if (n_fds == 0 || err->sys != ETOOMANYREFS)
		return -1;
	poor = without_fds(r);
	return fdmsg_send(sock, &poor, sizeof(poor), NULL, 0, err);
}

static bool is_full_now(const struct err *err)
{
	return err->sys == EAGAIN || err->sys == EINTR;
}

/* Takes the descriptors on success. */
static int keep(struct reply_queue *b, const struct node_reply *r, struct bytes after,
		const int *fds, size_t n_fds, struct err *err)
{
	struct letter *l;

	if (b->bytes + sizeof(*l) + after.len > REPLY_QUEUE_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%zu bytes wait unread", b->bytes);
	l = calloc(1, sizeof(*l) + after.len);
	if (!l)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "keep a reply");
	l->reply = *r;
	l->n_fds = n_fds;
	l->len = after.len;
	if (n_fds > 0)
		memcpy(l->fds, fds, n_fds * sizeof(int));
	if (after.len > 0)
		memcpy(l->after, after.ptr, after.len);
	if (b->last)
		b->last->next = l;
	else
		b->first = l;
	b->last = l;
	b->bytes += weight(l);
	b->n_fds += n_fds;
	return 0;
}

int reply_queue_send(struct reply_queue *b, int sock, const struct node_reply *reply,
		     struct bytes after, const int *fds, size_t n_fds, struct err *err)
{
	struct node_reply r = *reply;

	assert(n_fds <= NODE_FDS_MAX && after.len <= NODE_MESSAGE_MAX - sizeof(r));
	r.text_len = (uint32_t)after.len;
	if (!b->first) {
		if (post(sock, &r, after, fds, n_fds, err) == 0) {
			close_fds(fds, n_fds);
			return 0;
		}
		if (!is_full_now(err)) {
			close_fds(fds, n_fds);
			return -1;
		}
	}
	if (b->n_fds + n_fds > REPLY_QUEUE_FDS_MAX) {
		close_fds(fds, n_fds);
		r = without_fds(&r);
		return keep(b, &r, (struct bytes){ 0 }, NULL, 0, err);
	}
	if (keep(b, &r, after, fds, n_fds, err) < 0) {
		close_fds(fds, n_fds);
		return -1;
	}
	return 0;
}

static void drop_first(struct reply_queue *b)
{
	struct letter *l = b->first;

	b->first = l->next;
	if (!b->first)
		b->last = NULL;
	b->bytes -= weight(l);
	b->n_fds -= l->n_fds;
	close_fds(l->fds, l->n_fds);
	free(l);
}

int reply_queue_flush(struct reply_queue *b, int sock, struct err *err)
{
	while (b->first) {
		const struct letter *l = b->first;
		struct bytes after = { l->after, l->len };

		if (post(sock, &l->reply, after, l->fds, l->n_fds, err) < 0)
			return is_full_now(err) ? 0 : -1;
		drop_first(b);
	}
	return 0;
}

void reply_queue_done(struct reply_queue *b)
{
	while (b->first)
		drop_first(b);
}
