/* supervisor.c - the environment that a service manager made, read once. */
/* Once it is open. */
/* #syscalls: close */
#include "net/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/own.h"

enum { FIRST_FD = 3 }; /* they come behind the usual three */

static int number(const char *text, uint64_t max, uint64_t *ret, const char *what, struct err *err)
{
	if (!bytes_to_u64(bytes_str(text), ret) || *ret > max)
		return err_set(err, ERR_INVALID, 0, "%s is not a number up to %llu", what,
			       (unsigned long long)max);
	return 0;
}

/* One of streams, that listens. What is accepted from it does not inherit that it never blocks;
 * the others who hold it see it. */
static int check_socket(int fd, struct err *err)
{
	int listens = 0, type = 0, flags;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0)
		return err_set(err, ERR_INVALID, errno, "descriptor %d is no socket", fd);
	len = sizeof(int);
	if (type != SOCK_STREAM || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0 ||
	    !listens)
		return err_set(err, ERR_INVALID, 0, "descriptor %d does not listen for streams",
			       fd);
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return err_set(err, ERR_INTERNAL, errno, "set up descriptor %d", fd);
	return 0;
}

static int add_socket(struct supervisor *s, int fd, struct bytes name, struct err *err)
{
	struct supervisor_socket *at = &s->sockets[s->n_sockets];

	if (name.len == 0 || !bytes_to_str(name, at->name, sizeof(at->name)))
		return err_set(err, ERR_INVALID, 0, "the name of descriptor %d", fd);
	for (size_t i = 0; i < s->n_sockets; i++)
		if (strcmp(s->sockets[i].name, at->name) == 0)
			return err_set(err, ERR_EXISTS, 0,
				       "two sockets are called %s: its unit may have one address",
				       at->name);
	if (check_socket(fd, err) < 0)
		return err_wrap(err, "socket %s", at->name);
	at->fd = fd;
	s->n_sockets++;
	return 0;
}

static int add_sockets(struct supervisor *s, uint64_t n, const char *names, struct err *err)
{
	struct bytes left = bytes_str(names), name;

	for (uint64_t i = 0; i < n; i++) {
		if (!bytes_cut(&left, ':', &name)) {
			name = left;
			left = (struct bytes){ 0 };
		}
		if (add_socket(s, FIRST_FD + (int)i, name, err) < 0)
			return -1;
	}
	return 0;
}

static int read_sockets(struct supervisor *s, struct err *err)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	const char *names = getenv("LISTEN_FDNAMES");
	uint64_t for_whom, n;

	if (!pid || !fds)
		return 0;
	if (number(pid, INT32_MAX, &for_whom, "LISTEN_PID", err) < 0)
		return -1;
	if ((pid_t)for_whom != getpid()) /* inherited from who started us: not meant for us */
		return 0;
	if (number(fds, SUPERVISOR_SOCKETS_MAX, &n, "LISTEN_FDS", err) < 0)
		return -1;
	return add_sockets(s, n, names ? names : "", err);
}

int supervisor_open(struct supervisor *s, struct err *err)
{
	static const char *const words[] = { "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES" };
	int rc;

	*s = (struct supervisor){ 0 };
	rc = read_sockets(s, err) < 0 || notify_open(&s->notify, err) < 0 ? -1 : 0;
	for (size_t i = 0; i < COUNT(words); i++)
		(void)unsetenv(words[i]);
	if (rc < 0) {
		supervisor_close(s);
		return err_wrap(err, "from the service manager");
	}
	return 0;
}

int supervisor_take(struct supervisor *s, const char *name)
{
	for (size_t i = 0; i < s->n_sockets; i++)
		if (s->sockets[i].fd >= 0 && strcmp(s->sockets[i].name, name) == 0)
			return take_fd(&s->sockets[i].fd);
	return -1;
}

const char *supervisor_drop(struct supervisor *s)
{
	for (size_t i = 0; i < s->n_sockets; i++)
		if (s->sockets[i].fd >= 0) {
			close(take_fd(&s->sockets[i].fd));
			return s->sockets[i].name;
		}
	return NULL;
}

void supervisor_say(struct supervisor *s, const char *state)
{
	notify_say(&s->notify, state);
}

void supervisor_close(struct supervisor *s)
{
	while (supervisor_drop(s))
		;
	notify_close(&s->notify);
	*s = (struct supervisor){ 0 };
}
