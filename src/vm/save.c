/* save.c - freeze, stop, state, pages: one after the other, and what can go wrong between them. */
/* #syscalls: close */
#include "vm/save.h"

#include <assert.h>

#include "base/clock.h"

static void go_on(struct save *s);
static int dial(struct save *s, struct err *err);

static struct save *of(struct machine_user *u)
{
	return CONTAINER_OF(u, struct save, machine_user);
}

/* --- its end ------------------------------------------------------------------------------ */

static void release(struct save *s)
{
	s->user = NULL;
	agent_dial_cancel(&s->dial);
	agent_link_close(&s->link);
	copier_link_close(&s->copier);
	if (s->agent_socket >= 0)
		close(take_fd(&s->agent_socket));
	if (s->stop.link || s->call.link) /* an answer without anybody to hear it */
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

/* --- the copier --------------------------------------------------------------------------- */

/* While QEMU is still to answer, what comes next waits for that. */
static void copier_broke(struct save *s, const struct err *err)
{
	if (s->stop.link || s->call.link)
		s->broken = *err;
	else
		finish(s, err);
}

static void ask_copier(struct save *s, enum copier_verb verb)
{
	struct err err;

	if (copier_link_ask(&s->copier, verb, s->spec.base_crc, SAVE_COPY_MS, &err) < 0)
		copier_broke(s, &err);
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
	s->result.copied.took_us = s->pages_us;
	s->result.stopped_us = (clock_mono_ns() - s->stop_ns) / 1000;
	s->copied = true;
	steps_add(&s->machine->steps, "copied");
	s->user->ops->on_copied(s->user, &s->result);
}

static void on_durable(struct save *s, const struct copier_reply *r)
{
	struct err err;

	if (!is_same(r, &s->result.copied)) {
		err_set(&err, ERR_INVALID, 0, "the copier says one thing and then another");
		finish(s, &err);
		return;
	}
	steps_add(&s->machine->steps, "durable");
	finish(s, NULL);
}

static void on_answer(struct copier_link *l, enum copier_verb asked, const struct copier_reply *r,
		      const struct err *err)
{
	struct save *s = CONTAINER_OF(l, struct save, copier);

	if (err) {
		copier_broke(s, err);
	} else if (asked == COPIER_FIRST) {
		s->first = true;
		steps_add(&s->machine->steps, "first");
		go_on(s);
	} else if (asked == COPIER_COPY) {
		s->pages_us = r->took_us;
		steps_add(&s->machine->steps, "pages");
	} else if (asked == COPIER_STATE) {
		on_copied(s, r);
	} else {
		on_durable(s, r);
	}
}

void save_sync(struct save *s)
{
	assert(s->user && s->copied);
	if (!s->spec.disk_only)
		ask_copier(s, COPIER_SYNC);
	else
		finish(s, NULL);
}

void save_copier(struct save *s, int control)
{
	struct err err;

	assert(s->user && !s->spec.disk_only && !s->first);
	if (copier_link_open(&s->copier, s->machine->loop, control, on_answer, &err) < 0)
		copier_broke(s, &err);
	else
		ask_copier(s, COPIER_FIRST);
}

/* --- QEMU --------------------------------------------------------------------------------- */

/* True: there is no going on. What QEMU refused waits for its other answer. */
static bool fails(struct save *s, const struct err *err)
{
	if (!err && s->broken.code == ERR_NONE)
		return false;
	if (err && err->code != ERR_INVALID) /* not what QEMU said: it can no longer be heard */
		machine_close(s->machine);
	else if (s->call.link) {
		if (s->broken.code == ERR_NONE)
			s->broken = *err;
		return true;
	}
	finish(s, s->broken.code != ERR_NONE ? &s->broken : err);
	return true;
}

/* The copier may still be copying pages; it takes one after the other. */
static void on_state(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct save *s = CONTAINER_OF(c, struct save, call);

	(void)ret;
	if (fails(s, err))
		return;
	steps_add(&s->machine->steps, "state");
	ask_copier(s, COPIER_STATE);
}

static void on_stopped(struct qmp_call *c, const json_t *ret, const struct err *failed)
{
	struct save *s = CONTAINER_OF(c, struct save, stop);
	struct machine *m = s->machine;

	(void)ret;
	if (!failed && m->life.state != VM_PAUSED) {
		vm_life_enter(&m->life, VM_PAUSED);
		steps_add(&m->steps, "stopped");
	}
	if (fails(s, failed))
		return;
	if (s->spec.disk_only) {
		s->copied = true;
		s->user->ops->on_copied(s->user, &s->result);
	} else {
		ask_copier(s, COPIER_COPY);
	}
}

/* QEMU is asked for both at once: it need not wait for us in between. */
static void stop(struct save *s)
{
	struct err err;

	s->stop_ns = clock_mono_ns();
	steps_add(&s->machine->steps, "stop");
	if (machine_stop(s->machine, &s->stop, on_stopped, &err) < 0)
		finish(s, &err);
	else if (!s->spec.disk_only &&
		 machine_save(s->machine, &s->call, s->spec.save_file, on_state, &err) < 0)
		finish(s, &err); /* and the machine is closed: it cannot be asked */
}

/* The guest and the copier have both done their part while it runs. */
static void go_on(struct save *s)
{
	struct err err;

	if (s->guest && (s->first || s->spec.disk_only))
		stop(s);
	else if (s->first && s->agent_socket >= 0 && dial(s, &err) < 0)
		finish(s, &err);
}

/* A disk that is to be kept alone must have all that the guest held. One that keeps its memory
 * writes what it could not when it goes on. */
static void on_event(struct machine_user *mu, const struct qmp_message *event)
{
	struct save *s = of(mu);
	struct bytes why;
	struct err err;

	if (machine_shut_down(event, &why))
		err_set(&err, ERR_UNAVAILABLE, 0, "the guest has ended");
	else if (s->spec.disk_only && !s->copied && machine_no_space(event))
		err_set(&err, ERR_NO_SPACE, 0, "the host's disk is full");
	else
		return;
	if (s->call.link)
		s->broken = err;
	else
		finish(s, &err);
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
		s->guest = true;
		go_on(s);
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
	s->guest = true;
	go_on(s);
}

static int freeze(struct save *s, struct err *err)
{
	if (s->spec.disk_only || s->spec.flush)
		return agent_link_ask(&s->link, AGENT_FREEZE_DISK, SAVE_FLUSH_MS, on_frozen, err);
	if (s->spec.must_freeze)
		return agent_link_ask(&s->link, AGENT_FREEZE_SURELY, SAVE_SURE_MS, on_frozen, err);
	return agent_link_ask(&s->link, AGENT_FREEZE, SAVE_FREEZE_MS, on_frozen, err);
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

static int dial(struct save *s, struct err *err)
{
	return agent_dial_start(
		&s->dial,
		&(struct agent_dial_spec){ s->machine->loop, take_fd(&s->agent_socket),
					   &s->spec.agent, AGENT_DIAL_UP_MS,
					   s->spec.must_freeze ? SAVE_SURE_MS : SAVE_REACH_MS },
		on_dialled, err);
}

int save_start(struct save *s, struct machine *m, const struct save_spec *spec, int agent_socket,
	       struct err *err)
{
	static const struct machine_user_ops ops = { .on_event = on_event, .on_gone = on_gone };

	*s = (struct save){ .user = spec->user,
			    .machine = m,
			    .machine_user = { &ops },
			    .before = m->user,
			    .spec = *spec,
			    .agent_socket = agent_socket };
	machine_set_user(m, &s->machine_user);
	if (spec->must_freeze && !spec->disk_only)
		return 0; /* nobody is frozen for longer than need be: the first pass comes first */
	if (dial(s, err) < 0) {
		release(s);
		return err_wrap(err, "save");
	}
	return 0;
}
