/* fdmsg.c - SCM_RIGHTS without its traps: truncation, stray descriptors, partial messages. */
/* #parses: length and descriptors of a message; from node, or from warden's own children */
/* #syscalls: sendmsg recvmsg close */
#include "base/fdmsg.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

union control {
	struct cmsghdr align;
	char space[CMSG_SPACE(FDMSG_FDS_MAX * sizeof(int))];
};

static void attach(struct msghdr *mh, union control *control, const int *fds, size_t n_fds)
{
	struct cmsghdr *c;

	mh->msg_control = control;
	mh->msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
	c = CMSG_FIRSTHDR(mh);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
}

int fdmsg_send_pair(int sock, struct bytes head, struct bytes tail, const int *fds, size_t n_fds,
		    struct err *err)
{
	union control control = { 0 };
	struct iovec iov[2] = { { .iov_len = head.len }, { .iov_len = tail.len } };
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = tail.len > 0 ? 2 : 1 };

	assert(n_fds <= FDMSG_FDS_MAX);
	/* sendmsg only reads them */
	memcpy(&iov[0].iov_base, &head.ptr, sizeof(head.ptr));
	memcpy(&iov[1].iov_base, &tail.ptr, sizeof(tail.ptr));
	if (n_fds > 0)
		attach(&mh, &control, fds, n_fds);
	if (sendmsg(sock, &mh, MSG_NOSIGNAL) != (ssize_t)(head.len + tail.len))
		return err_set(err, ERR_UNAVAILABLE, errno, "send a message");
	return 0;
}

int fdmsg_send(int sock, const void *msg, size_t len, const int *fds, size_t n_fds, struct err *err)
{
	return fdmsg_send_pair(sock, (struct bytes){ msg, len }, (struct bytes){ 0 }, fds, n_fds,
			       err);
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

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

int fdmsg_recv_some(int sock, void *msg, size_t min, size_t max, size_t *ret_len, int *fds,
		    size_t max_fds, size_t *ret_n, struct err *err)
{
	union control control = { 0 };
	struct iovec iov = { .iov_base = msg, .iov_len = max };
	struct msghdr mh = { .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control) };
	int all[FDMSG_FDS_MAX];
	ssize_t got = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
	bool whole = got >= (ssize_t)min && !(mh.msg_flags & MSG_TRUNC);
	bool all_fds = !(mh.msg_flags & MSG_CTRUNC);
	size_t n;

	if (got < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "receive a message");
	n = collect(&mh, all);
	if (whole && all_fds && n <= max_fds) {
		if (n > 0)
			memcpy(fds, all, n * sizeof(int));
		*ret_n = n;
		*ret_len = (size_t)got;
		return 0;
	}
	close_all(all, n);
	if (got == 0)
		return err_set(err, ERR_UNAVAILABLE, 0, "the peer is gone");
	*ret_len = (size_t)got;
	if (whole && !all_fds && n < FDMSG_FDS_MAX) /* else it is the sender who is wrong */
		return err_set(err, ERR_EXHAUSTED, EMFILE, "no room for descriptors");
	return err_set(err, ERR_INVALID, 0, "a message of %zd bytes, expected %zu to %zu", got, min,
		       max);
}

int fdmsg_recv(int sock, void *msg, size_t len, int *fds, size_t max_fds, size_t *ret_n,
	       struct err *err)
{
	size_t got = 0;

	return fdmsg_recv_some(sock, msg, len, len, &got, fds, max_fds, ret_n, err);
}
