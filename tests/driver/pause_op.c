/* pause_op.c - a running sandbox into files, and again out of them.
 *
 *	pause:   copier and socket from warden -> save (vm/) -> VM stopped, or thawed -> answer
 *	resume:  slot -> RESTORE -> restore (vm/), with a copier that applies the pages -> answer
 *
 * The sandbox stays this driver's all the time: its identity and its disk are kept in between.
 */
#include "tests/driver/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "vm/save.h"
#include "vm/thaw.h"

struct pause_op {
	struct op *op;
	struct driver *d;
	struct sandbox *s;
	struct link_call call, socket;
	struct save save;
	struct save_user save_user;
	struct thaw thaw;
	struct restore_user restore_user;
	struct watch answered;
	int control, pages, state; /* -1: none */
	bool go_on, boot, disk_only;
	int64_t wait_ms; /* between `cont` and the identity */
	struct timer waited;
	json_t *answer;
	struct err why;
	char qmp_path[DRIVER_PATH_MAX];
};

typedef void answer_fn(struct link_call *c, const struct link_reply *r);

static void pause_free(struct pause_op *p)
{
	link_cancel(&p->call);
	link_cancel(&p->socket);
	watch_close(&p->answered);
	timer_stop(&p->waited);
	auto_close(&p->control);
	auto_close(&p->pages);
	auto_close(&p->state);
	json_decref(p->answer);
	free(p);
}

static void pause_fail(struct pause_op *p, const struct err *err)
{
	op_fail(p->op, err);
	pause_free(p);
}

static void pause_ok(struct pause_op *p)
{
	op_ok(p->op, TAKE(p->answer));
	pause_free(p);
}

static void ask(struct pause_op *p, struct warden_request *rq, const int *fds, size_t n,
		answer_fn *on_done)
{
	struct err err;

	snprintf(rq->id, sizeof(rq->id), "%s", p->s->id);
	if (driver_ask(p->d, &p->call, rq, fds, n, on_done, &err) == 0)
		return;
	if (p->s->restore.user)
		restore_fail(&p->s->restore, &err);
	else
		pause_fail(p, &err);
}

static int open_path(const json_t *args, const char *name, int flags, struct err *err)
{
	char path[DRIVER_PATH_MAX];
	struct bytes text;
	int fd;

	if (json_want_string(args, name, &text, err) < 0)
		return -1;
	if (!bytes_to_str(text, path, sizeof(path)))
		return err_set(err, ERR_INVALID, 0, "%s: path too long", name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	return fd < 0 ? err_set(err, ERR_NOT_FOUND, errno, "%s: open %s", name, path) : fd;
}

static int open_memory(const struct pause_op *p)
{
	char path[DRIVER_PATH_MAX];

	snprintf(path, sizeof(path), "%s/" WARDEN_TEMPLATE_PATH "/memory", p->d->state_dir,
		 p->s->template_id);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Its end of the socket goes to warden with the files, whatever becomes of them. */
static void start_copier(struct pause_op *p, uint32_t flags, answer_fn *on_started)
{
	struct warden_request rq = { .verb = WARDEN_COPY, .flags = flags };
	int pair[2], fds[COPIER_FDS];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		abort();
	p->control = pair[0];
	fds[COPIER_FD_CONTROL] = pair[1];
	fds[COPIER_FD_PAGES] = take_fd(&p->pages);
	fds[COPIER_FD_MEMORY] = open_memory(p);
	fds[COPIER_FD_STATE] = flags & WARDEN_APPLY ? open_memory(p) : take_fd(&p->state);
	ask(p, &rq, fds, COPIER_FDS, on_started);
}

/* --- the end of a pause ------------------------------------------------------------------- */

static void on_stopped(struct link_call *call, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct pause_op *p = CONTAINER_OF(call, struct pause_op, call);

	if (err)
		pause_fail(p, err);
	else
		pause_ok(p);
}

static void on_thawed(struct thaw *t, const struct err *err)
{
	struct pause_op *p = CONTAINER_OF(t, struct pause_op, thaw);

	json_object_set_new(p->answer, "steps", steps_json(&p->s->machine.steps));
	if (err)
		pause_fail(p, err);
	else if (p->why.code != ERR_NONE)
		pause_fail(p, &p->why);
	else
		pause_ok(p);
}

static void on_thaw_socket(struct link_call *call, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct pause_op *p = CONTAINER_OF(call, struct pause_op, call);
	struct err err;

	if (failed || r->n_fds != 1) {
		err_set(&err, ERR_INTERNAL, 0, "no socket from warden");
		pause_fail(p, &err);
		return;
	}
	p->s->identity.resume = true;
	agent_identity_refresh(&p->s->identity);
	if (thaw_start(&p->thaw,
		       &(struct thaw_spec){ &p->s->machine, &p->d->agent, take_fd(&r->fds[0]),
					    &p->s->identity },
		       on_thawed, &err) < 0)
		pause_fail(p, &err);
}

static void thaw(struct pause_op *p)
{
	struct warden_request rq = { .verb = WARDEN_SOCKETS, .count = 1 };

	ask(p, &rq, NULL, 0, on_thaw_socket);
}

static void stop(struct pause_op *p)
{
	struct warden_request rq = { .verb = WARDEN_STOP };

	machine_close(&p->s->machine);
	p->s->machine = (struct machine){ 0 };
	p->s->slot = WARDEN_NO_SLOT;
	ask(p, &rq, NULL, 0, on_stopped);
}

static json_t *saved_json(const struct pause_op *p, const struct save_result *r)
{
	const struct copier_reply *c = &r->copied;

	return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "frozen", (int)r->frozen,
			 "stopped_us", (json_int_t)r->stopped_us, "pages", (json_int_t)c->pages,
			 "zero_pages", (json_int_t)c->zero_pages, "pages_bytes",
			 (json_int_t)c->pages_bytes, "state_bytes", (json_int_t)c->state_bytes,
			 "copier_us", (json_int_t)c->took_us, "steps",
			 steps_json(&p->s->machine.steps));
}

/* --- saving ------------------------------------------------------------------------------- */

static void on_copied(struct save_user *u, const struct save_result *r)
{
	struct pause_op *p = CONTAINER_OF(u, struct pause_op, save_user);

	(void)r;
	(void)fdatasync(p->s->overlay); /* nothing else is under way in a test */
	save_sync(&p->save);
}

static void on_saved(struct save_user *u, const struct save_result *r, const struct err *err)
{
	struct pause_op *p = CONTAINER_OF(u, struct pause_op, save_user);

	p->answer = saved_json(p, r);
	if (err)
		p->why = *err;
	if (err && p->s->machine.life.state == VM_GONE)
		pause_fail(p, err);
	else if (err || p->go_on)
		thaw(p);
	else
		stop(p);
}

static void on_socket(struct link_call *call, const struct link_reply *r)
{
	const struct err *failed = r->err;
	static const struct save_user_ops ops = { on_copied, on_saved };
	struct pause_op *p = CONTAINER_OF(call, struct pause_op, call);
	const struct save_spec spec = { .user = &p->save_user,
					.agent = p->d->agent,
					.control_token = p->s->identity.control_token,
					.save_file = WARDEN_SAVE_FILE,
					.disk_only = p->disk_only };
	struct err err;

	if (failed || r->n_fds != 1) {
		err_set(&err, ERR_INTERNAL, 0, "no socket from warden");
		pause_fail(p, failed ? failed : &err);
		return;
	}
	steps_begin(&p->s->machine.steps);
	p->save_user.ops = &ops;
	if (save_start(&p->save, &p->s->machine, &spec, take_fd(&r->fds[0]), &err) < 0)
		pause_fail(p, &err);
	else if (!p->disk_only)
		save_copier(&p->save, take_fd(&p->control));
}

static void ask_socket(struct pause_op *p)
{
	struct warden_request rq = { .verb = WARDEN_SOCKETS, .count = 1 };

	ask(p, &rq, NULL, 0, on_socket);
}

static void on_copier(struct link_call *call, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct pause_op *p = CONTAINER_OF(call, struct pause_op, call);

	if (err)
		pause_fail(p, err);
	else
		ask_socket(p);
}

static struct pause_op *begin(struct op *o)
{
	struct pause_op *p = calloc(1, sizeof(*p));
	char id[WARDEN_ID_MAX + 1];
	struct err err;

	if (!p)
		abort();
	*p = (struct pause_op){ .op = o, .d = o->d, .control = -1, .pages = -1, .state = -1 };
	if (id_of(o->args, "sandbox", id, &err) == 0 &&
	    json_may_bool(o->args, "goOn", &p->go_on, &err) == 0 &&
	    json_may_bool(o->args, "diskOnly", &p->disk_only, &err) == 0) {
		p->s = sandbox_find(o->d, id);
		if (p->s)
			return p;
		err_set(&err, ERR_NOT_FOUND, 0, "sandbox %s is not of this driver", id);
	}
	pause_fail(p, &err);
	return NULL;
}

void run_pause(struct op *o)
{
	struct pause_op *p = begin(o);
	struct err err;

	if (!p)
		return;
	if (p->disk_only) {
		ask_socket(p);
		return;
	}
	p->pages = open_path(o->args, "pages", O_RDWR | O_CREAT | O_TRUNC, &err);
	p->state =
		p->pages < 0 ? -1 : open_path(o->args, "state", O_RDWR | O_CREAT | O_TRUNC, &err);
	if (p->state < 0)
		pause_fail(p, &err);
	else
		start_copier(p, 0, on_copier);
}

/* --- resuming ----------------------------------------------------------------------------- */

static struct pause_op *of_restore(struct restore_user *u)
{
	return CONTAINER_OF(u, struct pause_op, restore_user);
}

static void on_restored(struct restore_user *u, const struct agent_clock *clock,
			const struct err *err)
{
	struct pause_op *p = of_restore(u);

	if (err) {
		pause_fail(p, err);
		return;
	}
	machine_set_user(&p->s->machine, &p->s->machine_user);
	p->answer = json_pack("{s:s, s:i, s:I, s:o}", "sandbox", p->s->id, "pid", (int)p->s->pid,
			      "uncertainty_us", (json_int_t)(clock->uncertainty_ns / 1000), "steps",
			      steps_json(&p->s->machine.steps));
	pause_ok(p);
}

static void on_restore_socket(struct link_call *call, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct pause_op *p = CONTAINER_OF(call, struct pause_op, socket);
	struct err err;

	err_set(&err, ERR_INTERNAL, 0, "no socket from warden");
	if (failed || r->n_fds != 1)
		restore_fail(&p->s->restore, failed ? failed : &err);
	else
		restore_socket(&p->s->restore, take_fd(&r->fds[0]));
}

static void want_socket(struct restore_user *u)
{
	struct pause_op *p = of_restore(u);
	struct warden_request rq = { .verb = WARDEN_SOCKETS, .count = 1 };
	struct err err;

	snprintf(rq.id, sizeof(rq.id), "%s", p->s->id);
	if (driver_ask(p->d, &p->socket, &rq, NULL, 0, on_restore_socket, &err) < 0)
		restore_fail(&p->s->restore, &err);
}

static void on_applied(struct watch *w, unsigned int events)
{
	struct pause_op *p = CONTAINER_OF(w, struct pause_op, answered);
	struct copier_reply r = { .code = ERR_UNAVAILABLE };
	struct err err;

	(void)events;
	if (recv(p->control, &r, sizeof(r), MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return;
	watch_close(&p->answered);
	close(take_fd(&p->control));
	if (r.code == ERR_NONE) {
		restore_applied(&p->s->restore);
		return;
	}
	err_set(&err, ERR_INVALID, 0, "copier: %.*s", (int)strnlen(r.msg, sizeof(r.msg)), r.msg);
	restore_fail(&p->s->restore, &err);
}

static void on_apply(struct link_call *call, const struct link_reply *r)
{
	const struct err *failed = r->err;
	const struct copier_request rq = { .version = COPIER_VERSION, .verb = COPIER_APPLY };
	struct pause_op *p = CONTAINER_OF(call, struct pause_op, call);
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, 0, "the copier cannot be asked");
	if (failed)
		restore_fail(&p->s->restore, failed);
	else if (send(p->control, &rq, sizeof(rq), MSG_NOSIGNAL) != (ssize_t)sizeof(rq) ||
		 watch_open(&p->answered, p->d->loop, p->control, WATCH_READ | WATCH_HUP,
			    on_applied, &err) < 0)
		restore_fail(&p->s->restore, &err);
}

static void want_apply(struct restore_user *u)
{
	start_copier(of_restore(u), WARDEN_APPLY, on_apply);
}

static void on_waited(struct timer *t)
{
	struct pause_op *p = CONTAINER_OF(t, struct pause_op, waited);

	restore_identity(&p->s->restore, &p->s->identity);
}

static void on_waiting(struct restore_user *u)
{
	struct pause_op *p = of_restore(u);

	timer_init(&p->waited, p->d->loop, on_waited);
	timer_start(&p->waited, (uint64_t)p->wait_ms);
}

static void on_started(struct link_call *call, const struct link_reply *r)
{
	const struct err *failed = r->err;
	static const struct restore_user_ops ops = { .want_apply = want_apply,
						     .want_socket = want_socket,
						     .on_done = on_restored,
						     .on_waiting = on_waiting };
	struct pause_op *p = CONTAINER_OF(call, struct pause_op, call);
	const struct restore_spec spec = { .user = &p->restore_user,
					   .qmp_path = p->qmp_path,
					   .state_uri = WARDEN_STATE_URI,
					   .agent = p->d->agent,
					   .identity = p->wait_ms ? NULL : &p->s->identity,
					   .check_health = true,
					   .apply = !p->boot,
					   .boot = p->boot };
	struct err err;

	if (failed) {
		pause_fail(p, failed);
		return;
	}
	steps_add(&p->s->machine.steps, "started");
	p->s->pid = (int32_t)warden_reply_of(r)->count;
	p->s->identity.resume = !p->boot;
	agent_identity_refresh(&p->s->identity);
	snprintf(p->qmp_path, sizeof(p->qmp_path), "%s/" WARDEN_QMP_PATH, p->d->state_dir,
		 p->s->id);
	p->restore_user.ops = &ops;
	if (restore_start(&p->s->restore, &p->s->machine, p->d->loop, &spec, &err) < 0)
		pause_fail(p, &err);
}

static void on_slot(struct link_call *call, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct pause_op *p = CONTAINER_OF(call, struct pause_op, call);
	struct warden_request rq = { .verb = WARDEN_RESTORE,
				     .sizes = p->s->sizes,
				     .flags = p->boot ? WARDEN_BOOT : 0 };
	int given[2];

	if (err) {
		pause_fail(p, err);
		return;
	}
	p->s->slot = rq.slot = warden_reply_of(r)->slot;
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", p->s->template_id);
	given[WARDEN_FD_OVERLAY] = fcntl(p->s->overlay, F_DUPFD_CLOEXEC, 0);
	given[WARDEN_FD_STATE] = take_fd(&p->state);
	ask(p, &rq, given, p->boot ? 1 : 2, on_started);
}

void run_resume(struct op *o)
{
	struct pause_op *p = begin(o);
	struct warden_request rq = { .verb = WARDEN_SLOT_MAKE };
	struct err err = { 0 };

	if (!p)
		return;
	if (p->s->machine.life.state != VM_NEW)
		err_set(&err, ERR_EXISTS, 0, "%s is not paused", p->s->id);
	else if (json_may_bool(o->args, "boot", &p->boot, &err) == 0 &&
		 json_may_int(o->args, "waitMs", 0, RESTORE_MS, &p->wait_ms, &err) == 0 &&
		 !p->boot) {
		p->pages = open_path(o->args, "pages", O_RDONLY, &err);
		p->state = p->pages < 0 ? -1 : open_path(o->args, "state", O_RDONLY, &err);
	}
	if (err.code != ERR_NONE) {
		pause_fail(p, &err);
		return;
	}
	steps_begin(&p->s->machine.steps);
	ask(p, &rq, NULL, 0, on_slot);
}
