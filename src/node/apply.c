/* apply.c - start it, ask it, believe the form of its answer only. */
/* #syscalls: socketpair fcntl close */
#include "node/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "jail/fdmsg.h"

void apply_cancel(struct apply *a)
{
	warden_call_cancel(&a->call);
	watch_close(&a->ready);
	timer_stop(&a->deadline);
	if (a->open)
		close(a->control);
	a->open = false;
}

static void finish(struct apply *a, const struct copier_reply *ret, const struct err *err)
{
	apply_cancel(a);
	a->on_done(a, ret, err);
}

static void on_late(struct timer *t)
{
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "the copier took longer than %d seconds", APPLY_MS / 1000);
	finish(CONTAINER_OF(t, struct apply, deadline), NULL, &err);
}

static void on_ready(struct watch *w, unsigned int events)
{
	struct apply *a = CONTAINER_OF(w, struct apply, ready);
	struct copier_reply r;
	struct err err = { 0 };
	size_t n = 0;

	(void)events;
	if (fdmsg_recv(a->control, &r, sizeof(r), NULL, 0, &n, &err) < 0) {
		if (err.sys == EAGAIN || err.sys == EINTR)
			return;
		err_wrap(&err, "copier");
		finish(a, NULL, &err);
		return;
	}
	r.msg[sizeof(r.msg) - 1] = '\0';
	if (r.code != ERR_NONE) {
		err_set(&err, r.code < ERR_CODES ? (enum err_code)r.code : ERR_INTERNAL, r.sys,
			"copier: %.200s", r.msg);
		finish(a, NULL, &err);
		return;
	}
	finish(a, &r, NULL);
}

static void on_started(struct warden_call *c, const struct warden_reply *reply, int *fds,
		       size_t n_fds, const struct err *failed)
{
	const struct copier_request rq = { .version = COPIER_VERSION, .verb = COPIER_APPLY };
	struct apply *a = CONTAINER_OF(c, struct apply, call);
	struct err err;

	(void)reply, (void)fds, (void)n_fds;
	if (failed) {
		finish(a, NULL, failed);
		return;
	}
	if (fdmsg_send(a->control, &rq, sizeof(rq), NULL, 0, &err) < 0 ||
	    watch_open(&a->ready, a->loop, a->control, WATCH_READ, on_ready, &err) < 0)
		finish(a, NULL, &err);
}

int apply_start(struct apply *a, struct loop *l, struct warden_keep *w, const char *id, int pages,
		int memory,
		void (*on_done)(struct apply *a, const struct copier_reply *ret,
				const struct err *err),
		struct err *err)
{
	struct warden_request rq = { .verb = WARDEN_COPY, .flags = WARDEN_APPLY };
	int fds[COPIER_FDS] = { [COPIER_FD_PAGES] = pages, [COPIER_FD_MEMORY] = memory };
	int ends[2];

	*a = (struct apply){ .on_done = on_done, .loop = l };
	/* the last has no use here, but the verb has four */
	fds[COPIER_FD_STATE] = fcntl(memory, F_DUPFD_CLOEXEC, 0);
	if (fds[COPIER_FD_STATE] < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
		err_set(err, ERR_EXHAUSTED, errno, "a socket for the copier");
		auto_close(&fds[COPIER_FD_STATE]);
		auto_close(&pages);
		auto_close(&memory);
		return -1;
	}
	a->control = ends[0];
	a->open = true;
	fds[COPIER_FD_CONTROL] = ends[1];
	snprintf(rq.id, sizeof(rq.id), "%s", id);
	timer_init(&a->deadline, l, on_late);
	timer_start(&a->deadline, APPLY_MS);
	if (warden_once_fds(w, &a->call, &rq, fds, COPIER_FDS, WARDEN_CALL_MS, on_started, err) <
	    0) {
		apply_cancel(a);
		return -1;
	}
	return 0;
}
