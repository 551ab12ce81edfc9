/* tag_verbs.c - tags of a template are given, taken away and listed. */
#include "base/clock.h"
#include "node/catalog/catalog_change.h"
#include "node/catalog/catalog_json.h"
#include "node/catalog/name_list.h"
#include "node/catalog/template_verbs.h"
#include "node/node.h"

enum { TEXT_DEPTH = 4 };

/* Its template and the tags it names. NULL: refused already. */
static struct template *begin(struct node *n, struct door_asked *a, const struct node_request *rq,
			      struct bytes text, struct name_list *ret)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct err err;
	struct template *t = NULL;

	if (json_decode(text, NODE_TEXT_MAX, TEXT_DEPTH, &body, &err) == 0 &&
	    name_list_take(body, true, ret, &err) == 0)
		t = catalog_own(n, rq->team, rq->template_id, &err);
	if (!t)
		door_refuse(a, &err);
	return t;
}

static int tag_all(struct template *t, const struct name_list *tags, const struct build *b,
		   struct err *err)
{
	for (size_t i = 0; i < tags->n; i++)
		if (template_tag(t, tags->all[i], b, err) < 0)
			return -1;
	return 0;
}

static json_t *assigned_json(const struct build *b, const struct name_list *tags)
{
	json_t *names = json_array();

	for (size_t i = 0; i < tags->n; i++)
		(void)json_array_append_new(names, json_string(tags->all[i]));
	return json_pack("{s:s, s:o}", "buildID", b->row.id, "tags", names);
}

void tags_assign_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	struct name_list tags;
	struct template *t = begin(n, a, rq, text, &tags);
	struct build *b = t ? catalog_tagged(t, rq->template_tag) : NULL;
	struct template_tags before;
	struct catalog_change *c;
	struct err err;

	if (!t)
		return;
	if (!b) {
		err_set(&err, ERR_NOT_FOUND, 0, "tag '%s' does not exist for template '%s'",
			rq->template_tag[0] ? rq->template_tag : TEMPLATE_TAG, rq->template_id);
		door_refuse(a, &err);
		return;
	}
	before = t->tags;
	c = change_begin(t, NULL, NULL);
	if (!c || tag_all(t, &tags, b, &err) < 0) {
		t->tags = before;
		if (c)
			change_drop(c);
		else
			err_set(&err, ERR_EXHAUSTED, 0, "no memory for a change");
		door_refuse(a, &err);
		return;
	}
	c->asked = a;
	t->row.updated_ns = clock_wall_ns();
	c->answer = assigned_json(b, &tags);
	change_write(c);
}

static int check_removal(const struct template *t, const struct name_list *tags, struct err *err)
{
	for (size_t i = 0; i < tags->n; i++) {
		if (strcmp(tags->all[i], TEMPLATE_TAG) == 0)
			return err_set(err, ERR_INVALID, 0, "cannot delete the '%s' tag",
				       TEMPLATE_TAG);
		if (!catalog_tagged(t, tags->all[i]))
			return err_set(err, ERR_NOT_FOUND, 0,
				       "tag '%s' does not exist for template '%s'", tags->all[i],
				       t->row.name);
	}
	return 0;
}

void tags_remove_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	struct name_list tags;
	struct template *t = begin(n, a, rq, text, &tags);
	struct catalog_change *c;
	struct err err;

	if (!t)
		return;
	if (check_removal(t, &tags, &err) < 0) {
		door_refuse(a, &err);
		return;
	}
	c = change_begin(t, NULL, a);
	if (!c)
		return;
	for (size_t i = 0; i < tags.n; i++)
		(void)template_untag(t, tags.all[i]);
	t->row.updated_ns = clock_wall_ns();
	change_write(c);
}

void tags_list_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		   struct bytes text)
{
	struct err err;
	const struct template *t = catalog_own(n, rq->team, rq->template_id, &err);

	(void)text;
	if (t)
		catalog_answer(a, template_tags_json(t));
	else
		door_refuse(a, &err);
}
