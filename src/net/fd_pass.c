/* fd_pass.c - see fd_pass.h. */
/* #syscalls: sendmsg */
#include "net/fd_pass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "net/fd_stream.h"

int stream_pass_fd(struct stream *s, char byte, int fd, struct err *err)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	const int *to = fd_stream_idle(s);

	if (!to)
		return err_set(err, ERR_UNAVAILABLE, 0, "no descriptor can be passed now");
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	if (sendmsg(*to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		return err_set(err, ERR_UNAVAILABLE, errno, "pass a descriptor");
	return 0;
}

int stream_take_fd(struct stream *s)
{
	int *own = fd_stream_idle(s), fd = own ? take_fd(own) : -1;

	stream_abort(s);
	return fd;
}
