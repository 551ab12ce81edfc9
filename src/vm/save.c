/* save.c - freeze, stop, state, pages: one after the other, and what can go wrong between them. */
/* #syscalls: sendto recvfrom close */
#include "vm/save.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"

enum {
	REPLY_ERRNO_MAX = 4095,
	REPLY_PAGES_MAX = 1 << 28, /* of a machine with a terabyte */
};

static struct save *of(struct machine_user *u)
{
	return CONTAINER_OF(u, struct save, machine_user);
}

static struct save *of_call(struct qmp_call *c)
{
	return CONTAINER_OF(c, struct save, call);
}

bool save_running(const struct save *s)
{
	return s->user != NULL;
}

/* --- its end ------------------------------------------------------------------------------ */

static void release(struct save *s)
{
	s->user = NULL;
	timer_stop(&s->deadline);
	agent_dial_cancel(&s->dial);
	agent_link_close(&s->link);
	watch_close(&s->control_ready);
	if (s->control >= 0)
		close(take_fd(&s->control));
	if (s->call.link) /* an answer without anybody to hear it */
		machine_close(s->machine);
	else if (s->machine->life.state != VM_GONE)
		machine_set_user(s->machine, s->before);
}

void save_cancel(struct save *s)
{
	if (s->user)
		release(s);
}

static void finish(struct save *s, const struct err *why)
{
	struct save_user *u = s->user;
	struct err err;

	if (why) {
		err = *why;
		err_wrap(&err, "save");
	}
	release(s);
	u->ops->on_done(u, &s->result, why ? &err : NULL);
}

static void fail_with(struct save *s, enum err_code code, const char *what)
{
	struct err err;

	err_set(&err, code, 0, "%s", what);
	finish(s, &err);
}

/* --- the copier --------------------------------------------------------------------------- */

/* While QEMU is still to answer, what comes next waits for that. */
static void copier_broke(struct save *s, const struct err *err)
{
	timer_stop(&s->deadline);
	watch_close(&s->control_ready);
	s->asked = COPIER_VERBS;
	if (s->call.link)
		s->broken = *err;
	else
		finish(s, err);
}

static void on_deadline(struct timer *t)
{
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "the copier did not answer in %d ms", SAVE_COPY_MS);
	copier_broke(CONTAINER_OF(t, struct save, deadline), &err);
}

static void ask_copier(struct save *s, enum copier_verb verb)
{
	const struct copier_request rq = { .version = COPIER_VERSION, .verb = verb };
	struct err err;

	if (send(s->control, &rq, sizeof(rq), MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof(rq)) {
		err_set(&err, ERR_UNAVAILABLE, errno, "the copier cannot be asked");
		finish(s, &err);
		return;
	}
	s->asked = verb;
	timer_start(&s->deadline, SAVE_COPY_MS);
}

/* Its own words, cut and without anything that a log could stumble over. */
static int read_refusal(const struct copier_reply *r, struct err *err)
{
	bool known = r->code < ERR_CODES && r->sys >= 0 && r->sys <= REPLY_ERRNO_MAX;
	char words[sizeof(r->msg)];
	size_t n = strnlen(r->msg, sizeof(r->msg) - 1);

	for (size_t i = 0; i < n; i++)
		words[i] = r->msg[i] >= ' ' && r->msg[i] <= '~' ? r->msg[i] : '?';
	words[n] = '\0';
	err_set(err, known ? (enum err_code)r->code : ERR_INTERNAL, 0, "copier: %s", words);
	err->sys = known ? r->sys : 0; /* named among its words already */
	return -1;
}

/* Nothing is done with these numbers but to remember them: they need to be possible, no more. */
static bool is_possible(const struct copier_reply *r)
{
	const uint64_t most = (uint64_t)REPLY_PAGES_MAX * 2 * COPIER_PAGE; /* and their table */

	return r->pages <= REPLY_PAGES_MAX && r->zero_pages <= REPLY_PAGES_MAX &&
	       r->pages_bytes > 0 && r->pages_bytes <= most && r->state_bytes > 0 &&
	       r->state_bytes <= COPIER_STATE_MAX;
}

static bool is_same(const struct copier_reply *a, const struct copier_reply *b)
{
	return a->pages == b->pages && a->zero_pages == b->zero_pages &&
	       a->pages_bytes == b->pages_bytes && a->state_bytes == b->state_bytes &&
	       a->pages_crc == b->pages_crc && a->state_crc == b->state_crc;
}

static void on_copied(struct save *s, const struct copier_reply *r)
{
	s->result.copied = *r;
	memset(s->result.copied.msg, 0, sizeof(s->result.copied.msg));
	s->result.stopped_us = (clock_mono_ns() - s->stopped_ns) / 1000;
	s->copied = true;
	steps_add(&s->machine->steps, "copied");
	s->user->ops->on_copied(s->user, &s->result);
}

static void on_reply(struct save *s, const struct copier_reply *r)
{
	enum copier_verb asked = s->asked;
	struct err err;

	s->asked = COPIER_VERBS;
	timer_stop(&s->deadline);
	if (asked == COPIER_VERBS) {
		err_set(&err, ERR_INVALID, 0, "the copier answers what nobody asked");
		copier_broke(s, &err);
	} else if (r->code != ERR_NONE) {
		read_refusal(r, &err);
		finish(s, &err);
	} else if (!is_possible(r)) {
		fail_with(s, ERR_INVALID, "the copier answers what cannot be");
	} else if (asked == COPIER_COPY) {
		on_copied(s, r);
	} else if (!is_same(r, &s->result.copied)) {
		fail_with(s, ERR_INVALID, "the copier says one thing and then another");
	} else {
		steps_add(&s->machine->steps, "durable");
		finish(s, NULL);
	}
}

/* A message of exactly the right length. Descriptors that come with it the kernel drops. */
static int receive(int fd, struct copier_reply *ret, struct err *err)
{
	ssize_t n = recv(fd, ret, sizeof(*ret), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "hear the copier");
	if (n == 0)
		return err_set(err, ERR_UNAVAILABLE, 0, "the copier ended");
	if ((size_t)n != sizeof(*ret))
		return err_set(err, ERR_INVALID, 0, "a message of %zd bytes from the copier", n);
	return 1;
}

static void on_control(struct watch *w, unsigned int events)
{
	struct save *s = CONTAINER_OF(w, struct save, control_ready);
	struct copier_reply reply;
	struct err err;
	int rc;

	(void)events;
	rc = receive(s->control, &reply, &err);
	if (rc < 0)
		copier_broke(s, &err);
	else if (rc > 0)
		on_reply(s, &reply);
}

void save_sync(struct save *s)
{
	assert(s->user && s->copied && s->asked == COPIER_VERBS);
	if (!s->spec.disk_only)
		ask_copier(s, COPIER_SYNC);
	else
		finish(s, NULL);
}

/* --- QEMU --------------------------------------------------------------------------------- */

/* True: there is no going on. */
static bool fails(struct save *s, const struct err *err)
{
	if (!s->user)
		return true;
	if (!err && s->broken.code == ERR_NONE)
		return false;
	if (err && err->code != ERR_INVALID) /* not what QEMU said: it can no longer be heard */
		machine_close(s->machine);
	finish(s, err ? err : &s->broken);
	return true;
}

static void on_state(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct save *s = of_call(c);

	(void)ret;
	if (fails(s, err))
		return;
	steps_add(&s->machine->steps, "state");
	ask_copier(s, COPIER_COPY);
}

static void on_stopped(struct qmp_call *c, const json_t *ret, const struct err *failed)
{
	struct save *s = of_call(c);
	struct machine *m = s->machine;
	struct err err;

	(void)ret;
	if (!failed && m->life.state != VM_PAUSED) {
		vm_life_enter(&m->life, VM_PAUSED);
		s->stopped_ns = clock_mono_ns();
		steps_add(&m->steps, "stopped");
	}
	if (fails(s, failed))
		return;
	if (s->spec.disk_only) {
		s->copied = true;
		s->user->ops->on_copied(s->user, &s->result);
	} else if (machine_save(m, &s->call, s->spec.save_file, on_state, &err) < 0) {
		finish(s, &err);
	}
}

static void stop(struct save *s)
{
	struct err err;

	if (machine_stop(s->machine, &s->call, on_stopped, &err) < 0)
		finish(s, &err);
}

static void on_nothing(struct machine_user *mu)
{
	(void)mu;
}

static void on_event(struct machine_user *mu, const struct qmp_message *event)
{
	(void)mu, (void)event;
}

static void on_gone(struct machine_user *mu, const struct err *err)
{
	finish(of(mu), err);
}

/* --- the guest: whatever it does, it is stopped ------------------------------------------- */

/* Stopped as it is, or left running when nobody may be copied so. */
static void not_frozen(struct save *s, const struct err *why)
{
	struct err err = *why;

	if (!s->spec.must_freeze) {
		stop(s);
		return;
	}
	err.code = ERR_UNAVAILABLE; /* it may be only busy: worth another try */
	err_wrap(&err, "its processes do not stop");
	finish(s, &err);
}

static void on_frozen(struct agent_link *l, const struct agent_answer *a, const struct err *err)
{
	struct save *s = CONTAINER_OF(l, struct save, link);

	(void)a;
	agent_link_close(l); /* no connection outlives the stop: nobody would answer it */
	s->result.frozen = !err;
	if (err) {
		not_frozen(s, err);
		return;
	}
	steps_add(&s->machine->steps, "frozen");
	stop(s);
}

static int freeze(struct save *s, struct err *err)
{
	if (s->spec.disk_only)
		return agent_link_freeze_disk(&s->link, SAVE_FLUSH_MS, on_frozen, err);
	return agent_link_freeze(&s->link, s->spec.must_freeze ? SAVE_SURE_MS : SAVE_FREEZE_MS,
				 on_frozen, err);
}

static void on_dialled(struct agent_dial *d, struct stream *stream, const struct err *failed)
{
	struct save *s = CONTAINER_OF(d, struct save, dial);
	struct err err;

	if (!stream || agent_link_open(&s->link, stream, &err) < 0) {
		not_frozen(s, stream ? &err : failed);
		return;
	}
	steps_add(&s->machine->steps, "reached");
	agent_link_prove(&s->link, s->spec.control_token);
	if (freeze(s, &err) < 0) {
		agent_link_close(&s->link);
		not_frozen(s, &err);
	}
}

/* --- the beginning ------------------------------------------------------------------------ */

static int begin(struct save *s, int agent_socket, struct err *err)
{
	struct loop *l = s->machine->loop;

	timer_init(&s->deadline, l, on_deadline);
	if (agent_dial_start(&s->dial, l, agent_socket, &s->spec.agent, AGENT_DIAL_UP_MS,
			     s->spec.must_freeze ? SAVE_SURE_MS : SAVE_REACH_MS, on_dialled,
			     err) < 0)
		return -1;
	if (s->control < 0)
		return 0;
	return watch_open(&s->control_ready, l, s->control, WATCH_READ | WATCH_HUP, on_control,
			  err);
}

int save_start(struct save *s, struct machine *m, const struct save_spec *spec, int agent_socket,
	       int control, struct save_user *u, struct err *err)
{
	static const struct machine_user_ops ops = { on_nothing, on_nothing, on_event, on_gone };

	assert(spec->disk_only == (control < 0));
	*s = (struct save){ .user = u,
			    .machine = m,
			    .machine_user = { &ops },
			    .before = m->user,
			    .spec = *spec,
			    .control = control,
			    .asked = COPIER_VERBS };
	machine_set_user(m, &s->machine_user);
	if (begin(s, agent_socket, err) < 0) {
		release(s);
		return err_wrap(err, "save");
	}
	return 0;
}
