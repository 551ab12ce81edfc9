/* catalog.c - the table of templates: what is in it, what a name means, when a build lets go. */
#include "node/catalog/catalog.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/list.h"
#include "base/log.h"
#include "node/catalog/catalog_change.h"
#include "node/node.h"

/* --- the table ---------------------------------------------------------------------------- */

struct template *template_add(struct node *n, const struct journal_template *row)
{
	struct template *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->node = n;
	t->row = *row;
	t->row.tags = NULL;
	list_add(&n->catalog.all, t);
	n->catalog.n++;
	if (row->created_ns > n->catalog.last_ns)
		n->catalog.last_ns = row->created_ns;
	return t;
}

static char *copy_text(const char *text)
{
	return text ? strdup(text) : NULL;
}

struct build *build_add(struct template *t, const struct journal_build *row)
{
	struct build *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->template = t;
	b->log = BUILD_LOG_NONE;
	b->archive = BUILD_ARCHIVE_NONE;
	b->row = *row;
	b->row.tags = copy_text(row->tags);
	b->row.reason = copy_text(row->reason); /* it can do without */
	if (row->tags && !b->row.tags) {
		free(b->row.reason);
		free(b);
		return NULL;
	}
	list_add(&t->builds, b);
	t->n_builds++;
	return b;
}

static void let_go(struct build *b)
{
	refreeze_forget(b);
	if (!b->held)
		return;
	b->held = false;
	pools_drop(b->snapshot, "its template has another build");
	snapshot_release(b->snapshot);
}

void build_unprepare(struct build *b)
{
	struct snapshot *from = TAKE(b->from);

	json_decref(TAKE(b->spec));
	b->spec_bytes = 0;
	snapshot_release(from);
	build_log_close(&b->log);
	build_archive_close(&b->archive);
}

static void forget_old(struct build *b)
{
	struct snapshot *p = b->n_old > 0 ? b->template->node->snapshots.all : NULL;

	for (; p; p = p->next)
		if (p->build == b)
			p->build = NULL;
}

void build_forget(struct build *b)
{
	struct snapshot *p = b->snapshot;

	let_go(b);
	if (p && b->snapshot) /* it is not gone with that */
		p->build = NULL;
	forget_old(b);
	build_unprepare(b);
	journal_write_cancel(&b->write);
	list_remove(b);
	b->template->n_builds--;
	free(b->row.tags);
	free(b->row.reason);
	free(b);
}

void template_forget(struct template *t)
{
	while (t->builds)
		build_forget(t->builds);
	list_remove(t);
	t->node->catalog.n--;
	free(t);
}

void catalog_close(struct node *n)
{
	changes_close(n);
	sizes_close(n);
	while (n->catalog.all)
		template_forget(n->catalog.all);
	auto_close(&n->catalog.rows_dir);
	auto_close(&n->catalog.builds_dir);
	n->catalog.rows_dir = n->catalog.builds_dir = -1;
}

struct template *catalog_by_id(const struct node *n, const char *id)
{
	struct template *t = n->catalog.all;

	while (t && strcmp(t->row.id, id) != 0)
		t = t->next;
	return t;
}

struct build *catalog_build(const struct template *t, const char *build_id)
{
	struct build *b = t->builds;

	while (b && strcmp(b->row.id, build_id) != 0)
		b = b->next;
	return b;
}

struct build *catalog_build_anywhere(const struct node *n, const char *build_id)
{
	struct build *b = NULL;

	for (const struct template *t = n->catalog.all; t && !b; t = t->next)
		b = catalog_build(t, build_id);
	return b;
}

/* What node itself has of it, while it is frozen again. */
static size_t own_uses(const struct build *b)
{
	const struct snapshot *p = b->snapshot;
	const struct node *n = b->template->node;
	size_t own = builds_holding(n, p) + p->readers;

	for (const struct create *c = n->creates.all; c; c = c->all_next)
		own += c->snapshot == p && c->builder;
	for (const struct sandbox *s = n->table.all; s; s = s->next)
		own += s->snapshot == p &&
		       ((s->info.flags & NODE_BUILDER) || (s->create && s->create->builder));
	return own;
}

/* Of those that it had before it was frozen again. */
static size_t old_users(const struct build *b)
{
	const struct snapshot *p = b->n_old > 0 ? b->template->node->snapshots.all : NULL;
	size_t n = 0;

	for (; p; p = p->next)
		if (p->build == b && p != b->snapshot)
			n += p->users - p->pooled;
	return n;
}

size_t build_users(const struct build *b)
{
	const struct snapshot *p = b->snapshot;
	size_t own = p && b->refreeze.state == REFREEZE_RUNNING ? own_uses(b) : 0;
	size_t n = p ? p->users - p->pooled - b->held : 0; /* what is in its pool is nobody's */

	return (n > own ? n - own : 0) + old_users(b);
}

size_t template_users(const struct template *t)
{
	size_t n = 0;

	for (const struct build *b = t->builds; b; b = b->next)
		n += build_users(b);
	return n;
}

size_t catalog_under_way(const struct node *n, const char *team)
{
	size_t found = 0;

	for (const struct template *t = n->catalog.all; t; t = t->next)
		for (const struct build *b = t->builds; b; b = b->next)
			found += b->row.status == BUILD_BUILDING && strcmp(t->row.team, team) == 0;
	return found;
}

uint64_t catalog_now(struct catalog *c)
{
	uint64_t now = clock_wall_ns();

	c->last_ns = now > c->last_ns ? now : c->last_ns + 1;
	return c->last_ns;
}

/* --- tags --------------------------------------------------------------------------------- */

static struct template_tag *find_tag(const struct template *t, const char *tag)
{
	const struct template_tags *all = &t->tags;

	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->all[i].name, tag) == 0)
			return (struct template_tag *)(uintptr_t)&all->all[i];
	return NULL;
}

struct build *catalog_tagged(const struct template *t, const char *tag)
{
	const struct template_tag *found = find_tag(t, tag[0] ? tag : TEMPLATE_TAG);

	return found ? catalog_build(t, found->build_id) : NULL;
}

int template_tag(struct template *t, const char *tag, const struct build *b, struct err *err)
{
	struct template_tag *found = find_tag(t, tag);

	if (!found && t->tags.n >= TEMPLATE_TAGS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "a template has at most %d tags",
			       TEMPLATE_TAGS_MAX);
	if (!found)
		found = &t->tags.all[t->tags.n++];
	snprintf(found->name, sizeof(found->name), "%s", tag);
	snprintf(found->build_id, sizeof(found->build_id), "%.*s", BUILD_ID_SIZE - 1, b->row.id);
	found->created_ns = clock_wall_ns();
	return 0;
}

bool template_untag(struct template *t, const char *tag)
{
	struct template_tag *found = find_tag(t, tag);

	if (!found)
		return false;
	*found = t->tags.all[--t->tags.n];
	return true;
}

static bool has_tag(const struct build *b)
{
	const struct template_tags *all = &b->template->tags;

	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->all[i].build_id, b->row.id) == 0)
			return true;
	return false;
}

void template_settle(struct template *t)
{
	list_each(struct build, b, t->builds)
		if (b->held && !has_tag(b))
			let_go(b);
}

void template_tags_text(const struct template *t, struct buf *out)
{
	struct err err;

	for (size_t i = 0; i < t->tags.n; i++) {
		const struct template_tag *g = &t->tags.all[i];

		/* it fits: TEMPLATE_TAGS_TEXT_MAX */
		if (buf_printf(out, &err, "%s %s %" PRIu64 "\n", g->name, g->build_id,
			       g->created_ns) < 0)
			break;
	}
	if (out->len > 0 && buf_add(out, (struct bytes){ (const uint8_t *)"", 1 }, &err) < 0)
		buf_clear(out);
}

int template_make_room(struct template *t, struct err *err)
{
	struct build *old = NULL;

	if (t->n_builds < TEMPLATE_BUILDS_MAX)
		return 0;
	for (struct build *b = t->builds; b; b = b->next)
		if (b->row.status != BUILD_BUILDING && !has_tag(b) && build_users(b) == 0)
			old = b;
	if (!old)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "too many builds: template '%s' has %d that are in use", t->row.name,
			       TEMPLATE_BUILDS_MAX);
	if (journal_remove_build(t->node->journal, &old->write, old->row.id, NULL, err) < 0)
		return -1;
	if (folder_remove(t->node->catalog.builds_dir, old->row.id, err) < 0)
		log_warn("the log of build %s stays: %s", old->row.id, err->msg);
	build_forget(old);
	return 0;
}

/* --- what a name means -------------------------------------------------------------------- */

/* Public, and of the team whose names the operator shares with all. */
static bool is_shared(const struct template *t)
{
	const char *shared = t->node->set[SET_SHARED_TEAM].text;

	return t->row.public && shared[0] && strcmp(t->row.namespace, shared) == 0;
}

/* A name alone is one of the team's own, as with E2B: else whoever publishes a name that others
 * mistype, or expect to be there, would get their sandboxes. */
static bool is_it(const struct template *t, const char *team, const char *name)
{
	const char *slash = strchr(name, '/');
	size_t n = slash ? (size_t)(slash - name) : 0;

	if (!slash)
		return strcmp(t->row.id, name) == 0 ||
		       ((strcmp(t->row.team, team) == 0 || is_shared(t)) &&
			strcmp(t->row.name, name) == 0);
	return strlen(t->row.namespace) == n && strncmp(t->row.namespace, name, n) == 0 &&
	       strcmp(t->row.name, slash + 1) == 0;
}

struct template *catalog_any(const struct node *n, const char *team, const char *name)
{
	struct template *found = NULL;
	int best = 0;

	/* the list begins with the newest: of several the oldest is taken */
	for (struct template *t = n->catalog.all; t; t = t->next) {
		int rank = strcmp(t->row.team, team) == 0 ? 3 : t->row.public ? 2 : 1;

		if (!t->going && is_it(t, team, name) && rank >= best) {
			best = rank;
			found = t;
		}
	}
	return found;
}

struct template *catalog_own(struct node *n, const char *team, const char *name, struct err *err)
{
	for (struct template *t = n->catalog.all; t; t = t->next)
		if (!t->going && (team[0] ? is_it(t, team, name) && strcmp(t->row.team, team) == 0
					  : strcmp(t->row.id, name) == 0))
			return t;
	err_set(err, ERR_NOT_FOUND, 0, "template '%s' not found", name);
	return NULL;
}

static struct snapshot *snapshot_of(struct build *b, struct err *err)
{
	if (b->snapshot && snapshot_has_files(b->snapshot, err))
		return b->snapshot;
	if (!b->snapshot)
		err_set(err, ERR_NO_FILES, 0, "what build %s made is gone", b->row.id);
	return NULL;
}

static int no_tag(const char *name, const char *tag, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, 0, "tag '%s' does not exist for template '%s'",
		       tag[0] ? tag : TEMPLATE_TAG, name);
}

/* Those that guest/template makes. SDKs ask for some of them without being told to: who reads this
 * has not typed the name.
 */
static bool is_ours(const char *name)
{
	static const char *const names[] = { "code-interpreter-v1", "browser", "desktop" };

	for (size_t i = 0; i < COUNT(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static void say_how(const char *name, struct err *err)
{
	if (err->code == ERR_NOT_FOUND && is_ours(name))
		err_set(err, ERR_NOT_FOUND, 0,
			"template '%s' not found: this server's operator has to make it, "
			"with guest/template of Hotcell's sources",
			name);
}

int catalog_lookup(struct node *n, const char *team, const char *name, const char *tag,
		   struct snapshot **ret, struct err *err)
{
	struct template *t = catalog_any(n, team, name);
	bool own = t && strcmp(t->row.team, team) == 0;
	struct build *b = t && (own || t->row.public) ? catalog_tagged(t, tag) : NULL;

	*ret = NULL;
	if (base_is(n, name) && (!tag[0] || strcmp(tag, TEMPLATE_TAG) == 0))
		return 0;
	/* nobody's name comes before that of a snapshot of one's own */
	if (!(own && b))
		*ret = snapshots_find(n, team, name, tag, err);
	if (!*ret && b)
		*ret = snapshot_of(b, err);
	else if (!*ret && t && (own || t->row.public))
		no_tag(name, tag, err);
	if (!*ret && !t)
		say_how(name, err);
	return *ret ? 0 : -1;
}

/* --- snapshots ---------------------------------------------------------------------------- */

void build_is(struct build *b, struct snapshot *p)
{
	b->snapshot = p;
	p->build = b;
	if (!b->held)
		snapshot_hold(p);
	b->held = true;
}

void build_replace(struct build *b, struct snapshot *p)
{
	struct snapshot *old = b->snapshot;

	b->snapshot = snapshot_hold(p);
	p->build = b;
	memcpy(b->row.snapshot_id, p->row.id, sizeof(b->row.snapshot_id));
	b->row.disk_mib = p->row.disk_mib;
	b->n_old++;
	pools_drop(old, "its template is frozen again");
	snapshot_release(old);
}

bool build_holds(const struct snapshot *p)
{
	return p->build && p->build->snapshot == p && p->build->held;
}

void catalog_snapshot_gone(struct snapshot *p)
{
	struct build *b = TAKE(p->build);

	if (b && b->snapshot != p) {
		b->n_old--;
	} else if (b) {
		b->snapshot = NULL;
		b->held = false;
	}
}

void catalog_spawned(struct snapshot *p)
{
	if (!p->build)
		return;
	p->build->template->row.spawns++;
	p->build->template->row.spawned_ns = clock_wall_ns();
}

static void describe_copy(const struct snapshot *p, struct journal_build *ret)
{
	*ret = (struct journal_build){ .status = BUILD_READY,
				       .created_ns = p->row.created_ns,
				       .finished_ns = p->row.created_ns,
				       .vcpus = p->row.vcpus,
				       .memory_mib = p->row.memory_mib,
				       .disk_mib = p->row.disk_mib,
				       .copied = 1 };
	uuid_make(ret->id);
	memcpy(ret->snapshot_id, p->row.id, sizeof(ret->snapshot_id));
}

void catalog_snapshot_taken(struct snapshot *p)
{
	struct err err = { 0 };
	struct template *t =
		p->row.name[0] ? catalog_own(p->node, p->row.team, p->row.name, &err) : NULL;
	struct catalog_change *c;
	struct journal_build row;
	struct build *b = NULL;

	if (!t)
		return;
	describe_copy(p, &row);
	memcpy(row.template_id, t->row.id, sizeof(row.template_id));
	if (template_make_room(t, &err) == 0)
		b = build_add(t, &row);
	c = b ? change_begin(t, b, NULL) : NULL;
	if (!c) { /* it is found by its name all the same, where no tag is in its way */
		log_warn("snapshot %s is no build of template %s: %s", p->row.id, t->row.id,
			 err.msg);
		if (b)
			build_forget(b);
		return;
	}
	c->made_build = true;
	catalog_make_folder(p->node->catalog.builds_dir, b->row.id);
	build_is(b, p);
	if (template_tag(t, p->row.tag, b, &err) < 0)
		log_warn("snapshot %s: %s", p->row.id, err.msg);
	t->row.updated_ns = clock_wall_ns();
	change_write(c);
}
