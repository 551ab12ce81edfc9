/* control_socket.c - see control_socket.h. */
/* Once it is open. */
/* #syscalls: accept4 getsockopt close */
#include "net/control_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/link_hello.h"
#include "base/log.h"
#include "net/addr.h"

void control_hang_up(struct control_client *c)
{
	if (c->of->ops->on_gone)
		c->of->ops->on_gone(c);
	watch_close(&c->ready);
	close(c->sock);
	c->of = NULL;
}

void control_alone(struct control_client *c)
{
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		struct control_client *other = &c->of->clients[i];

		if (other != c && other->of)
			control_hang_up(other);
	}
}

/* False: it has not said it yet, or was hung up on. */
static bool greet(struct control_client *c)
{
	const struct control_socket_ops *ops = c->of->ops;
	struct err err = { 0 };

	c->greeted = c->greeted || link_hello_answer(c->sock, ops->min, ops->max, &err) == 0;
	if (c->greeted || err.sys == EAGAIN)
		return c->greeted;
	log_debug("%s", err.msg);
	control_hang_up(c);
	return false;
}

static void on_ready(struct watch *w, unsigned int events)
{
	struct control_client *c = CONTAINER_OF(w, struct control_client, ready);

	if (events & WATCH_ERROR) {
		control_hang_up(c);
		return;
	}
	for (int i = 0; i < CONTROL_BATCH; i++)
		if (!greet(c) || !c->of->ops->on_request(c))
			return;
}

static bool may_ask(const struct control_socket *s, int sock)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == s->uid);
}

static void admit(struct control_socket *s, int fd)
{
	AUTO(auto_close) int sock = fd;
	struct err err = { 0 };

	if (!may_ask(s, sock)) {
		log_warn("a client that is neither root nor user %u was turned away", s->uid);
		return;
	}
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		struct control_client *c = &s->clients[i];

		if (c->of)
			continue;
		if (watch_open(&c->ready, s->loop, sock, WATCH_READ, on_ready, &err) < 0) {
			log_error("%s", err.msg);
			return;
		}
		c->sock = take_fd(&sock);
		c->greeted = false;
		c->of = s;
		return;
	}
	log_warn("a client was turned away: %d are connected", CONTROL_CLIENTS_MAX);
}

static void call_again(struct timer *t)
{
	watch_set(&CONTAINER_OF(t, struct control_socket, rest)->calling, WATCH_READ);
}

static void on_call(struct watch *w, unsigned int events)
{
	struct control_socket *s = CONTAINER_OF(w, struct control_socket, calling);
	int sock = accept4(s->sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (sock >= 0) {
		admit(s, sock);
		return;
	}
	watch_set(&s->calling, 0);
	timer_start(&s->rest, CONTROL_REST_MS);
}

static int listen_at(const char *path, struct err *err)
{
	AUTO(auto_close)
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct addr at;

	if (addr_unix(path, &at, err) < 0)
		return -1;
	(void)unlink(path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&at.at, at.len) < 0 ||
	    chmod(path, CONTROL_MODE_ALL) < 0 || listen(fd, CONTROL_CLIENTS_MAX) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "listen on %s", path);
	return take_fd(&fd);
}

int control_socket_open(struct control_socket *s, struct loop *l,
			const struct control_socket_ops *ops, const char *path, uid_t uid,
			struct err *err)
{
	AUTO(auto_close) int sock = listen_at(path, err);

	*s = (struct control_socket){ .ops = ops, .loop = l, .uid = uid, .sock = -1 };
	timer_init(&s->rest, l, call_again);
	if (sock < 0 || watch_open(&s->calling, l, sock, WATCH_READ, on_call, err) < 0)
		return -1;
	s->sock = take_fd(&sock);
	return 0;
}

void control_socket_close(struct control_socket *s)
{
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (s->clients[i].of)
			control_hang_up(&s->clients[i]);
	timer_stop(&s->rest);
	watch_close(&s->calling);
	if (s->sock >= 0)
		close(take_fd(&s->sock));
}
