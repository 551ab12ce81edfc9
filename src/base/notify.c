/* notify.c - see notify.h. */
/* Once it is open. */
/* #syscalls: write close */
/* #parses: an address and a number in the environment, at start only; from the service manager */
#include "base/notify.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/bytes.h"
#include "base/own.h"

/* "@name" is one of the abstract kind. */
static int open_socket(const char *path, struct err *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	AUTO(auto_close) int fd = -1;

	if ((path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(at.sun_path))
		return err_set(err, ERR_INVALID, 0, "NOTIFY_SOCKET: %s is no path", path);
	memcpy(at.sun_path, path, strlen(path));
	if (path[0] == '@')
		at.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&at, len) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "NOTIFY_SOCKET: connect to %s", path);
	return take_fd(&fd);
}

/* Half of the time after which the manager gives us up; 0: it does not watch this process. */
static uint64_t read_beat(void)
{
	const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t n, whose;

	if (!us || !bytes_to_u64(bytes_str(us), &n) ||
	    (pid && (!bytes_to_u64(bytes_str(pid), &whose) || (pid_t)whose != getpid())))
		return 0;
	return n / 2000;
}

int notify_open(struct notify *n, struct err *err)
{
	const char *path = getenv("NOTIFY_SOCKET");
	int fd = path && *path ? open_socket(path, err) : 0;

	*n = (struct notify){ fd > 0 ? fd : 0, fd > 0 ? read_beat() : 0 };
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
	return fd < 0 ? -1 : 0;
}

void notify_say(const struct notify *n, const char *state)
{
	/* what is not taken at once is not worth waiting for */
	if (n->sock)
		(void)!write(n->sock, state, strnlen(state, NOTIFY_STATE_MAX));
}

void notify_close(struct notify *n)
{
	if (n->sock)
		close(n->sock);
	*n = (struct notify){ 0 };
}
