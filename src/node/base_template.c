/* base_template.c - does it fit? If not, another one is built; creates wait meanwhile.
 *
 *	manifest read -> warden's facts compared -> every file summed up -> warmed -> ready
 *	                                  \-> built from kernel and disk -/
 */
/* #syscalls: openat openat2 getdents64 fcntl fstat newfstatat lseek close */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/log.h"
#include "node/node.h"
#include "vm/package_hosts.h"
#include "vm/trust_ca.h"

static void build(struct node *n, const struct err *why_not);

static void fail(struct node *n, const struct err *why)
{
	struct base_template *b = &n->base;

	b->state = why->code == ERR_UNAVAILABLE ? BASE_UNKNOWN : BASE_FAILED;
	b->why = *why;
	log_error("template %s: %s", BASE_ALIAS, why->msg);
	timer_start(&b->again, BASE_AGAIN_MS);
	creates_soon(n);
}

/* --- its name ----------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, struct bytes b) /* FNV-1a */
{
	for (size_t i = 0; i < b.len; i++)
		h = (h ^ b.ptr[i]) * 1099511628211ull;
	return (h ^ 0xff) * 1099511628211ull; /* so that "ab","c" differs from "a","bc" */
}

static int mix_file(uint64_t *h, int *fd, const char *path, struct err *err)
{
	char text[128];
	struct stat st;

	if (*fd < 0)
		*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0 || fstat(*fd, &st) < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open '%s'", path);
	snprintf(text, sizeof(text), "%jd %jd.%09ld", (intmax_t)st.st_size,
		 (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	*h = mix(mix(*h, bytes_str(path)), bytes_str(text));
	return 0;
}

void base_facts_here(const struct node *n, struct manifest_facts *ret)
{
	template_facts(&n->warden.facts, &n->sizes, ret);
}

static int name_it(struct node *n, struct err *err)
{
	struct base_template *b = &n->base;
	const struct manifest_facts *f = &b->facts;
	uint64_t h = 14695981039346656037ull;
	struct bytes ca;

	base_facts_here(n, &b->facts);
	if (base_trust_text(n, &ca, err) < 0 ||
	    mix_file(&h, &b->kernel, n->set[SET_KERNEL].text, err) < 0 ||
	    mix_file(&h, &b->disk, n->set[SET_DISK].text, err) < 0)
		return -1;
	h = mix(mix(h, bytes_str(f->vmm_version)), bytes_str(f->cpu_model));
	h = mix(mix(h, bytes_str(f->accel)), bytes_str(f->arguments));
	h = mix(mix(h, BYTES_LIT(BASE_FIRST_COMMAND)), package_hosts_script());
	if (ca.len > 0)
		h = mix(mix(h, ca), trust_ca_script());
	snprintf(b->id, sizeof(b->id), "%s-%012" PRIx64, BASE_ALIAS, h >> 16);
	return 0;
}

/* --- ready -------------------------------------------------------------------------------- */

static int open_folder(const struct node *n, const char *id, struct err *err)
{
	char path[TEMPLATE_PATH_MAX];
	int k = snprintf(path, sizeof(path), "%s/" WARDEN_TEMPLATE_PATH, n->set[SET_STATE_DIR].text,
			 id);
	int fd;

	if (k < 0 || (size_t)k >= sizeof(path))
		return err_set(err, ERR_INVALID, 0, "path too long");
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open its folder");
	return fd;
}

static bool in_use(const struct node *n, const char *id)
{
	for (const struct sandbox *s = n->table.all; s; s = s->next)
		if (strcmp(s->base_id, id) == 0)
			return true;
	return snapshots_need(n, id) || quarantine_needs(n, id);
}

static void on_old_dropped(struct warden_ask *a, const struct warden_reply *reply, int *fds,
			   size_t n_fds, const struct err *err)
{
	(void)reply, (void)fds, (void)n_fds;
	if (err)
		log_warn("drop %s: %s", a->request.template_id, err->msg);
}

/* One earlier `base` that nothing runs from, or that was not finished; the next goes at the next
 * start. */
static int drop_old(int dir, const char *name, void *context, struct err *err)
{
	struct node *n = context;
	struct warden_request rq = { .verb = WARDEN_TEMPLATE_DROP };

	(void)err;
	if (n->look.n_others > 0 || installation_is_younger(&n->installation, dir, name))
		return 0; /* another installation may need it */
	if (strncmp(name, WARDEN_OPEN_PREFIX, strlen(WARDEN_OPEN_PREFIX)) == 0)
		name += strlen(WARDEN_OPEN_PREFIX);
	if (strncmp(name, BASE_ALIAS "-", strlen(BASE_ALIAS) + 1) != 0 ||
	    strlen(name) != strlen(n->base.id) || strcmp(name, n->base.id) == 0 || in_use(n, name))
		return 0;
	log_info("template %s is not used any more: it is dropped", name);
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", name);
	warden_again(&n->warden, &n->base.drop, &rq, WARDEN_CALL_MS, on_old_dropped);
	return -1;
}

static void ready(struct node *n)
{
	AUTO(auto_close) int dir = -1;
	struct err err;

	if (n->base.stale) {
		n->base.stale = false;
		n->base.state = BASE_UNKNOWN;
		base_turn(n);
		return;
	}
	n->base.state = BASE_READY;
	n->base.disk_mib = (uint32_t)(n->base.manifest.files[MANIFEST_DISK_FILE].length >> 20);
	base_packages_learn(n, &n->base.manifest);
	log_info("template %s is ready: %s; its packages come from: %s", BASE_ALIAS, n->base.id,
		 n->base.packages[0] ? n->base.packages : "nowhere");
	dir = open_folder(n, ".", &err);
	if (dir >= 0 && !n->base.drop.keep)
		(void)!folder_each(dir, drop_old, n, &err);
	creates_soon(n);
}

static void on_warm(struct warden_call *c, const struct warden_reply *reply, int *fds, size_t n_fds,
		    const struct err *err)
{
	struct node *n = CONTAINER_OF(c, struct node, base.call);

	(void)reply, (void)fds, (void)n_fds;
	if (err && err->code == ERR_UNAVAILABLE) {
		fail(n, err);
		return;
	}
	if (err) /* slower, not wrong */
		log_warn("warm %s: %s", n->base.id, err->msg);
	ready(n);
}

static void warm(struct node *n)
{
	struct warden_request rq = { .verb = WARDEN_TEMPLATE_WARM };
	struct err err;

	n->base.state = BASE_WARMING;
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", n->base.id);
	if (warden_once_fds(&n->warden, &n->base.call, &rq, NULL, 0, WARDEN_TEMPLATE_MS, on_warm,
			    &err) < 0)
		fail(n, &err);
}

/* --- checking ----------------------------------------------------------------------------- */

static void on_verified(struct template_watcher *w, const struct manifest *m,
			enum manifest_reason reason, const struct err *err)
{
	struct node *n = CONTAINER_OF(w, struct node, base.watcher);

	(void)m, (void)reason;
	n->base.job = NULL;
	if (err)
		build(n, err);
	else
		warm(n);
}

static int check(struct node *n, struct err *err)
{
	static const struct template_watcher_ops ops = { on_verified };
	struct base_template *b = &n->base;
	AUTO(auto_close) int dir = open_folder(n, b->id, err);
	enum manifest_reason reason;
	struct template_files files;

	if (dir < 0 || template_manifest_read(dir, &b->manifest, err) < 0)
		return -1;
	if (strcmp(b->manifest.template_id, b->id) != 0)
		return err_set(err, ERR_MISMATCH, 0, "its manifest is of template %s",
			       b->manifest.template_id);
	if (manifest_check(&b->manifest, &b->facts, &reason, err) < 0 ||
	    template_files_open(&files, dir, err) < 0)
		return -1;
	b->watcher.ops = &ops;
	return template_verify(&files, &b->manifest, n->loop, &b->watcher, &b->job, err);
}

/* --- building ----------------------------------------------------------------------------- */

static void on_built(struct template_build_user *u, const struct manifest *m, const struct err *err)
{
	struct node *n = CONTAINER_OF(u, struct node, base.build_user);

	n->base.build = NULL;
	if (err) {
		fail(n, err);
		return;
	}
	n->base.manifest = *m;
	warm(n);
}

static int begin_build(struct node *n, struct err *err)
{
	static const struct template_build_user_ops ops = { on_built };
	struct base_template *b = &n->base;
	AUTO(auto_close) int kernel = fcntl(b->kernel, F_DUPFD_CLOEXEC, 0);
	AUTO(auto_close) int disk = fcntl(b->disk, F_DUPFD_CLOEXEC, 0);
	struct template_build_spec spec = { .warden = &n->warden,
					    .loop = n->loop,
					    .state_dir = n->set[SET_STATE_DIR].text,
					    .id = b->id,
					    .sizes = n->sizes,
					    .agent = n->agent,
					    .facts = b->facts,
					    .ca = buf_view(&b->trust.all),
					    .ask_packages = true,
					    .ready_command = BYTES_LIT(BASE_FIRST_COMMAND) };

	if (kernel < 0 || disk < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "hand on kernel and disk");
	spec.kernel = take_fd(&kernel);
	spec.disk = take_fd(&disk);
	b->build_user.ops = &ops;
	return template_build_start(&spec, &b->build_user, &b->build, err);
}

static void build(struct node *n, const struct err *why_not)
{
	struct err err;

	log_info("template %s is built: %s", n->base.id, why_not->msg);
	n->base.state = BASE_BUILDING;
	if (begin_build(n, &err) < 0)
		fail(n, &err);
}

/* --- what others ask ---------------------------------------------------------------------- */

void base_turn(struct node *n)
{
	struct base_template *b = &n->base;
	struct err err;

	if (b->state != BASE_UNKNOWN || b->again.active || !n->warden.up || !n->look.complete ||
	    n->look.n_strays > 0 || !base_trust_ready(n))
		return;
	b->state = BASE_CHECKING;
	b->stale = false;
	if (name_it(n, &err) < 0)
		fail(n, &err);
	else if (check(n, &err) < 0)
		build(n, &err);
}

void base_look_again(struct node *n, const char *why)
{
	struct base_template *b = &n->base;

	log_info("template %s is checked again: %s", BASE_ALIAS, why);
	b->stale = b->state == BASE_CHECKING || b->state == BASE_BUILDING ||
		   b->state == BASE_WARMING; /* then when that is done */
	if (!b->stale)
		b->state = BASE_UNKNOWN;
	base_turn(n);
}

void base_warden_up(struct node *n)
{
	struct manifest_facts now;

	base_facts_here(n, &now);
	if (n->base.state == BASE_READY && memcmp(&now, &n->base.facts, sizeof(now)) != 0) {
		log_warn("warden's facts have changed: the template is checked again");
		n->base.state = BASE_UNKNOWN;
	}
	timer_stop(&n->base.again);
	if (n->base.state == BASE_FAILED)
		n->base.state = BASE_UNKNOWN;
}

static void on_again(struct timer *t)
{
	struct node *n = CONTAINER_OF(t, struct node, base.again);

	if (n->base.state == BASE_FAILED)
		n->base.state = BASE_UNKNOWN;
	base_turn(n);
}

void base_open(struct node *n)
{
	timer_init(&n->base.again, n->loop, on_again);
	base_packages_open(n);
	base_trust_open(n);
	n->base.kernel = open(n->set[SET_KERNEL].text, O_RDONLY | O_CLOEXEC);
	n->base.disk = open(n->set[SET_DISK].text, O_RDONLY | O_CLOEXEC);
}

void base_close(struct node *n)
{
	struct base_template *b = &n->base;

	timer_stop(&b->again);
	base_trust_close(n);
	warden_call_cancel(&b->call);
	warden_ask_cancel(&b->drop);
	template_job_cancel(TAKE(b->job));
	template_build_cancel(TAKE(b->build));
	if (b->kernel >= 0)
		close(take_fd(&b->kernel));
	if (b->disk >= 0)
		close(take_fd(&b->disk));
}

bool base_is(const struct node *n, const char *name)
{
	return strcmp(name, BASE_ALIAS) == 0 || (n->base.id[0] && strcmp(name, n->base.id) == 0);
}

bool base_builds(const struct node *n, const char *vm_id)
{
	return n->base.build && strcmp(template_build_vm(n->base.build), vm_id) == 0;
}

int base_describe(const struct node *n, struct buf *out, struct err *err)
{
	const struct base_template *b = &n->base;
	bool ok = b->state == BASE_READY;
	AUTO(json_decrefp)
	json_t *v = json_pack(
		"[{s:s, s:s, s:I, s:I, s:I, s:s, s:s}]", "templateID",
		b->id[0] ? b->id : BASE_ALIAS, "alias", BASE_ALIAS, "cpuCount",
		(json_int_t)n->sizes.vcpus, "memoryMB", (json_int_t)n->sizes.memory_mib,
		"diskSizeMB", (json_int_t)b->disk_mib, "createdAt", ok ? b->manifest.created : "",
		"buildStatus", ok ? "ready" : (b->state == BASE_FAILED ? "error" : "building"));

	if (!v)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "describe the templates");
	if (b->state == BASE_FAILED)
		json_object_set_new(json_array_get(v, 0), "message",
				    json_text(bytes_str(b->why.msg)));
	return json_encode(v, out, err);
}
