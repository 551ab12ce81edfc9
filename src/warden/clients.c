/* clients.c - the door: one unix socket, known peers, fixed messages. */
/* #parses: requests of a fixed size, with descriptors; from node */
#include "warden/clients.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/link_hello.h"
#include "base/log.h"
#include "warden/verbs.h"

int clients_listen(struct warden *w, struct err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/warden.sock",
			 w->set[SET_RUN_DIR].text);

	if (n < 0 || (size_t)n >= sizeof(a.sun_path))
		return err_set(err, ERR_INVALID, 0, "run_dir is too long for a socket name");
	unlink(a.sun_path);
	w->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->listener < 0 || bind(w->listener, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
	    chown(a.sun_path, 0, (gid_t)w->set[SET_CLIENT_GID].number) < 0 ||
	    chmod(a.sun_path, 0660) < 0 || listen(w->listener, CLIENTS_MAX) < 0)
		return err_set(err, ERR_INTERNAL, errno, "listen on %s", a.sun_path);
	return warden_watch(w, w->listener, EVENT_LISTEN, 0, err);
}

static bool may_enter(const struct warden *w, int sock)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	return peer.uid == 0 || peer.uid == w->set[SET_CLIENT_UID].number;
}

/* A busy client may have a thousand answers waiting before it is scheduled again. */
static void make_room(int sock)
{
	const int bytes = 8 * 1024 * 1024;

	setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
}

void clients_accept(struct warden *w)
{
	AUTO(auto_close) int sock = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct err err = { 0 };

	if (sock < 0 || !may_enter(w, sock))
		return;
	make_room(sock);
	for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *c = &w->clients[i];

		if (c->sock >= 0)
			continue;
		if (warden_watch(w, sock, EVENT_CLIENT, i, &err) < 0)
			return;
		c->sock = take_fd(&sock);
		c->generation++;
		c->greeted = false;
		return;
	}
	log_warn("a client was turned away: %d are connected", CLIENTS_MAX);
}

static struct client *find(struct warden *w, const struct waiting *who)
{
	struct client *c = &w->clients[who->client % CLIENTS_MAX];
	bool same = who->client < CLIENTS_MAX && c->generation == who->generation;

	return same && c->sock >= 0 ? c : NULL;
}

/* Nobody else could ever use or drop it. */
void clients_sweep_slots(struct warden *w)
{
	for (struct slot_place *p = w->slots; p < w->slots + CELLS_MAX; p++)
		if (p->state == SLOT_READY && !find(w, &p->maker)) {
			close(p->slot.netns);
			close(p->slot.tap);
			p->state = SLOT_FREE;
		}
}

static void drop(struct warden *w, struct client *c)
{
	warden_unwatch(w, c->sock);
	close(c->sock);
	c->sock = -1;
	clients_sweep_slots(w);
}

void clients_readable(struct warden *w, uint32_t index)
{
	struct client *from = &w->clients[index];
	struct call c = { .who = { .client = index, .generation = from->generation } };
	struct err err = { 0 };

	if (from->sock < 0)
		return;
	if (!from->greeted) {
		from->greeted = link_hello_answer(from->sock, WARDEN_VERSION_MIN,
						  WARDEN_VERSION_MAX, &err) == 0;
		if (!from->greeted && err.sys != EAGAIN)
			drop(w, from);
		return;
	}
	if (fdmsg_recv(from->sock, &c.rq, sizeof(c.rq), c.fds, WARDEN_FDS_MAX, &c.n_fds, &err) <
	    0) {
		if (err.sys != EAGAIN)
			drop(w, from);
		return;
	}
	c.who.tag = c.rq.tag;
	verbs_handle(w, &c);
	while (c.n_fds > 0)
		close(c.fds[--c.n_fds]);
}

void clients_reply(struct warden *w, const struct waiting *who, struct warden_reply *r,
		   const int *fds, size_t n_fds)
{
	struct client *c = find(w, who);
	struct err err = { 0 };

	if (!c)
		return;
	r->tag = who->tag;
	/* A client that does not read its answers would have to be waited for: it goes. */
	if (fdmsg_send(c->sock, r, sizeof(*r), fds, n_fds, &err) < 0) {
		log_warn("a client that does not read was dropped: %s", err.msg);
		drop(w, c);
	}
}

void clients_reply_err(struct warden *w, const struct waiting *who, const struct err *e)
{
	struct warden_reply r = { .code = e->code, .sys = e->sys };

	if (who->request[0])
		log_warn("%s; request=%s", e->msg, who->request);
	memcpy(r.msg, e->msg, sizeof(r.msg));
	clients_reply(w, who, &r, NULL, 0);
}
