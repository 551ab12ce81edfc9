/* tcp.c - how our TCP sockets behave. */
/* #syscalls: setsockopt */
#include "net/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/bytes.h"

enum { KERNEL_UNSENT = 128 * 1024 }; /* bytes the kernel holds before it sends them */
enum { KEEPALIVE_IDLE_S = 60, KEEPALIVE_EVERY_S = 15, KEEPALIVE_TRIES = 4 };

void tcp_bound_input(int fd)
{
	int room = TCP_NEAR_INPUT;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
}

void tcp_set_up(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 }, /* each write leaves at once */
		/* what waits for a slow reader waits here, where it is counted */
		{ IPPROTO_TCP, TCP_NOTSENT_LOWAT, KERNEL_UNSENT },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 }, /* a host that vanished is noticed */
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_TRIES },
	};

	/* the first is refused by sockets that are not TCP */
	for (size_t i = 0; i < COUNT(options); i++)
		if (setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			       sizeof(options[i].value)) < 0)
			return;
}
