/* base_template.c - does it fit? If not, another one is built; creates wait meanwhile.
 *
 *	the newest that fits (base_find.c) -> every file summed up -> warmed -> ready
 *	            \-> none: built from kernel and disk ------------/
 *
 * One that is damaged stays where it is: what was saved differs from it.
 */
/* #syscalls: openat fcntl close */
#include <errno.h>
#include <fcntl.h>

#include "base/log.h"
#include "node/files/disk_use.h"
#include "node/life/pools_text.h"
#include "node/template/base_find.h"
#include "node/node.h"
#include "node/template/base_packages.h"
#include "node/template/base_trust.h"
#include "wire/rfc3339.h"

static void build(struct node *n, const struct err *why_not);

static void fail(struct node *n, const struct err *why)
{
	struct base_template *b = &n->base;

	b->state = why->code == ERR_UNAVAILABLE ? BASE_UNKNOWN : BASE_FAILED;
	b->why = *why;
	log_error("template %s: %s", BASE_ALIAS, why->msg);
	b->again_ms = b->again_ms ? 2 * b->again_ms : BASE_AGAIN_MS;
	if (b->again_ms > BASE_AGAIN_MAX_MS)
		b->again_ms = BASE_AGAIN_MAX_MS;
	timer_start(&b->again, b->again_ms);
	creates_soon(n);
}

void base_facts_here(const struct node *n, struct manifest_facts *ret)
{
	template_facts(&n->warden.facts, &n->sizes, ret);
}

void base_facts_sized(const struct node *n, uint32_t vcpus, uint32_t memory_mib,
		      struct manifest_facts *ret)
{
	base_facts_here(n, ret);
	template_facts_resize(ret, vcpus, memory_mib);
}

/* --- ready -------------------------------------------------------------------------------- */

static void ready(struct node *n)
{
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
	n->base.again_ms = 0;
	base_learn_whole(n, n->base.id);
	base_drop_old(n);
	base_read_used(n);
	grounds_soon(n);
	refreezes_host_known(n);
	creates_soon(n);
}

static void on_warm(struct link_call *c, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct node *n = CONTAINER_OF(c, struct node, base.call);

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
	if (warden_once_fds(&n->warden, &n->base.call,
			    &(struct warden_asked){ &rq, NULL, 0, WARDEN_TEMPLATE_MS }, on_warm,
			    &err) < 0)
		fail(n, &err);
}

/* --- checking ----------------------------------------------------------------------------- */

static void look_for_one(struct node *n);

/* Of the one that was found. Damaged: it stays, for whoever differs from it, and another is looked
 * for. Whatever else fails says nothing about it, and is tried again. */
static void not_this_one(struct node *n, const struct err *why)
{
	struct err err = *why;

	if (why->code == ERR_MISMATCH || why->code == ERR_NOT_FOUND) {
		if (base_learn_unfit(n, n->base.id, why)) {
			look_for_one(n);
			return;
		}
	}
	err.code = ERR_INTERNAL;
	err_wrap(&err, "%s", n->base.id);
	fail(n, &err);
}

static void on_verified(struct template_watcher *w, const struct manifest *m,
			enum manifest_reason reason, const struct err *err)
{
	struct node *n = CONTAINER_OF(w, struct node, base.watcher);

	(void)m, (void)reason;
	n->base.job = NULL;
	if (err)
		not_this_one(n, err);
	else
		warm(n);
}

static int verify(struct node *n, struct err *err)
{
	static const struct template_watcher_ops ops = { on_verified };
	struct base_template *b = &n->base;
	AUTO(auto_close) int dir = base_open_folder(n, b->id, err);
	struct template_files files;

	if (dir < 0 || template_files_open(&files, dir, err) < 0)
		return -1;
	b->watcher.ops = &ops;
	return template_verify(
		&(struct template_spec){ &files, &b->manifest, n->loop, &b->watcher }, &b->job,
		err);
}

static void look_for_one(struct node *n)
{
	struct base_template *b = &n->base;
	struct err err;

	if (base_find(n, &b->manifest, &err) == 0) {
		memcpy(b->id, b->manifest.template_id, sizeof(b->id));
		if (verify(n, &err) < 0)
			not_this_one(n, &err);
	} else if (err.code == ERR_NOT_FOUND || err.code == ERR_MISMATCH) {
		build(n, &err);
	} else {
		err.code = ERR_INTERNAL;
		fail(n, &err);
	}
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

	base_draw_id(n);
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

	if (b->state != BASE_UNKNOWN || b->again.active || !n->warden.link.up ||
	    !n->reconcile.complete || n->reconcile.n_strays > 0 || !base_trust_ready(n))
		return;
	b->state = BASE_CHECKING;
	b->stale = false;
	if (base_name_inputs(n, &err) < 0)
		fail(n, &err);
	else
		look_for_one(n);
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
	n->base.again_ms = 0;
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
	link_cancel(&b->call);
	link_cancel(&b->drop);
	template_job_cancel(TAKE(b->job));
	template_build_cancel(TAKE(b->build));
	base_known_close(n);
	if (b->kernel >= 0)
		close(take_fd(&b->kernel));
	if (b->disk >= 0)
		close(take_fd(&b->disk));
}

bool base_is(const struct node *n, const char *name)
{
	return strcmp(name, BASE_ALIAS) == 0 || base_same_inputs(n, name);
}

bool base_builds(const struct node *n, const char *vm_id)
{
	return n->base.build && strcmp(template_build_vm(n->base.build), vm_id) == 0;
}

static json_t *bytes_json(const struct node *n, const char *id)
{
	struct disk_use use = { 0 };
	struct err err;
	AUTO(auto_close) int folder = base_open_folder(n, id, &err);

	if (folder < 0)
		return json_null();
	disk_use_of(folder, &use);
	return json_integer((json_int_t)(use.own + use.shared));
}

static json_t *spawned_json(const struct base_template *b)
{
	char at[RFC3339_SIZE];

	if (b->spawned_ns == 0)
		return json_null();
	rfc3339_put(b->spawned_ns, 6, at);
	return json_string(at);
}

/* What it takes, and who uses it. Not 0: no memory. */
static int add_use(const struct node *n, json_t *to)
{
	const struct base_template *b = &n->base;
	json_int_t sandboxes = 0, running = 0, snapshots = 0;

	for (const struct sandbox *s = n->table.all; s; s = s->next) {
		if (s->snapshot || s->pooled || (s->info.flags & NODE_BUILDER) ||
		    strcmp(s->base_id, b->id) != 0)
			continue;
		sandboxes++;
		running += s->state == SANDBOX_RUNNING;
	}
	for (const struct snapshot *p = n->snapshots.all; p; p = p->next)
		snapshots += strcmp(p->row.base_id, b->id) == 0;
	return json_object_set_new(to, "diskBytes", bytes_json(n, b->id)) |
	       json_object_set_new(to, "sandboxes", json_integer(sandboxes)) |
	       json_object_set_new(to, "running", json_integer(running)) |
	       json_object_set_new(to, "snapshots", json_integer(snapshots)) |
	       json_object_set_new(to, "spawnCount", json_integer((json_int_t)b->spawns)) |
	       json_object_set_new(to, "lastSpawnedAt", spawned_json(b));
}

/* Of one that is neither ready nor failed: what is done, and how far that is. */
static json_t *progress_json(const struct base_template *b)
{
	static const char *const phases[] = { [BASE_UNKNOWN] = "waiting",
					      [BASE_CHECKING] = "checking",
					      [BASE_BUILDING] = "building",
					      [BASE_WARMING] = "warming" };

	return json_pack("{s:s, s:s}", "phase", phases[b->state], "reached",
			 b->build ? template_build_reached(b->build) : "");
}

int base_describe(const struct node *n, bool operator, struct buf * out, struct err *err)
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

	if (!v || pool_describe(&n->pools.base, json_array_get(v, 0)) != 0 ||
	    (operator&& b->id[0] && add_use(n, json_array_get(v, 0)) != 0))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "describe the templates");
	if (b->state == BASE_FAILED)
		json_object_set_new(json_array_get(v, 0), "message",
				    json_text(bytes_str(b->why.msg)));
	else if (!ok)
		json_object_set_new(json_array_get(v, 0), "progress", progress_json(b));
	if (base_describe_lost(n, v, err) < 0)
		return -1;
	return json_encode(v, out, err);
}
