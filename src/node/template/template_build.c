/* template_build.c - one step after the other, and the way back. */
/* #syscalls: readlink openat fstat newfstatat close */
#include "node/template/template_build.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"

enum { SIZES_MAX = 64 };

struct template_build {
	struct template_build_spec spec;
	struct template_build_user *user;
	char vm_id[WARDEN_ID_MAX + 1];
	struct link_call call, sockets;
	struct machine machine;
	struct build *build;
	struct build_user build_user;
	struct build_spec build_spec;
	int manifest;
	bool begun, started;
	uint32_t slot;
	struct err why;
	char qmp_path[TEMPLATE_PATH_MAX];
};

const char *template_build_vm(const struct template_build *b)
{
	return b->vm_id;
}

const char *template_build_reached(const struct template_build *b)
{
	const struct steps *s = &b->machine.steps;

	return s->n > 0 ? s->at[s->n - 1].name : "";
}

void template_build_cancel(struct template_build *t)
{
	if (!t)
		return;
	build_cancel(t->build);
	machine_close(&t->machine);
	link_cancel(&t->call);
	link_cancel(&t->sockets);
	if (t->spec.kernel >= 0)
		close(t->spec.kernel);
	if (t->spec.disk >= 0)
		close(t->spec.disk);
	if (t->manifest >= 0)
		close(t->manifest);
	free(t);
}

static int ask_warden(struct template_build *t, const struct warden_request *rq, const int *fds,
		      size_t n, link_done_fn *on_done, struct err *err)
{
	const struct warden_asked what = { rq, fds, n, WARDEN_TEMPLATE_MS };

	return warden_once_fds(t->spec.warden, &t->call, &what, on_done, err);
}

static void finish(struct template_build *t, const struct manifest *m, const struct err *err)
{
	struct template_build_user *u = t->user;
	struct manifest made;
	struct err why;

	if (m)
		made = *m;
	if (err)
		why = *err;
	template_build_cancel(t);
	u->ops->on_done(u, m ? &made : NULL, err ? &why : NULL);
}

/* --- failing: one thing is taken back after the other ------------------------------------- */

static void take_back(struct template_build *t);

static void on_taken_back(struct link_call *call, const struct link_reply *r)
{
	(void)r;
	take_back(CONTAINER_OF(call, struct template_build, call));
}

static bool next_to_take_back(struct template_build *t, struct warden_request *rq)
{
	*rq = (struct warden_request){ .slot = WARDEN_NO_SLOT };
	if (t->started) {
		rq->verb = WARDEN_STOP;
		snprintf(rq->id, sizeof(rq->id), "%s", t->vm_id);
		t->started = false;
		t->slot = WARDEN_NO_SLOT; /* goes with it */
	} else if (t->slot != WARDEN_NO_SLOT) {
		rq->verb = WARDEN_SLOT_DROP;
		rq->slot = t->slot;
		t->slot = WARDEN_NO_SLOT;
	} else if (t->begun) {
		rq->verb = WARDEN_TEMPLATE_DROP;
		snprintf(rq->template_id, sizeof(rq->template_id), "%s", t->spec.id);
		t->begun = false;
	} else {
		return false;
	}
	return true;
}

static void take_back(struct template_build *t)
{
	struct warden_request rq;
	struct err err;

	while (next_to_take_back(t, &rq))
		if (ask_warden(t, &rq, NULL, 0, on_taken_back, &err) == 0)
			return;
	finish(t, NULL, &t->why);
}

static void template_fail(struct template_build *t, const struct err *why)
{
	t->why = *why;
	build_cancel(TAKE(t->build));
	link_cancel(&t->call);
	link_cancel(&t->sockets);
	take_back(t);
}

static void ask(struct template_build *t, const struct warden_request *rq, const int *fds, size_t n,
		link_done_fn *on_done)
{
	struct err err;

	if (ask_warden(t, rq, fds, n, on_done, &err) < 0)
		template_fail(t, &err);
}

/* --- the end ------------------------------------------------------------------------------ */

static void on_published(struct link_call *call, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct template_build *t = CONTAINER_OF(call, struct template_build, call);
	char times[STEPS_TEXT_SIZE];

	if (err) {
		template_fail(t, err);
		return;
	}
	steps_add(&t->machine.steps, "published");
	steps_text(&t->machine.steps, times);
	log_info("template %s, in ms:%s", t->spec.id, times);
	finish(t, &t->build_spec.manifest, NULL);
}

static void on_built(struct build_user *u, const struct manifest *m, const struct err *err)
{
	struct template_build *t = CONTAINER_OF(u, struct template_build, build_user);
	struct warden_request rq = { .verb = WARDEN_TEMPLATE_PUBLISH };

	t->build = NULL;
	if (err) {
		template_fail(t, err);
		return;
	}
	t->build_spec.manifest = *m;
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", t->spec.id);
	ask(t, &rq, NULL, 0, on_published);
}

/* --- the process has quit: the files are ours to read ------------------------------------- */

static int open_files(const struct template_build *t, struct template_files *ret, struct err *err)
{
	AUTO(auto_close) int dir = -1;
	char path[TEMPLATE_PATH_MAX], name[sizeof(WARDEN_OPEN_PREFIX) + WARDEN_ID_MAX];
	int n;

	snprintf(name, sizeof(name), WARDEN_OPEN_PREFIX "%.*s", WARDEN_ID_MAX, t->spec.id);
	n = snprintf(path, sizeof(path), "%s/" WARDEN_TEMPLATE_PATH, t->spec.state_dir, name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(err, ERR_INVALID, 0, "path too long");
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(err, ERR_INTERNAL, errno, "open the template's folder '%s'", path);
	return template_files_open(ret, dir, err);
}

static void on_stopped(struct link_call *call, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct template_build *t = CONTAINER_OF(call, struct template_build, call);
	struct template_files files;
	struct err err;

	if (failed) {
		template_fail(t, failed);
		return;
	}
	t->started = false;
	t->slot = WARDEN_NO_SLOT;
	steps_add(&t->machine.steps, "ended");
	if (open_files(t, &files, &err) < 0)
		template_fail(t, &err);
	else
		build_stopped(t->build, &files, take_fd(&t->manifest));
}

static void on_want_stop(struct build_user *u)
{
	struct template_build *t = CONTAINER_OF(u, struct template_build, build_user);
	struct warden_request rq = { .verb = WARDEN_STOP };

	snprintf(rq.id, sizeof(rq.id), "%s", t->vm_id);
	ask(t, &rq, NULL, 0, on_stopped);
}

/* --- the build ---------------------------------------------------------------------------- */

static void on_sockets(struct link_call *call, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct template_build *t = CONTAINER_OF(call, struct template_build, sockets);

	if (err) {
		build_fail(t->build, err);
		return;
	}
	for (size_t i = 0; i < r->n_fds && t->build; i++)
		build_socket(t->build, take_fd(&r->fds[i]));
}

static void on_want_socket(struct build_user *u)
{
	struct template_build *t = CONTAINER_OF(u, struct template_build, build_user);
	struct warden_request rq = { .verb = WARDEN_SOCKETS, .count = 1 };
	struct err err;

	snprintf(rq.id, sizeof(rq.id), "%s", t->vm_id);
	if (warden_once(t->spec.warden, &t->sockets, &rq, on_sockets, &err) < 0)
		build_fail(t->build, &err);
}

static int begin_build(struct template_build *t, struct err *err)
{
	static const struct build_user_ops ops = { on_want_socket, on_want_stop, on_built };
	int n = snprintf(t->qmp_path, sizeof(t->qmp_path), "%s/" WARDEN_QMP_PATH, t->spec.state_dir,
			 t->vm_id);

	if (n < 0 || (size_t)n >= sizeof(t->qmp_path))
		return err_set(err, ERR_INVALID, 0, "path too long");
	t->build_spec.user = &t->build_user;
	t->build_spec.qmp_path = t->qmp_path;
	t->build_spec.state_file = WARDEN_STATE_FILE;
	t->build_spec.overlay_node = WARDEN_NODE_OVERLAY_FILE;
	t->build_spec.agent = t->spec.agent;
	t->build_user.ops = &ops;
	return build_start(&t->machine, t->spec.loop, &t->build_spec, &t->build, err);
}

static void on_started(struct link_call *call, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct template_build *t = CONTAINER_OF(call, struct template_build, call);
	struct err err;

	if (failed) {
		t->started = failed->code == ERR_TIMEOUT || failed->code == ERR_UNAVAILABLE;
		if (!t->started)
			t->slot = WARDEN_NO_SLOT;
		template_fail(t, failed);
		return;
	}
	steps_add(&t->machine.steps, "process");
	if (begin_build(t, &err) < 0)
		template_fail(t, &err);
}

static void on_slot(struct link_call *call, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct template_build *t = CONTAINER_OF(call, struct template_build, call);
	struct warden_request rq = { .verb = WARDEN_BUILD, .sizes = t->spec.sizes };

	if (err) {
		template_fail(t, err);
		return;
	}
	t->slot = rq.slot = warden_reply_of(r)->slot;
	t->started = true;
	snprintf(rq.id, sizeof(rq.id), "%s", t->vm_id);
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", t->spec.id);
	ask(t, &rq, NULL, 0, on_started);
}

static void on_begun(struct link_call *call, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct template_build *t = CONTAINER_OF(call, struct template_build, call);
	struct err err;

	if (failed) {
		template_fail(t, failed);
		return;
	}
	t->begun = true;
	if (r->n_fds < 1) {
		err_set(&err, ERR_INTERNAL, 0, "warden sent no manifest");
		template_fail(t, &err);
		return;
	}
	t->manifest = take_fd(&r->fds[0]);
	steps_add(&t->machine.steps, "begun");
	ask(t, &(struct warden_request){ .verb = WARDEN_SLOT_MAKE }, NULL, 0, on_slot);
}

static void on_cleared(struct link_call *call, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct template_build *t = CONTAINER_OF(call, struct template_build, call);
	struct warden_request rq = { .verb = WARDEN_TEMPLATE_BEGIN, .sizes = t->spec.sizes };
	const int given[] = { t->spec.kernel, t->spec.disk };

	if (err && err->code != ERR_NOT_FOUND) {
		template_fail(t, err);
		return;
	}
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", t->spec.id);
	t->spec.kernel = t->spec.disk = -1;
	ask(t, &rq, given, 2, on_begun);
}

void template_facts(const struct warden_facts *f, const struct warden_sizes *s,
		    struct manifest_facts *ret)
{
	*ret = (struct manifest_facts){ .vcpus = s->vcpus, .memory_mib = s->memory_mib };
	snprintf(ret->vmm_version, sizeof(ret->vmm_version), "%.*s",
		 (int)sizeof(f->vmm_version) - 1, f->vmm_version);
	snprintf(ret->cpu_model, sizeof(ret->cpu_model), "%.*s", (int)sizeof(f->cpu_model) - 1,
		 f->cpu_model);
	snprintf(ret->accel, sizeof(ret->accel), "%.*s", (int)sizeof(f->accel) - 1, f->accel);
	snprintf(ret->arguments, sizeof(ret->arguments), "%.*s", (int)sizeof(f->arguments) - 1,
		 f->arguments);
}

/* Where the sizes are not found the arguments stay as they are, and fit nothing of other sizes. */
void template_facts_resize(struct manifest_facts *f, uint32_t vcpus, uint32_t memory_mib)
{
	char was[SIZES_MAX], is[SIZES_MAX], rest[sizeof(f->arguments)];
	char *at;
	size_t room;

	snprintf(was, sizeof(was), " " WARDEN_SIZES_TEXT " ", f->vcpus, f->memory_mib);
	snprintf(is, sizeof(is), " " WARDEN_SIZES_TEXT " ", vcpus, memory_mib);
	f->vcpus = vcpus;
	f->memory_mib = memory_mib;
	at = strstr(f->arguments, was);
	if (!at)
		return;
	snprintf(rest, sizeof(rest), "%s", at + strlen(was));
	room = sizeof(f->arguments) - (size_t)(at - f->arguments);
	snprintf(at, room, "%s%s", is, rest);
}

/* --- the beginning ------------------------------------------------------------------------ */

static int describe(struct template_build *t, struct err *err)
{
	struct manifest *m = &t->build_spec.manifest;
	struct stat st;

	if (fstat(t->spec.disk, &st) < 0)
		return err_set(err, ERR_INTERNAL, errno, "look at the disk");
	t->build_spec.disk_bytes = (uint64_t)st.st_size;
	t->build_spec.provision = t->spec.provision;
	t->build_spec.ca = t->spec.ca;
	t->build_spec.ask_packages = t->spec.ask_packages;
	t->build_spec.start_user = t->spec.user.len > 0 ? t->spec.user : BYTES_LIT("user");
	t->build_spec.start_command = t->spec.start_command;
	t->build_spec.ready_command = t->spec.ready_command;
	m->made_with = t->spec.facts;
	snprintf(m->template_id, sizeof(m->template_id), "%s", t->spec.id);
	manifest_time(clock_wall_ns(), m->created);
	snprintf(t->vm_id, sizeof(t->vm_id), "build-%.*s", WARDEN_ID_MAX - 6, t->spec.id);
	return 0;
}

/* A broken build of an earlier node may have left something: that goes first. */
int template_build_start(const struct template_build_spec *spec, struct template_build_user *u,
			 struct template_build **ret, struct err *err)
{
	struct warden_request rq = { .verb = WARDEN_TEMPLATE_DROP };
	struct template_build *t = calloc(1, sizeof(*t));

	if (!t) {
		close(spec->kernel);
		close(spec->disk);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate a build");
	}
	t->spec = *spec;
	t->user = u;
	t->manifest = -1;
	t->slot = WARDEN_NO_SLOT;
	steps_begin(&t->machine.steps);
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", spec->id);
	if (describe(t, err) < 0 || ask_warden(t, &rq, NULL, 0, on_cleared, err) < 0) {
		template_build_cancel(t);
		return -1;
	}
	*ret = t;
	return 0;
}
