/* fdpass.c - descriptors as messages: sendmsg, recvmsg, and nothing left open by accident. */
#include "net/fdpass.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

union control { /* room for the most descriptors, aligned as the kernel wants it */
	struct cmsghdr align;
	uint8_t room[CMSG_SPACE(FDPASS_FDS_MAX * sizeof(int))];
};

void fd_pack_init(struct fd_pack *p)
{
	for (size_t i = 0; i < FDPASS_FDS_MAX; i++)
		p->fd[i] = -1;
	p->n = 0;
}

void fd_pack_done(struct fd_pack *p)
{
	for (size_t i = 0; i < FDPASS_FDS_MAX; i++)
		if (p->fd[i] >= 0)
			close(p->fd[i]);
	fd_pack_init(p);
}

static void put_fds(struct msghdr *msg, union control *c, const int *fds, size_t n)
{
	struct cmsghdr *head;

	msg->msg_control = c->room;
	msg->msg_controllen = CMSG_SPACE(n * sizeof(int));
	head = CMSG_FIRSTHDR(msg);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(head), fds, n * sizeof(int));
}

enum fdpass fdpass_send(int sock, struct bytes msg, const int *fds, size_t n_fds, struct err *err)
{
	/* SAFETY: the kernel only reads from it; iovec has no const version */
	struct iovec iov = { (void *)(uintptr_t)msg.ptr, msg.len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control c = { 0 };
	ssize_t n;

	assert(msg.len > 0 && msg.len <= FDPASS_BYTES_MAX && n_fds <= FDPASS_FDS_MAX);
	if (n_fds > 0)
		put_fds(&m, &c, fds, n_fds);
	do {
		n = sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)msg.len)
		return FDPASS_OK;
	/* ETOOMANYREFS: as many descriptors are on their way as this user may have open */
	if (n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS))
		return FDPASS_AGAIN;
	err_set(err, ERR_UNAVAILABLE, n < 0 ? errno : 0, "pass descriptors");
	return FDPASS_BAD;
}

/* Every descriptor that arrived goes into the pack first, so that none is ever lost. */
static void get_fds(struct msghdr *m, struct fd_pack *ret)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		assert(n <= FDPASS_FDS_MAX - ret->n); /* the control room holds no more */
		memcpy(ret->fd + ret->n, CMSG_DATA(h), n * sizeof(int));
		ret->n += n;
	}
}

static enum fdpass judge(const struct msghdr *m, size_t got, size_t size, size_t max_fds,
			 size_t n_fds, struct err *err)
{
	if (m->msg_flags & MSG_CTRUNC)
		err_set(err, ERR_INVALID, 0, "descriptors were cut off");
	else if ((m->msg_flags & MSG_TRUNC) || got != size)
		err_set(err, ERR_INVALID, 0, "message is not of %zu bytes", size);
	else if (n_fds > max_fds)
		err_set(err, ERR_INVALID, 0, "%zu descriptors, limit is %zu", n_fds, max_fds);
	else
		return FDPASS_OK;
	return FDPASS_BAD;
}

enum fdpass fdpass_recv(int sock, uint8_t *into, size_t size, size_t max_fds, struct fd_pack *ret,
			struct err *err)
{
	struct iovec iov = { into, size };
	union control c;
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = c.room,
			    .msg_controllen = sizeof(c.room) };
	enum fdpass verdict;
	ssize_t n;

	assert(size > 0 && max_fds <= FDPASS_FDS_MAX);
	fd_pack_init(ret);
	do {
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return FDPASS_AGAIN;
	if (n < 0) {
		err_set(err, ERR_UNAVAILABLE, errno, "receive descriptors");
		return FDPASS_BAD;
	}
	get_fds(&m, ret);
	if (n == 0 && ret->n == 0 && !(m.msg_flags & (MSG_CTRUNC | MSG_TRUNC)))
		return FDPASS_END;
	verdict = judge(&m, (size_t)n, size, max_fds, ret->n, err);
	if (verdict != FDPASS_OK)
		fd_pack_done(ret);
	return verdict;
}
