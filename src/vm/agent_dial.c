/* agent_dial.c - attempts, each a little more patient. */
/* #syscalls: connect fcntl close */
#include "vm/agent_dial.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>

static void finish(struct agent_dial *d, struct stream *s, const struct err *err)
{
	__auto_type on_done = d->on_done;

	agent_dial_cancel(d);
	on_done(d, s, err);
}

/* A socket whose connect failed or is still under way becomes a new one. */
static void disconnect(int fd)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	(void)!connect(fd, &none, sizeof(none)); /* the next attempt reports what is wrong */
}

static void on_dialled(struct dial *dial, struct stream *s, const struct err *err)
{
	struct agent_dial *d = CONTAINER_OF(dial, struct agent_dial, dial);
	uint64_t now = loop_now_ms(d->loop);
	bool may_change = err && (err->code == ERR_TIMEOUT || err->code == ERR_UNAVAILABLE);

	if (s || !may_change || now + AGENT_DIAL_PAUSE_MS >= d->until_ms) {
		finish(d, s, err);
		return;
	}
	disconnect(d->fd);
	timer_start(&d->again, AGENT_DIAL_PAUSE_MS);
}

/* What a guest dropped is sent again by the kernel after whole seconds: sooner by the next attempt.
 */
static uint64_t attempt_ms(const struct agent_dial *d)
{
	uint64_t now = loop_now_ms(d->loop), ms = (now - d->begun_ms) / AGENT_DIAL_PART;

	if (ms > AGENT_DIAL_LAST_MS)
		ms = AGENT_DIAL_LAST_MS;
	if (ms < d->attempt_ms)
		ms = d->attempt_ms;
	return ms < d->until_ms - now ? ms : d->until_ms - now;
}

static int attempt(struct agent_dial *d, struct err *err)
{
	int fd = fcntl(d->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "reach the agent");
	return dial_start_fd(&d->dial, d->loop, fd, &d->to, attempt_ms(d), on_dialled, err);
}

static void on_again(struct timer *t)
{
	struct agent_dial *d = CONTAINER_OF(t, struct agent_dial, again);
	struct err err;

	if (loop_now_ms(d->loop) >= d->until_ms) {
		err_set(&err, ERR_TIMEOUT, 0, "the agent cannot be reached");
		finish(d, NULL, &err);
	} else if (attempt(d, &err) < 0) {
		finish(d, NULL, &err);
	}
}

int agent_dial_start(struct agent_dial *d, const struct agent_dial_spec *spec,
		     agent_dial_done_fn *on_done, struct err *err)
{
	uint64_t now = loop_now_ms(spec->loop);

	assert(spec->attempt_ms > 0 && spec->deadline_ms > 0);
	*d = (struct agent_dial){ .on_done = on_done,
				  .loop = spec->loop,
				  .to = *spec->to,
				  .fd = spec->fd,
				  .begun_ms = now,
				  .until_ms = now + spec->deadline_ms,
				  .attempt_ms = spec->attempt_ms };
	timer_init(&d->again, d->loop, on_again);
	if (attempt(d, err) < 0) {
		agent_dial_cancel(d);
		return -1;
	}
	return 0;
}

void agent_dial_cancel(struct agent_dial *d)
{
	if (!d->on_done)
		return;
	d->on_done = NULL;
	timer_stop(&d->again);
	dial_cancel(&d->dial);
	close(take_fd(&d->fd));
}
