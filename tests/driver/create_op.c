/* create_op.c - a sandbox out of a template, its continuation when it was held, and the list.
 *
 *	template checked -> slot -> RESTORE -> restore (vm/) -> answer
 *
 * When a step fails, what was begun is taken back before the failure is told.
 */
#include "tests/driver/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "base/random.h"
#include "vm/overlay_file.h"

enum { ID_LENGTH = 20 };

struct create_op {
	struct op *op;
	struct driver *d;
	struct warden_sizes sizes;
	struct template_wait wait;
	struct link_call call, socket;
	struct restore_user restore_user;
	struct sandbox *s;
	char id[WARDEN_ID_MAX + 1]; /* of the sandbox */
	bool started;               /* warden was asked to start it */
	struct err why;
	enum manifest_reason reason;
	char qmp_path[DRIVER_PATH_MAX];
	struct create_op *next_held;
};

static void create_free(struct create_op *c)
{
	link_cancel(&c->call);
	link_cancel(&c->socket);
	free(c);
}

/* --- failing ------------------------------------------------------------------------------ */

static void tell_failure(struct create_op *c)
{
	op_refuse(c->op, c->reason, &c->why);
	create_free(c);
}

static void on_taken_back(struct link_call *call, const struct link_reply *r)
{
	(void)r;
	tell_failure(CONTAINER_OF(call, struct create_op, call));
}

static void create_fail(struct create_op *c, const struct err *why)
{
	struct warden_request rq = { .verb = c->started ? WARDEN_STOP : WARDEN_SLOT_DROP };
	bool taken = c->s && c->s->slot != WARDEN_NO_SLOT;
	struct err err;

	c->why = *why;
	link_cancel(&c->call);
	link_cancel(&c->socket);
	snprintf(rq.id, sizeof(rq.id), "%s", c->started ? c->id : "");
	if (c->s) {
		rq.slot = c->s->slot;
		sandbox_drop(TAKE(c->s));
	}
	if (!taken || driver_ask(c->d, &c->call, &rq, NULL, 0, on_taken_back, &err) < 0)
		tell_failure(c);
}

/* --- success ------------------------------------------------------------------------------ */

/* What the process runs under, from the only place that knows for sure. */
static json_int_t uid_of(int32_t pid)
{
	char path[64], line[128];
	unsigned long uid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/status", pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "Uid:", 4) == 0)
			uid = strtoul(line + 4, NULL, 10);
	fclose(f);
	return (json_int_t)uid;
}

static json_t *sandbox_json(const struct sandbox *s, const char *status)
{
	const struct agent_identity *id = &s->identity;

	return json_pack("{s:s, s:s, s:i, s:I, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "sandbox",
			 s->id, "template", s->template_id, "pid", (int)s->pid, "slot",
			 (json_int_t)s->slot, "uid", uid_of(s->pid), "status", status, "hostname",
			 id->hostname, "machine_id", id->machine_id, "boot_id", id->boot_id,
			 "access_token", id->access_token, "control_token", id->control_token,
			 "steps", steps_json(&s->machine.steps));
}

static void on_restored(struct restore_user *u, const struct agent_clock *clock,
			const struct err *err)
{
	struct create_op *c = CONTAINER_OF(u, struct create_op, restore_user);
	json_t *answer;

	if (err) {
		create_fail(c, err);
		return;
	}
	machine_set_user(&c->s->machine, &c->s->machine_user);
	answer = sandbox_json(c->s, "running");
	json_object_set_new(answer, "clock",
			    json_pack("{s:I, s:I, s:i}", "offset_ns", (json_int_t)clock->offset_ns,
				      "uncertainty_us", (json_int_t)(clock->uncertainty_ns / 1000),
				      "probes", (int)clock->probes));
	op_ok(c->op, answer);
	create_free(c);
}

/* --- restoring ---------------------------------------------------------------------------- */

static void on_socket(struct link_call *call, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct create_op *c = CONTAINER_OF(call, struct create_op, socket);
	struct err err;

	if (failed) {
		restore_fail(&c->s->restore, failed);
	} else if (r->n_fds != 1) {
		err_set(&err, ERR_INTERNAL, 0, "warden sent %zu sockets", r->n_fds);
		restore_fail(&c->s->restore, &err);
	} else {
		restore_socket(&c->s->restore, take_fd(&r->fds[0]));
	}
}

static void on_want_socket(struct restore_user *u)
{
	struct create_op *c = CONTAINER_OF(u, struct create_op, restore_user);
	struct warden_request rq = { .verb = WARDEN_SOCKETS, .count = 1 };
	struct err err;

	snprintf(rq.id, sizeof(rq.id), "%s", c->id);
	if (driver_ask(c->d, &c->socket, &rq, NULL, 0, on_socket, &err) < 0)
		restore_fail(&c->s->restore, &err);
}

/* The creation is answered; `cont` finds the rest of it in the sandbox. */
static void on_held(struct restore_user *u)
{
	struct create_op *c = CONTAINER_OF(u, struct create_op, restore_user);
	json_t *answer = sandbox_json(c->s, "paused");

	json_object_set_new(answer, "held", json_true());
	op_ok(TAKE(c->op), answer);
}

static int begin_restore(struct create_op *c, struct err *err)
{
	static const struct restore_user_ops ops = { .want_socket = on_want_socket,
						     .on_held = on_held,
						     .on_done = on_restored };
	struct restore_spec spec = { .user = &c->restore_user,
				     .qmp_path = c->qmp_path,
				     .state_uri = WARDEN_STATE_URI,
				     .agent = c->d->agent,
				     .identity = &c->s->identity,
				     .check_health = true };
	struct bytes hold = { 0 };
	int n = snprintf(c->qmp_path, sizeof(c->qmp_path), "%s/" WARDEN_QMP_PATH, c->d->state_dir,
			 c->id);

	if (n < 0 || (size_t)n >= sizeof(c->qmp_path))
		return err_set(err, ERR_INVALID, 0, "path too long");
	if (json_may_string(c->op->args, "hold", &hold, err) < 0 ||
	    json_may_bool(c->op->args, "checkHealth", &spec.check_health, err) < 0)
		return -1;
	spec.hold = bytes_eq(hold, BYTES_LIT("loaded"));
	c->restore_user.ops = &ops;
	return restore_start(&c->s->restore, &c->s->machine, c->d->loop, &spec, err);
}

static void on_started(struct link_call *call, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct create_op *c = CONTAINER_OF(call, struct create_op, call);
	struct err err;

	if (failed) {
		/* warden took it back by itself, unless it never answered */
		c->started = failed->code == ERR_TIMEOUT;
		if (!c->started)
			c->s->slot = WARDEN_NO_SLOT;
		create_fail(c, failed);
		return;
	}
	steps_add(&c->s->machine.steps, "started");
	c->s->pid = (int32_t)warden_reply_of(r)->count;
	if (begin_restore(c, &err) < 0)
		create_fail(c, &err);
}

/* --- a slot ------------------------------------------------------------------------------- */

/* In a file that nobody else will find. */
static int make_overlay(const struct create_op *c, struct err *err)
{
	AUTO(auto_close) int from = -1, folder = -1;
	char path[DRIVER_PATH_MAX], name[sizeof(c->id) + 8];
	int fd;

	snprintf(path, sizeof(path), "%s/" WARDEN_TEMPLATE_PATH, c->d->state_dir,
		 c->s->template_id);
	snprintf(name, sizeof(name), "disk-%s", c->id);
	from = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	folder = open(P_tmpdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (from < 0 || folder < 0)
		return err_set(err, ERR_INTERNAL, errno, "make an overlay");
	fd = overlay_file_make(from, folder, name, err);
	if (fd >= 0)
		(void)unlinkat(folder, name, 0);
	return fd;
}

static void ask_start(struct create_op *c)
{
	struct warden_request rq = { .verb = WARDEN_RESTORE,
				     .slot = c->s->slot,
				     .sizes = c->sizes };
	struct err err;
	int overlay;

	c->s->sizes = c->sizes;
	c->s->overlay = make_overlay(c, &err);
	if (c->s->overlay < 0) {
		create_fail(c, &err);
		return;
	}
	steps_add(&c->s->machine.steps, "slot");
	snprintf(rq.id, sizeof(rq.id), "%s", c->id);
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", c->s->template_id);
	c->started = true;
	overlay = fcntl(c->s->overlay, F_DUPFD_CLOEXEC, 0);
	if (driver_ask(c->d, &c->call, &rq, &overlay, 1, on_started, &err) < 0)
		create_fail(c, &err);
}

static void on_slot(struct link_call *call, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct create_op *c = CONTAINER_OF(call, struct create_op, call);

	if (err) {
		create_fail(c, err);
		return;
	}
	c->s->slot = warden_reply_of(r)->slot;
	ask_start(c);
}

static void take_slot(struct create_op *c)
{
	const struct warden_request rq = { .verb = WARDEN_SLOT_MAKE };
	struct err err;

	if (c->d->n_slots > 0) {
		c->s->slot = c->d->slots[--c->d->n_slots];
		ask_start(c);
	} else if (driver_ask(c->d, &c->call, &rq, NULL, 0, on_slot, &err) < 0) {
		create_fail(c, &err);
	}
}

/* --- the beginning
 * -------------------------------------------------------------------------------- */

static int name_sandbox(struct create_op *c, const char *template_id, struct err *err)
{
	struct bytes given = { 0 };
	json_t *env = NULL;

	if (json_may_string(c->op->args, "sandbox", &given, err) < 0 ||
	    json_may_object(c->op->args, "env", &env, err) < 0)
		return -1;
	if (!given.ptr)
		random_name(c->id, ID_LENGTH);
	else if (!bytes_to_str(given, c->id, sizeof(c->id)))
		return err_set(err, ERR_INVALID, 0, "sandbox is too long");
	if (sandbox_find(c->d, c->id))
		return err_set(err, ERR_EXISTS, 0, "sandbox %s exists", c->id);
	c->s = sandbox_add(c->d, c->id);
	snprintf(c->s->template_id, sizeof(c->s->template_id), "%s", template_id);
	if (agent_identity_make(&c->s->identity, bytes_str(c->id), bytes_str(template_id), err) < 0)
		return -1;
	c->s->identity.env = json_incref(env);
	steps_begin(&c->s->machine.steps);
	return 0;
}

static void on_template(struct template_wait *w, const struct manifest *m,
			enum manifest_reason reason, const struct err *failed)
{
	struct create_op *c = CONTAINER_OF(w, struct create_op, wait);
	struct manifest_facts here;
	struct err err;

	c->reason = reason;
	if (failed) {
		create_fail(c, failed);
		return;
	}
	here = m->made_with;
	here.vcpus = c->sizes.vcpus;
	here.memory_mib = c->sizes.memory_mib;
	if (manifest_check(m, &here, &c->reason, &err) < 0) {
		create_fail(c, &err);
		return;
	}
	c->sizes.vcpus = m->made_with.vcpus;
	c->sizes.memory_mib = m->made_with.memory_mib;
	steps_add(&c->s->machine.steps, "template");
	take_slot(c);
}

void run_create(struct op *o)
{
	struct create_op *c = calloc(1, sizeof(*c));
	char template_id[WARDEN_ID_MAX + 1];
	struct err err;

	if (!c)
		abort();
	c->op = o;
	c->d = o->d;
	c->sizes = DEFAULT_SIZES;
	c->sizes.vcpus = c->sizes.memory_mib = 0; /* the template's, unless asked for */
	c->wait.on_done = on_template;
	if (sizes_of(o->args, &c->sizes, &err) < 0 ||
	    id_of(o->args, "template", template_id, &err) < 0 ||
	    name_sandbox(c, template_id, &err) < 0)
		create_fail(c, &err);
	else
		template_want(c->d, template_id, &c->wait);
}

void run_cont(struct op *o)
{
	char id[WARDEN_ID_MAX + 1];
	struct create_op *c;
	struct sandbox *s;
	struct err err;

	if (id_of(o->args, "sandbox", id, &err) < 0) {
		op_fail(o, &err);
		return;
	}
	s = sandbox_find(o->d, id);
	if (!s || !s->restore.user || s->machine.life.state != VM_PAUSED) {
		err_set(&err, ERR_NOT_FOUND, 0, "%s is not held", id);
		op_fail(o, &err);
		return;
	}
	c = CONTAINER_OF(s->restore.user, struct create_op, restore_user);
	if (c->op) {
		err_set(&err, ERR_EXISTS, 0, "%s is being continued", id);
		op_fail(o, &err);
		return;
	}
	c->op = o;
	steps_begin(&s->machine.steps);
	restore_go(&s->restore);
}

/* --- the list ----------------------------------------------------------------------------- */

struct list_op {
	struct link_call call;
	struct op *op;
	struct warden_request rq;
	json_t *cells;
};

static void on_list(struct link_call *call, const struct link_reply *r)
{
	const struct err *failed = r->err;
	static const char *const states[] = { "starting", "running", "stopping", "exited" };
	struct list_op *v = CONTAINER_OF(call, struct list_op, call);
	struct err err = failed ? *failed : (struct err){ 0 };

	for (size_t i = 0; !failed && i < warden_reply_of(r)->count && i < WARDEN_LIST_MAX; i++) {
		const struct warden_cell *cell = &warden_reply_of(r)->cells[i];

		json_array_append_new(
			v->cells, json_pack("{s:s#, s:s, s:I, s:i, s:I, s:b}", "sandbox", cell->id,
					    (int)strnlen(cell->id, sizeof(cell->id)), "state",
					    cell->state < COUNT(states) ? states[cell->state] : "?",
					    "slot", (json_int_t)cell->slot, "pid", (int)cell->pid,
					    "uid", (json_int_t)cell->uid, "known",
					    sandbox_find(v->op->d, cell->id) != NULL));
		memcpy(v->rq.id, cell->id, sizeof(v->rq.id));
	}
	if (!failed && warden_reply_of(r)->count == WARDEN_LIST_MAX &&
	    driver_ask(v->op->d, &v->call, &v->rq, NULL, 0, on_list, &err) == 0)
		return;
	if (err.code != ERR_NONE)
		op_fail(v->op, &err);
	else
		op_ok(v->op, json_pack("{s:O}", "sandboxes", v->cells));
	json_decref(v->cells);
	free(v);
}

void run_list(struct op *o)
{
	struct list_op *v = calloc(1, sizeof(*v));
	struct err err;

	if (!v)
		abort();
	v->op = o;
	v->rq.verb = WARDEN_LIST;
	v->cells = json_array();
	if (driver_ask(o->d, &v->call, &v->rq, NULL, 0, on_list, &err) == 0)
		return;
	op_fail(o, &err);
	json_decref(v->cells);
	free(v);
}
