/* apply.c - start it, ask it, believe the form of its answer only. */
/* #syscalls: socketpair close */
#include "node/life/apply.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/bytes.h"

void apply_cancel(struct apply *a)
{
	link_cancel(&a->call);
	copier_link_close(&a->copier);
}

static void finish(struct apply *a, const struct copier_reply *ret, const struct err *err)
{
	apply_cancel(a);
	a->on_done(a, ret, err);
}

/* While warden is still to say why there is none, its end is no news. */
static void on_answer(struct copier_link *l, enum copier_verb asked, const struct copier_reply *r,
		      const struct err *err)
{
	struct apply *a = CONTAINER_OF(l, struct apply, copier);

	(void)asked;
	if (!a->started && err && err->code == ERR_UNAVAILABLE)
		a->ended = *err;
	else
		finish(a, r, err);
}

static void on_started(struct link_call *c, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct apply *a = CONTAINER_OF(c, struct apply, call);

	a->started = true;
	if (failed)
		finish(a, NULL, failed);
	else if (a->ended.code != ERR_NONE)
		finish(a, NULL, &a->ended);
}

/* It is asked before it is there: that saves a turn of this loop. */
static int begin(struct apply *a, struct loop *l, uint32_t base_crc, int *ret_end, struct err *err)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "a socket for the copier");
	*ret_end = ends[1];
	if (copier_link_open(&a->copier, l, ends[0], on_answer, err) == 0 &&
	    copier_link_ask(&a->copier, COPIER_APPLY, base_crc, APPLY_MS, err) == 0)
		return 0;
	copier_link_close(&a->copier);
	close(ends[1]);
	return -1;
}

int apply_start(struct apply *a, struct loop *l, struct warden_client *w,
		const struct apply_spec *spec, apply_done_fn *on_done, struct err *err)
{
	struct warden_request rq = { .verb = WARDEN_COPY, .flags = WARDEN_APPLY };
	int fds[] = { [COPIER_FD_PAGES] = spec->pages, [COPIER_FD_MEMORY] = spec->memory };

	*a = (struct apply){ .on_done = on_done };
	/* without one, to pass it on would end the link to warden */
	if (spec->pages < 0 || spec->memory < 0)
		err_set(err, ERR_EXHAUSTED, EMFILE, "no descriptor for what was saved");
	if (spec->pages < 0 || spec->memory < 0 ||
	    begin(a, l, spec->base_crc, &fds[COPIER_FD_CONTROL], err) < 0) {
		auto_close(&fds[COPIER_FD_PAGES]);
		auto_close(&fds[COPIER_FD_MEMORY]);
		return -1;
	}
	snprintf(rq.id, sizeof(rq.id), "%s", spec->id);
	if (warden_once_fds(w, &a->call,
			    &(struct warden_asked){ &rq, fds, COUNT(fds), WARDEN_CALL_MS },
			    on_started, err) < 0) {
		apply_cancel(a);
		return -1;
	}
	return 0;
}
