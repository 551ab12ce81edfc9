/* fdmsg.c - SCM_RIGHTS without its traps: truncation, stray descriptors, partial messages. */
#include "jail/fdmsg.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

union control {
	struct cmsghdr align;
	char space[CMSG_SPACE(FDMSG_FDS_MAX * sizeof(int))];
};

int fdmsg_send(int sock, const void *msg, size_t len, const int *fds, size_t n_fds, struct err *err)
{
	union control control = { 0 };
	struct iovec iov = { .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	assert(n_fds <= FDMSG_FDS_MAX);
	memcpy(&iov.iov_base, &msg, sizeof(msg)); /* sendmsg only reads it */
	if (n_fds > 0) {
		struct cmsghdr *c;

		mh.msg_control = &control;
		mh.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	if (sendmsg(sock, &mh, MSG_NOSIGNAL) != (ssize_t)len)
		return err_set(err, ERR_UNAVAILABLE, errno, "send a message");
	return 0;
}

/* Collect every descriptor that arrived, wanted or not, so that none is left open unseen. */
static size_t collect(struct msghdr *mh, int *all)
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t got = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		assert(n + got <= FDMSG_FDS_MAX);
		memcpy(all + n, CMSG_DATA(c), got * sizeof(int));
		n += got;
	}
	return n;
}

int fdmsg_recv(int sock, void *msg, size_t len, int *fds, size_t max_fds, size_t *ret_n,
	       struct err *err)
{
	union control control = { 0 };
	struct iovec iov = { .iov_base = msg, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control) };
	int all[FDMSG_FDS_MAX];
	ssize_t got = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
	size_t n;

	if (got < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "receive a message");
	n = collect(&mh, all);
	if (got == (ssize_t)len && !(mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && n <= max_fds) {
		memcpy(fds, all, n * sizeof(int));
		*ret_n = n;
		return 0;
	}
	while (n > 0)
		close(all[--n]);
	if (got == 0)
		return err_set(err, ERR_UNAVAILABLE, 0, "the peer is gone");
	return err_set(err, ERR_INVALID, 0, "a message of %zd bytes, expected %zu", got, len);
}
