/* admin_door.c - accept, ask the kernel who it is, serve. */
/* #syscalls: accept4 getsockopt unlink close */
#include "gateway/api/admin_door.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/log.h"
#include "gateway/api/api.h"
#include "net/fd_stream.h"

static void on_request(struct http_server *http, struct http_request *rq)
{
	figures_begin(rq, CLASS_ADMIN);
	admin_request(CONTAINER_OF(http, struct admin_door, http)->g, rq);
}

static void on_over(struct http_server *http, struct http_request *rq, unsigned int status)
{
	figures_over(&CONTAINER_OF(http, struct admin_door, http)->g->figures, rq, status);
}

static bool may_enter(const struct admin_door *d, int fd)
{
	struct ucred who;
	socklen_t n = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
		return false;
	if (who.uid == 0 || who.uid == d->uid)
		return true;
	log_warn("admin door: user %u (process %d) refused", who.uid, who.pid);
	return false;
}

static void admit(struct admin_door *d, int fd)
{
	struct stream *s = NULL;
	struct err err;

	if (!may_enter(d, fd) || d->http.n_conns >= ADMIN_CONNECTIONS_MAX) {
		close(fd);
		return;
	}
	if (fd_stream_open(d->g->loop, fd, FD_STREAM_BOTH, &s, &err) < 0 ||
	    http_server_add(&d->http, s, NULL, &err) < 0)
		log_warn("admin door: %s", err.msg);
}

static void on_ready(struct watch *w, unsigned int events)
{
	struct admin_door *d = CONTAINER_OF(w, struct admin_door, ready);

	(void)events;
	for (int i = 0; i < ADMIN_BATCH; i++) {
		int fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		admit(d, fd);
	}
}

/* A socket left by a process that was killed refuses connections; a live one does not. */
static int clear_path(const struct sockaddr_un *at, struct err *err)
{
	AUTO(auto_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (lstat(at->sun_path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_EXISTS, 0, "%s is not a socket", at->sun_path);
	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "make a socket");
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0)
		return err_set(err, ERR_EXISTS, 0, "somebody listens on %s", at->sun_path);
	if (unlink(at->sun_path) < 0)
		return err_set(err, ERR_INTERNAL, errno, "remove %s", at->sun_path);
	return 0;
}

static int listen_at(struct admin_door *d, struct err *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	mode_t before;
	int rc;

	if (!bytes_to_str(bytes_str(d->path), at.sun_path, sizeof(at.sun_path)))
		return err_set(err, ERR_INVALID, 0, "%s: the path is too long", d->path);
	if (clear_path(&at, err) < 0)
		return -1;
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0) {
		d->fd = 0;
		return err_set(err, ERR_INTERNAL, errno, "make a socket");
	}
	before = umask(0177);
	rc = bind(d->fd, (const struct sockaddr *)&at, sizeof(at));
	umask(before);
	if (rc < 0 || listen(d->fd, ADMIN_BACKLOG) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "listen on %s", d->path);
	if (d->uid != geteuid() && chown(d->path, d->uid, (gid_t)-1) < 0)
		return err_set(err, ERR_DENIED, errno, "give %s to user %u", d->path, d->uid);
	return 0;
}

static void init(struct admin_door *d, struct gateway *g, uid_t uid)
{
	static const struct http_server_ops ops = { on_request, on_over };

	*d = (struct admin_door){ .g = g, .uid = uid };
	http_server_init(&d->http, g->loop, &ops, &HTTP_LIMITS);
}

int admin_door_open(struct admin_door *d, struct gateway *g, const char *path, uid_t uid,
		    struct err *err)
{
	init(d, g, uid);
	snprintf(d->path, sizeof(d->path), "%s", path);
	if (listen_at(d, err) < 0 ||
	    watch_open(&d->ready, g->loop, d->fd, WATCH_READ, on_ready, err) < 0) {
		admin_door_close(d);
		return err_wrap(err, "admin door");
	}
	return 0;
}

/* Its path was made for root alone: the other user gets it, as from listen_at(). */
static int give_path(int fd, uid_t uid, struct err *err)
{
	struct sockaddr_un at = { 0 };
	socklen_t len = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &len) < 0 || at.sun_family != AF_UNIX)
		return err_set(err, ERR_INVALID, 0, "socket admin is no unix socket");
	if (uid == geteuid() || at.sun_path[0] != '/')
		return 0;
	at.sun_path[sizeof(at.sun_path) - 1] = '\0';
	if (chown(at.sun_path, uid, (gid_t)-1) < 0)
		return err_set(err, ERR_DENIED, errno, "give %s to user %u", at.sun_path, uid);
	return 0;
}

int admin_door_open_fd(struct admin_door *d, struct gateway *g, int fd, uid_t uid, struct err *err)
{
	init(d, g, uid);
	d->fd = fd;
	if (give_path(fd, uid, err) < 0 ||
	    watch_open(&d->ready, g->loop, fd, WATCH_READ, on_ready, err) < 0) {
		admin_door_close(d);
		return err_wrap(err, "admin door");
	}
	return 0;
}

void admin_door_drain(struct admin_door *d)
{
	http_server_drain(&d->http);
	if (d->path[0])
		return; /* nobody else answers there */
	watch_close(&d->ready);
	close(d->fd);
	d->fd = 0;
}

void admin_door_close(struct admin_door *d)
{
	if (!d->g)
		return;
	watch_close(&d->ready);
	if (d->fd > 0) {
		close(d->fd);
		if (d->path[0]) /* confined, it may have to stay; the next start removes it */
			unlink(d->path);
	}
	http_server_done(&d->http);
	*d = (struct admin_door){ 0 };
}
