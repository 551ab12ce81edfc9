/* template_op.c - a template out of a kernel and a disk.
 *
 *	facts -> TEMPLATE_BEGIN -> SLOT_MAKE -> BUILD -> build (vm/) -> STOP -> sealed -> PUBLISH
 *
 * When a step fails, what was begun is taken back before the failure is told.
 */
#include "tests/driver/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "vm/build.h"

struct template_op {
	struct op *op;
	struct driver *d;
	char id[WARDEN_ID_MAX + 1], vm_id[WARDEN_ID_MAX + 1];
	struct warden_sizes sizes;
	struct warden_call call, sockets;
	struct machine machine;
	struct build *build;
	struct build_user build_user;
	struct build_spec spec;
	int kernel, disk, manifest;
	bool begun, started;
	uint32_t slot;
	struct err why;
	char qmp_path[DRIVER_PATH_MAX];
};

static void template_op_free(struct template_op *t)
{
	build_cancel(t->build);
	machine_close(&t->machine);
	warden_call_cancel(&t->call);
	warden_call_cancel(&t->sockets);
	if (t->kernel >= 0)
		close(t->kernel);
	if (t->disk >= 0)
		close(t->disk);
	if (t->manifest >= 0)
		close(t->manifest);
	free(t);
}

/* --- failing: one thing is taken back after the other ------------------------------------- */

static void take_back(struct template_op *t);

static void on_taken_back(struct warden_call *call, const struct warden_reply *reply, int *fds,
			  size_t n_fds, const struct err *err)
{
	(void)reply, (void)fds, (void)n_fds, (void)err;
	take_back(CONTAINER_OF(call, struct template_op, call));
}

static bool next_to_take_back(struct template_op *t, struct warden_request *rq)
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
		snprintf(rq->template_id, sizeof(rq->template_id), "%s", t->id);
		t->begun = false;
	} else {
		return false;
	}
	return true;
}

static void take_back(struct template_op *t)
{
	struct warden_request rq;
	struct err err;

	while (next_to_take_back(t, &rq))
		if (driver_ask(t->d, &t->call, &rq, NULL, 0, on_taken_back, &err) == 0)
			return;
	op_fail(t->op, &t->why);
	template_op_free(t);
}

static void template_fail(struct template_op *t, const struct err *why)
{
	t->why = *why;
	build_cancel(TAKE(t->build));
	warden_call_cancel(&t->call);
	warden_call_cancel(&t->sockets);
	take_back(t);
}

static void ask(struct template_op *t, const struct warden_request *rq, const int *fds, size_t n,
		void (*on_done)(struct warden_call *c, const struct warden_reply *reply, int *fds,
				size_t n_fds, const struct err *err))
{
	struct err err;

	if (driver_ask(t->d, &t->call, rq, fds, n, on_done, &err) < 0)
		template_fail(t, &err);
}

/* --- the end ------------------------------------------------------------------------------ */

static void on_published(struct warden_call *call, const struct warden_reply *reply, int *fds,
			 size_t n_fds, const struct err *err)
{
	struct template_op *t = CONTAINER_OF(call, struct template_op, call);

	(void)reply, (void)fds, (void)n_fds;
	if (err) {
		template_fail(t, err);
		return;
	}
	steps_add(&t->machine.steps, "published");
	template_learned(t->d, &t->spec.manifest);
	op_ok(t->op, json_pack("{s:s, s:s, s:o}", "template", t->id, "kernel",
			       t->spec.manifest.made_with.kernel_version, "steps",
			       steps_json(&t->machine.steps)));
	template_op_free(t);
}

static void on_built(struct build_user *u, const struct manifest *m, const struct err *err)
{
	struct template_op *t = CONTAINER_OF(u, struct template_op, build_user);
	struct warden_request rq = { .verb = WARDEN_TEMPLATE_PUBLISH };

	t->build = NULL;
	if (err) {
		template_fail(t, err);
		return;
	}
	t->spec.manifest = *m;
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", t->id);
	ask(t, &rq, NULL, 0, on_published);
}

/* --- the process has quit: the files are ours to read
 * --------------------------------------------- */

/* The folder the manifest lies in has the other files too. */
static int open_beside(int manifest, struct template_files *ret, struct err *err)
{
	AUTO(auto_close) int dir = -1;
	char link[64], path[DRIVER_PATH_MAX];
	char *slash;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", manifest);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return err_set(err, ERR_INTERNAL, errno, "find the manifest");
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return err_set(err, ERR_INTERNAL, 0, "the manifest has no folder");
	*slash = '\0';
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(err, ERR_INTERNAL, errno, "open the template's folder");
	return template_files_open(ret, dir, err);
}

static void on_stopped(struct warden_call *call, const struct warden_reply *reply, int *fds,
		       size_t n_fds, const struct err *failed)
{
	struct template_op *t = CONTAINER_OF(call, struct template_op, call);
	struct template_files files;
	struct err err;

	(void)reply, (void)fds, (void)n_fds;
	if (failed) {
		template_fail(t, failed);
		return;
	}
	t->started = false;
	t->slot = WARDEN_NO_SLOT;
	steps_add(&t->machine.steps, "ended");
	if (open_beside(t->manifest, &files, &err) < 0)
		template_fail(t, &err);
	else
		build_stopped(t->build, &files, take_fd(&t->manifest));
}

static void on_want_stop(struct build_user *u)
{
	struct template_op *t = CONTAINER_OF(u, struct template_op, build_user);
	struct warden_request rq = { .verb = WARDEN_STOP };

	snprintf(rq.id, sizeof(rq.id), "%s", t->vm_id);
	ask(t, &rq, NULL, 0, on_stopped);
}

/* --- the build
 * ------------------------------------------------------------------------------------ */

static void on_sockets(struct warden_call *call, const struct warden_reply *reply, int *fds,
		       size_t n_fds, const struct err *err)
{
	struct template_op *t = CONTAINER_OF(call, struct template_op, sockets);

	(void)reply;
	if (err) {
		build_fail(t->build, err);
		return;
	}
	for (size_t i = 0; i < n_fds && t->build; i++)
		build_socket(t->build, take_fd(&fds[i]));
}

static void on_want_sockets(struct build_user *u, size_t count)
{
	struct template_op *t = CONTAINER_OF(u, struct template_op, build_user);
	struct warden_request rq = { .verb = WARDEN_SOCKETS, .count = (uint32_t)count };
	struct err err;

	snprintf(rq.id, sizeof(rq.id), "%s", t->vm_id);
	if (driver_ask(t->d, &t->sockets, &rq, NULL, 0, on_sockets, &err) < 0)
		build_fail(t->build, &err);
}

static int begin_build(struct template_op *t, struct err *err)
{
	static const struct build_user_ops ops = { on_want_sockets, on_want_stop, on_built };
	int n = snprintf(t->qmp_path, sizeof(t->qmp_path), "%s/" WARDEN_QMP_PATH, t->d->state_dir,
			 t->vm_id);

	if (n < 0 || (size_t)n >= sizeof(t->qmp_path))
		return err_set(err, ERR_INVALID, 0, "path too long");
	t->spec.qmp_path = t->qmp_path;
	t->spec.state_file = WARDEN_STATE_FILE;
	t->spec.overlay_node = WARDEN_NODE_OVERLAY_FILE;
	t->spec.agent = t->d->agent;
	t->build_user.ops = &ops;
	return build_start(&t->machine, t->d->loop, &t->spec, &t->build_user, &t->build, err);
}

static void on_started(struct warden_call *call, const struct warden_reply *reply, int *fds,
		       size_t n_fds, const struct err *failed)
{
	struct template_op *t = CONTAINER_OF(call, struct template_op, call);
	struct err err;

	(void)reply, (void)fds, (void)n_fds;
	if (failed) {
		t->started = failed->code == ERR_TIMEOUT;
		if (!t->started)
			t->slot = WARDEN_NO_SLOT;
		template_fail(t, failed);
		return;
	}
	steps_add(&t->machine.steps, "process");
	if (begin_build(t, &err) < 0)
		template_fail(t, &err);
}

static void on_slot(struct warden_call *call, const struct warden_reply *reply, int *fds,
		    size_t n_fds, const struct err *err)
{
	struct template_op *t = CONTAINER_OF(call, struct template_op, call);
	struct warden_request rq = { .verb = WARDEN_BUILD, .sizes = t->sizes };

	(void)fds, (void)n_fds;
	if (err) {
		template_fail(t, err);
		return;
	}
	t->slot = rq.slot = reply->slot;
	t->started = true;
	snprintf(rq.id, sizeof(rq.id), "%s", t->vm_id);
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", t->id);
	ask(t, &rq, NULL, 0, on_started);
}

static void on_begun(struct warden_call *call, const struct warden_reply *reply, int *fds,
		     size_t n_fds, const struct err *failed)
{
	struct template_op *t = CONTAINER_OF(call, struct template_op, call);
	struct err err;

	(void)reply;
	if (failed) {
		template_fail(t, failed);
		return;
	}
	t->begun = true;
	if (n_fds < 1) {
		err_set(&err, ERR_INTERNAL, 0, "warden sent no manifest");
		template_fail(t, &err);
		return;
	}
	t->manifest = take_fd(&fds[0]);
	steps_add(&t->machine.steps, "begun");
	ask(t, &(struct warden_request){ .verb = WARDEN_SLOT_MAKE }, NULL, 0, on_slot);
}

static void on_facts(struct warden_call *call, const struct warden_reply *reply, int *fds,
		     size_t n_fds, const struct err *err)
{
	struct template_op *t = CONTAINER_OF(call, struct template_op, call);
	struct warden_request rq = { .verb = WARDEN_TEMPLATE_BEGIN, .sizes = t->sizes };
	const int given[] = { t->kernel, t->disk };

	(void)fds, (void)n_fds;
	if (err) {
		template_fail(t, err);
		return;
	}
	facts_of(&reply->facts, &t->sizes, &t->spec.manifest.made_with);
	snprintf(t->spec.manifest.template_id, sizeof(t->spec.manifest.template_id), "%s", t->id);
	manifest_time(clock_wall_ns(), t->spec.manifest.created);
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", t->id);
	t->kernel = t->disk = -1;
	ask(t, &rq, given, 2, on_begun);
}

/* --- the beginning
 * -------------------------------------------------------------------------------- */

static int open_file(const json_t *args, const char *name, int *ret_fd, uint64_t *ret_size,
		     struct err *err)
{
	char path[DRIVER_PATH_MAX];
	struct bytes text;
	struct stat st;

	if (json_want_string(args, name, &text, err) < 0)
		return -1;
	if (!bytes_to_str(text, path, sizeof(path)))
		return err_set(err, ERR_INVALID, 0, "%s: path too long", name);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*ret_fd < 0 || fstat(*ret_fd, &st) < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "%s: open %s", name, path);
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

static int parse(struct template_op *t, struct err *err)
{
	const json_t *args = t->op->args;
	uint64_t unused;

	t->spec.start_user = BYTES_LIT("user");
	if (id_of(args, "template", t->id, err) < 0 || sizes_of(args, &t->sizes, err) < 0 ||
	    open_file(args, "kernel", &t->kernel, &unused, err) < 0 ||
	    open_file(args, "disk", &t->disk, &t->spec.disk_bytes, err) < 0 ||
	    json_may_string(args, "startCommand", &t->spec.start_command, err) < 0 ||
	    json_may_string(args, "readyCommand", &t->spec.ready_command, err) < 0)
		return -1;
	snprintf(t->vm_id, sizeof(t->vm_id), "build-%.*s", WARDEN_ID_MAX - 6, t->id);
	return 0;
}

void run_template(struct op *o)
{
	struct template_op *t = calloc(1, sizeof(*t));
	struct warden_request rq = { .verb = WARDEN_FACTS };
	struct err err;

	if (!t)
		abort();
	t->op = o;
	t->d = o->d;
	t->sizes = DEFAULT_SIZES;
	t->kernel = t->disk = t->manifest = -1;
	t->slot = WARDEN_NO_SLOT;
	steps_begin(&t->machine.steps);
	if (parse(t, &err) < 0) {
		template_fail(t, &err);
		return;
	}
	rq.sizes = t->sizes;
	ask(t, &rq, NULL, 0, on_facts);
}
