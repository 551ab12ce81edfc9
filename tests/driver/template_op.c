/* template_op.c - a template out of a kernel and a disk, by node's own template_build.
 *
 * On a connection to warden of its own, which ends with the operation.
 */
#include "tests/driver/driver.h"

#include <errno.h>
#include <fcntl.h>

struct template_op {
	struct op *op;
	char id[WARDEN_ID_MAX + 1];
	struct warden_client warden;
	struct timer begin; /* not from inside on_up: it may end at once */
	struct template_build *build;
	struct template_build_user build_user;
	struct template_build_spec spec;
};

static void on_free(struct timer *timer)
{
	free(CONTAINER_OF(timer, struct template_op, begin));
}

static void template_op_free(struct template_op *t)
{
	timer_stop(&t->begin);
	template_build_cancel(t->build);
	warden_client_close(&t->warden);
	auto_close(&t->spec.kernel);
	auto_close(&t->spec.disk);
	/* its link may be in the middle of telling us */
	timer_init(&t->begin, t->spec.loop, on_free);
	timer_start(&t->begin, 0);
}

static void template_fail(struct template_op *t, const struct err *why)
{
	op_fail(t->op, why);
	template_op_free(t);
}

static void on_built(struct template_build_user *u, const struct manifest *m, const struct err *err)
{
	struct template_op *t = CONTAINER_OF(u, struct template_op, build_user);

	t->build = NULL;
	if (err) {
		template_fail(t, err);
		return;
	}
	template_learned(t->op->d, m);
	op_ok(t->op,
	      json_pack("{s:s, s:s}", "template", t->id, "kernel", m->made_with.kernel_version));
	template_op_free(t);
}

static void on_begin(struct timer *timer)
{
	static const struct template_build_user_ops ops = { on_built };
	struct template_op *t = CONTAINER_OF(timer, struct template_op, begin);
	struct template_build_spec spec = t->spec;
	struct err err;

	template_facts(&t->warden.facts, &spec.sizes, &spec.facts);
	t->spec.kernel = t->spec.disk = -1;
	t->build_user.ops = &ops;
	if (template_build_start(&spec, &t->build_user, &t->build, &err) < 0)
		template_fail(t, &err);
}

static void on_up(struct warden_client *k)
{
	struct template_op *t = CONTAINER_OF(k, struct template_op, warden);

	if (!t->build) /* else it came back, and the build fails */
		timer_start(&t->begin, 0);
}

static void on_down(struct warden_client *k)
{
	(void)k;
}

static int open_file(const json_t *args, const char *name, int *ret_fd, struct err *err)
{
	char path[DRIVER_PATH_MAX];
	struct bytes text;

	if (json_want_string(args, name, &text, err) < 0)
		return -1;
	if (!bytes_to_str(text, path, sizeof(path)))
		return err_set(err, ERR_INVALID, 0, "%s: path too long", name);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*ret_fd < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "%s: open %s", name, path);
	return 0;
}

static int parse(struct template_op *t, struct err *err)
{
	const json_t *args = t->op->args;
	struct template_build_spec *s = &t->spec;

	if (id_of(args, "template", t->id, err) < 0 || sizes_of(args, &s->sizes, err) < 0 ||
	    open_file(args, "kernel", &s->kernel, err) < 0 ||
	    open_file(args, "disk", &s->disk, err) < 0 ||
	    json_may_string(args, "startCommand", &s->start_command, err) < 0)
		return -1;
	return json_may_string(args, "readyCommand", &s->ready_command, err);
}

void run_template(struct op *o)
{
	static const struct warden_client_ops ops = { on_up, on_down };
	struct template_op *t = calloc(1, sizeof(*t));
	struct driver *d = o->d;
	struct err err;

	if (!t)
		abort();
	t->op = o;
	t->spec = (struct template_build_spec){ .warden = &t->warden,
						.loop = d->loop,
						.state_dir = d->state_dir,
						.id = t->id,
						.sizes = DEFAULT_SIZES,
						.agent = d->agent,
						.kernel = -1,
						.disk = -1 };
	if (parse(t, &err) < 0) {
		template_fail(t, &err);
		return;
	}
	timer_init(&t->begin, d->loop, on_begin);
	warden_client_open(&t->warden, d->loop, d->warden_path, &t->spec.sizes, &ops);
}
