/* template_verbs.c - templates are made, listed, shown, published and removed. */
#include "node/catalog/template_verbs.h"

#include <errno.h>

#include "base/folder.h"
#include "base/list.h"
#include "base/log.h"
#include "base/random.h"
#include "node/catalog/catalog_change.h"
#include "node/catalog/catalog_json.h"
#include "node/catalog/name_list.h"
#include "node/catalog/operator_view.h"
#include "node/node.h"

enum {
	VCPUS_DEFAULT = 2,
	MEMORY_DEFAULT_MIB = 1024,
	MEMORY_MIN_MIB = 128,
	FREE_DISK_MAX_MIB = 1024 * 1024,
	TEXT_DEPTH = 4,
	LIST_PAGE = 100,
};

void catalog_answer(struct door_asked *a, json_t *v)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_MESSAGE_MAX - sizeof(struct node_reply));
	struct err err;

	if (!v)
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "an answer");
	if (!v || json_encode(v, &out, &err) < 0)
		door_refuse(a, &err);
	else
		door_answer(a, &(struct node_reply){ 0 }, buf_view(&out), NULL, 0);
	json_decref(v);
}

/* --- create --------------------------------------------------------------------------------- */

struct wanted { /* by NODE_TEMPLATE_CREATE */
	struct name_list tags;
	struct bytes namespace;
	int64_t vcpus, memory_mib, free_disk_mib;
};

static int check_sizes(const struct node *n, const struct wanted *w, struct err *err)
{
	int64_t vcpus_max = (int64_t)n->set[SET_TEMPLATE_VCPUS_MAX].number;
	int64_t memory_max = (int64_t)n->set[SET_TEMPLATE_MEMORY_MAX_MIB].number;

	if (w->vcpus < 1 || w->vcpus > vcpus_max)
		return err_set(err, ERR_INVALID, 0, "CPU count must be between 1 and %lld",
			       (long long)vcpus_max);
	if (w->vcpus != 1 && w->vcpus % 2 != 0)
		return err_set(err, ERR_INVALID, 0, "CPU count must be 1 or even");
	if (w->memory_mib < MEMORY_MIN_MIB || w->memory_mib > memory_max)
		return err_set(err, ERR_INVALID, 0, "Memory must be between %d and %lld MiB",
			       MEMORY_MIN_MIB, (long long)memory_max);
	if (w->memory_mib % 2 != 0)
		return err_set(err, ERR_INVALID, 0, "Memory must be divisible by 2");
	return 0;
}

static int take_wanted(const struct node *n, const json_t *body, struct wanted *ret,
		       struct err *err)
{
	*ret = (struct wanted){ .vcpus = VCPUS_DEFAULT, .memory_mib = MEMORY_DEFAULT_MIB };
	if (json_want_string(body, "namespace", &ret->namespace, err) < 0 ||
	    name_list_take(body, false, &ret->tags, err) < 0 ||
	    json_may_int(body, "cpuCount", INT64_MIN, INT64_MAX, &ret->vcpus, err) < 0 ||
	    json_may_int(body, "memoryMB", INT64_MIN, INT64_MAX, &ret->memory_mib, err) < 0 ||
	    json_may_int(body, "minFreeDiskMb", 0, FREE_DISK_MAX_MIB, &ret->free_disk_mib, err) < 0)
		return -1;
	if (ret->namespace.len == 0 || ret->namespace.len > NODE_ID_MAX)
		return err_set(err, ERR_INVALID, 0, "namespace is not valid");
	if (ret->tags.n == 0)
		snprintf(ret->tags.all[ret->tags.n++], sizeof(ret->tags.all[0]), "%s",
			 TEMPLATE_TAG);
	return check_sizes(n, ret, err);
}

static int check_name(const struct node *n, const char *name, struct err *err)
{
	if (!template_name_ok(name))
		return err_set(err, ERR_INVALID, 0, "invalid template name");
	if (base_is(n, name))
		return err_set(err, ERR_EXISTS, 0, "template name '%s' is taken", name);
	return 0;
}

static int check_room(const struct node *n, const char *team, struct err *err)
{
	size_t own = 0;

	for (const struct template *t = n->catalog.all; t; t = t->next)
		own += strcmp(t->row.team, team) == 0;
	if (own >= TEMPLATES_TEAM_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "a team has at most %d templates",
			       TEMPLATES_TEAM_MAX);
	if (n->catalog.n >= TEMPLATES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "this host has %d templates, as it may",
			       TEMPLATES_MAX);
	return 0;
}

/* The team's own of that name, or a new one. */
static struct template *take_template(struct node *n, const struct node_request *rq,
				      const struct wanted *w, bool *ret_new, struct err *err)
{
	struct journal_template row = { .created_ns = catalog_now(&n->catalog) };
	struct template *t = catalog_own(n, rq->team, rq->template_id, err);

	*ret_new = !t;
	if (t)
		return template_make_room(t, err) < 0 ? NULL : t;
	if (check_room(n, rq->team, err) < 0)
		return NULL;
	random_name(row.id, TEMPLATE_ID_LENGTH);
	memcpy(row.team, rq->team, sizeof(row.team));
	memcpy(row.name, rq->template_id, sizeof(row.name));
	(void)bytes_to_str(w->namespace, row.namespace, sizeof(row.namespace));
	row.updated_ns = row.created_ns;
	t = template_add(n, &row);
	if (!t)
		err_set(err, ERR_EXHAUSTED, ENOMEM, "a template");
	return t;
}

static struct build *make_build(struct template *t, const struct wanted *w)
{
	struct journal_build row = { .status = BUILD_WAITING,
				     .created_ns = catalog_now(&t->node->catalog),
				     .vcpus = (uint32_t)w->vcpus,
				     .memory_mib = (uint32_t)w->memory_mib,
				     .free_disk_mib = (uint32_t)w->free_disk_mib };
	char tags[sizeof(w->tags.all)] = "";
	size_t at = 0;

	for (size_t i = 0; i < w->tags.n; i++)
		at += (size_t)snprintf(tags + at, sizeof(tags) - at, "%s%s", i ? " " : "",
				       w->tags.all[i]);
	row.tags = tags;
	uuid_make(row.id);
	memcpy(row.template_id, t->row.id, sizeof(row.template_id));
	return build_add(t, &row);
}

static json_t *created_json(const struct build *b, const struct wanted *w)
{
	const struct journal_template *t = &b->template->row;
	json_t *tags = json_array();

	for (size_t i = 0; i < w->tags.n; i++)
		(void)json_array_append_new(tags, json_string(w->tags.all[i]));
	return json_pack("{s:s, s:s, s:s, s:b, s:o}", "templateID", t->id, "buildID", b->row.id,
			 "name", t->name, "public", (int)t->public, "tags", tags);
}

/* What is new of it is written, then it is answered. */
static void begin_build(struct template *t, bool is_new, const struct wanted *w,
			struct door_asked *a)
{
	struct build *b = make_build(t, w);
	struct catalog_change *c = b ? change_begin(t, b, a) : NULL;
	struct err err;

	if (!c) {
		if (b)
			build_forget(b);
		if (is_new)
			template_forget(t);
		if (!b) {
			err_set(&err, ERR_EXHAUSTED, ENOMEM, "a build");
			door_refuse(a, &err);
		}
		return;
	}
	if (is_new)
		catalog_make_folder(t->node->catalog.rows_dir, t->row.id);
	catalog_make_folder(t->node->catalog.builds_dir, b->row.id);
	c->made_build = true;
	c->made_template = is_new;
	c->answer = created_json(b, w);
	t->row.updated_ns = b->row.created_ns;
	change_write(c);
}

void template_create_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
			 struct bytes text)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct template *t = NULL;
	struct wanted w;
	bool is_new;
	struct err err;

	if (json_decode(text, NODE_TEXT_MAX, TEXT_DEPTH, &body, &err) == 0 &&
	    check_name(n, rq->template_id, &err) == 0 && take_wanted(n, body, &w, &err) == 0)
		t = take_template(n, rq, &w, &is_new, &err);
	if (t)
		begin_build(t, is_new, &w, a);
	else
		door_refuse(a, &err);
}

/* --- look ----------------------------------------------------------------------------------- */

void template_list_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		       struct bytes text)
{
	size_t max = rq->count && rq->count < LIST_PAGE ? rq->count : LIST_PAGE;
	json_t *all;

	(void)text;
	if (!rq->team[0]) {
		sizes_ask(n, a, rq, operator_list);
		return;
	}
	all = json_array();
	for (const struct template *t = n->catalog.all; t && json_array_size(all) < max;
	     t = t->next)
		if (!t->going && (!rq->after_ns || t->row.created_ns < rq->after_ns) &&
		    strcmp(t->row.team, rq->team) == 0)
			(void)json_array_append_new(all, template_json(t));
	catalog_answer(a, all);
}

void template_get_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		      struct bytes text)
{
	struct err err;
	const struct template *t = catalog_own(n, rq->team, rq->template_id, &err);

	(void)text;
	if (t && !rq->team[0])
		sizes_ask(n, a, rq, operator_get);
	else if (t)
		catalog_answer(a, template_with_builds_json(t));
	else
		door_refuse(a, &err);
}

static void answer_alias(struct door_asked *a, const char *id, bool public)
{
	catalog_answer(a, json_pack("{s:s, s:b}", "templateID", id, "public", (int)public));
}

/* It exists, in somebody's name space: ERR_DENIED, when it is not for this team. */
void template_alias_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
			struct bytes text)
{
	const struct template *t = catalog_any(n, rq->team, rq->template_id);
	bool own = t && strcmp(t->row.team, rq->team) == 0;
	struct snapshot *p = NULL;
	struct err err;

	(void)text;
	if (base_is(n, rq->template_id) &&
	    catalog_lookup(n, rq->team, rq->template_id, rq->template_tag, &p, &err) == 0 && !p) {
		answer_alias(a, n->base.id, true);
	} else if (t && !own && !t->row.public) {
		err_set(&err, ERR_DENIED, 0, "template '%s' belongs to another team",
			rq->template_id);
		door_refuse(a, &err);
	} else if (t && (!rq->template_tag[0] || catalog_tagged(t, rq->template_tag))) {
		answer_alias(a, t->row.id, t->row.public);
	} else if (catalog_lookup(n, rq->team, rq->template_id, rq->template_tag, &p, &err) == 0) {
		answer_alias(a, p->row.id, false);
	} else {
		door_refuse(a, &err);
	}
}

/* --- change --------------------------------------------------------------------------------- */

void template_public_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
			 struct bytes text)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct template *t;
	struct catalog_change *c;
	bool public;
	struct err err;

	t = catalog_own(n, rq->team, rq->template_id, &err);
	if (!t || json_decode(text, NODE_TEXT_MAX, TEXT_DEPTH, &body, &err) < 0) {
		door_refuse(a, &err);
		return;
	}
	public = t->row.public;
	if (json_may_bool(body, "public", &public, &err) < 0) {
		door_refuse(a, &err);
		return;
	}
	c = change_begin(t, NULL, a);
	if (!c)
		return;
	t->row.public = public;
	t->row.updated_ns = catalog_now(&n->catalog);
	c->answer = template_json(t);
	change_write(c);
}

/* --- remove --------------------------------------------------------------------------------- */

static int refuse_used(size_t users, const char *name, struct err *err)
{
	return err_set(err, ERR_INVALID, 0,
		       "cannot delete template '%s' because there are %zu sandboxes using it", name,
		       users);
}

static int check_unused(const struct template *t, const char *name, struct err *err)
{
	size_t users = template_users(t);

	for (const struct build *b = t->builds; b; b = b->next)
		if (b->row.status == BUILD_BUILDING)
			return err_set(err, ERR_INVALID, 0,
				       "cannot delete template '%s' because it is being built",
				       name);
	return users > 0 ? refuse_used(users, name, err) : 0;
}

/* What came of the build goes, now that no row names it. */
static void drop_build(struct build *b)
{
	struct node *n = b->template->node;
	struct snapshot *p = b->row.copied ? b->snapshot : NULL;
	struct err err;

	if (folder_remove(n->catalog.builds_dir, b->row.id, &err) < 0) /* the next node does */
		log_warn("the log of build %s stays: %s", b->row.id, err.msg);
	build_forget(b);
	if (p)
		snapshot_hide(p);
}

static void on_removed(struct catalog_change *c)
{
	struct template *t = catalog_by_id(c->node, c->template_id);
	struct err err;

	log_info("template %s is removed", c->template_id);
	while (t && t->builds)
		drop_build(t->builds);
	if (folder_remove(c->node->catalog.rows_dir, c->template_id, &err) < 0)
		log_warn("template %s: its folder stays: %s", c->template_id, err.msg);
	if (t)
		template_forget(t);
}

static void remove_template(struct template *t, struct door_asked *a)
{
	struct catalog_change *c = change_begin(t, NULL, a);

	if (!c)
		return;
	t->going = true;
	c->removes = true;
	c->on_written = on_removed;
	change_write(c);
}

/* Of a template that has this tag by a snapshot: the snapshot is deleted, and the tag with it. */
static void remove_copy(struct template *t, struct build *b, struct door_asked *a)
{
	struct catalog_change *c;
	struct err err;

	if (build_users(b) > 0) {
		(void)refuse_used(build_users(b), t->row.name, &err);
		door_refuse(a, &err);
		return;
	}
	c = change_begin(t, NULL, a);
	if (!c)
		return;
	if (journal_remove_build(t->node->journal, &b->write, b->row.id, NULL, &err) < 0) {
		change_drop(c);
		door_refuse(a, &err);
		return;
	}
	for (size_t i = t->tags.n; i-- > 0;)
		if (strcmp(t->tags.all[i].build_id, b->row.id) == 0)
			(void)template_untag(t, t->tags.all[i].name);
	drop_build(b);
	change_write(c);
}

void template_delete_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
			 struct bytes text)
{
	struct err err;
	struct template *t = catalog_own(n, rq->team, rq->template_id, &err);
	struct build *b = t && rq->template_tag[0] ? catalog_tagged(t, rq->template_tag) : NULL;
	struct snapshot *p = NULL;

	if (!t && !rq->team[0] && !snapshots_by_id(n, rq->template_id)) { /* no names here */
		door_refuse(a, &err);
		return;
	}
	if (!t || (rq->template_tag[0] && !b)) /* by its own id, a snapshot may be a build, too */
		p = snapshots_find(n, rq->team, rq->template_id, rq->template_tag, &err);
	if (p && p->build) {
		t = p->build->template;
		b = p->build;
	}
	if (!t || (rq->template_tag[0] && !b)) {
		snapshots_delete(n, a, rq, text);
	} else if (b && b->row.copied) {
		remove_copy(t, b, a);
	} else if (b) {
		err_set(&err, ERR_INVALID, 0,
			"'%s:%s' is a build: remove its tag, or delete the template by its name",
			rq->template_id, rq->template_tag);
		door_refuse(a, &err);
	} else if (check_unused(t, rq->template_id, &err) < 0) {
		door_refuse(a, &err);
	} else {
		remove_template(t, a);
	}
}
