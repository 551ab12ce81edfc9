/* sent.h - a message with descriptors, as a process that means us ill may send it: of any length,
 * with any number of them. Who receives it keeps none by mistake.
 */
#pragma once

#include <sys/socket.h>

#include "fuzz/must.h"

enum {
	SENT_FDS_MAX = 20, /* more than anybody here takes */
	SENT_PAD = 512,    /* bytes */
	SENT_MAX = 256 * (SENT_PAD + 1),
};

struct sent { /* a pair of sockets with one message under way */
	int ours, theirs;
	int lowest; /* the next free descriptor, as it has to be afterwards */
};

static inline int lowest_free(void)
{
	int fd = dup(STDERR_FILENO);

	MUST(fd >= 0);
	close(fd);
	return fd;
}

static inline void attach(struct msghdr *mh, struct cmsghdr *c, int fd, size_t n)
{
	mh->msg_control = c;
	mh->msg_controllen = CMSG_SPACE(n * sizeof(int));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (size_t i = 0; i < n; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
}

/* How many descriptors, how much behind it, and the message. */
static inline void sent_open(struct sent *s, struct bytes in)
{
	union {
		struct cmsghdr first;
		char space[CMSG_SPACE(SENT_FDS_MAX * sizeof(int))];
	} control = { 0 };
	size_t n_fds = in.len > 0 ? in.ptr[0] % (SENT_FDS_MAX + 1) : 0;
	size_t pad = in.len > 1 ? (size_t)in.ptr[1] * SENT_PAD : 0;
	struct bytes said = bytes_head(bytes_tail(in, 2), SENT_MAX - 256 * SENT_PAD);
	AUTO(auto_free) uint8_t *all = calloc(1, SENT_MAX);
	struct iovec iov = { all, said.len + pad };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	int pair[2];

	s->lowest = lowest_free();
	MUST(all && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) == 0);
	s->ours = pair[0];
	s->theirs = pair[1];
	if (said.len > 0)
		memcpy(all, said.ptr, said.len);
	if (n_fds > 0)
		attach(&mh, &control.first, STDERR_FILENO, n_fds);
	MUST(sendmsg(s->theirs, &mh, MSG_NOSIGNAL) == (ssize_t)iov.iov_len);
}

static inline void sent_close(struct sent *s)
{
	close(s->ours);
	close(s->theirs);
	MUST(lowest_free() == s->lowest);
}
