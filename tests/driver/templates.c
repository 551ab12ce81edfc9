/* templates.c - is a template fit for use here? Asked by many, found out once.
 *
 *	manifest read -> warden's facts compared -> every file summed up and compared
 */
#include "tests/driver/driver.h"

#include <errno.h>
#include <fcntl.h>

struct known_template {
	struct driver *d;
	char id[WARDEN_ID_MAX + 1];
	struct manifest manifest;
	bool good;
	struct link_call facts;
	struct template_watcher watcher;
	struct template_job *job;
	struct template_wait *waiting;
	struct known_template *next;
};

static struct known_template *find(struct driver *d, const char *id)
{
	for (struct known_template *t = d->templates; t; t = t->next)
		if (strcmp(t->id, id) == 0)
			return t;
	return NULL;
}

static struct known_template *add(struct driver *d, const char *id)
{
	struct known_template *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->d = d;
	snprintf(t->id, sizeof(t->id), "%s", id);
	t->next = d->templates;
	d->templates = t;
	return t;
}

static void unlist(struct known_template *t)
{
	struct known_template **at = &t->d->templates;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
}

/* Everyone who waits is told; what failed is forgotten, so that it can be tried again. */
static void settle(struct known_template *t, enum manifest_reason reason, const struct err *why)
{
	struct template_wait *w = TAKE(t->waiting);
	struct manifest m = t->manifest;
	struct err err = why ? *why : (struct err){ 0 };

	t->good = !why;
	if (why) {
		err_wrap(&err, "template %s", t->id);
		unlist(t);
		link_cancel(&t->facts);
		template_job_cancel(t->job);
		free(t);
	}
	while (w) {
		struct template_wait *next = w->next;

		w->next = NULL;
		w->on_done(w, why ? NULL : &m, reason, why ? &err : NULL);
		w = next;
	}
}

void templates_forget(struct driver *d, const char *id)
{
	struct known_template *t, *next;
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, 0, "forgotten meanwhile");
	for (t = d->templates; t; t = next) {
		next = t->next;
		if (!id || strcmp(t->id, id) == 0)
			settle(t, MANIFEST_OK, &err);
	}
}

void template_learned(struct driver *d, const struct manifest *m)
{
	struct known_template *t = find(d, m->template_id);

	if (!t)
		t = add(d, m->template_id);
	t->manifest = *m;
	t->good = true;
}

static int open_folder(const struct driver *d, const char *id, struct err *err)
{
	char path[DRIVER_PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/" WARDEN_TEMPLATE_PATH, d->state_dir, id);
	int fd;

	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(err, ERR_INVALID, 0, "path too long");
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open its folder");
	return fd;
}

static void on_verified(struct template_watcher *w, const struct manifest *m,
			enum manifest_reason reason, const struct err *err)
{
	struct known_template *t = CONTAINER_OF(w, struct known_template, watcher);

	(void)m;
	t->job = NULL;
	settle(t, reason, err);
}

static int verify(struct known_template *t, struct err *err)
{
	static const struct template_watcher_ops ops = { on_verified };
	AUTO(auto_close) int dir = open_folder(t->d, t->id, err);
	struct template_files files;

	t->watcher.ops = &ops;
	if (dir < 0 || template_files_open(&files, dir, err) < 0)
		return -1;
	return template_verify(
		&(struct template_spec){ &files, &t->manifest, t->d->loop, &t->watcher }, &t->job,
		err);
}

static void on_facts(struct link_call *c, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct known_template *t = CONTAINER_OF(c, struct known_template, facts);
	const struct manifest_facts *made = &t->manifest.made_with;
	const struct warden_sizes sizes = { .vcpus = made->vcpus, .memory_mib = made->memory_mib };
	enum manifest_reason reason = MANIFEST_OK;
	struct manifest_facts here;
	struct err err;

	if (failed) {
		settle(t, reason, failed);
		return;
	}
	template_facts(&warden_reply_of(r)->facts, &sizes, &here);
	if (manifest_check(&t->manifest, &here, &reason, &err) < 0 || verify(t, &err) < 0)
		settle(t, reason, &err);
}

static int look(struct known_template *t, enum manifest_reason *ret_reason, struct err *err)
{
	AUTO(auto_close) int dir = open_folder(t->d, t->id, err);
	struct warden_request rq = { .verb = WARDEN_FACTS, .sizes = DEFAULT_SIZES };

	*ret_reason = MANIFEST_FORMAT;
	if (dir < 0 || template_manifest_read(dir, &t->manifest, err) < 0)
		return -1;
	if (strcmp(t->manifest.template_id, t->id) != 0)
		return err_set(err, ERR_MISMATCH, 0, "its manifest is of template %s",
			       t->manifest.template_id);
	rq.sizes.vcpus = t->manifest.made_with.vcpus;
	rq.sizes.memory_mib = t->manifest.made_with.memory_mib;
	return driver_ask(t->d, &t->facts, &rq, NULL, 0, on_facts, err);
}

void template_want(struct driver *d, const char *id, struct template_wait *w)
{
	struct known_template *t = find(d, id);
	enum manifest_reason reason = MANIFEST_OK;
	struct manifest m;
	struct err err;

	if (t && t->good) {
		m = t->manifest;
		w->on_done(w, &m, MANIFEST_OK, NULL);
		return;
	}
	if (t) {
		w->next = t->waiting;
		t->waiting = w;
		return;
	}
	t = add(d, id);
	t->waiting = w;
	if (look(t, &reason, &err) < 0)
		settle(t, reason, &err);
}
