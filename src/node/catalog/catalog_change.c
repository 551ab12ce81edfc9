/* catalog_change.c - from a change in memory to its answer. */
#include "node/catalog/catalog_change.h"

#include <errno.h>

#include "base/list.h"
#include "base/log.h"
#include "node/node.h"

static void change_free(struct catalog_change *c)
{
	journal_write_cancel(&c->write);
	list_remove(c);
	json_decref(c->answer);
	free(c);
}

void change_drop(struct catalog_change *c)
{
	change_free(c);
}

void changes_close(struct node *n)
{
	while (n->catalog.changes)
		change_free(n->catalog.changes);
}

static void undo(const struct catalog_change *c)
{
	struct template *t = catalog_by_id(c->node, c->template_id);
	struct build *b = t && c->build_id[0] ? catalog_build(t, c->build_id) : NULL;

	if (!t)
		return;
	if (b && c->made_build)
		build_forget(b);
	else if (b)
		b->row.status = c->before_status;
	if (b && !c->made_build && b->row.status == BUILD_WAITING)
		build_unprepare(b);
	if (c->made_template && !t->builds) {
		template_forget(t);
		return;
	}
	t->going = false;
	t->row = c->before;
	t->tags = c->before_tags;
}

static void answer(struct catalog_change *c)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_TEXT_MAX);
	struct err err;

	if (!c->asked || !c->node->door)
		return;
	if (c->answer && json_encode(c->answer, &out, &err) < 0)
		door_refuse(c->asked, &err);
	else
		door_answer(c->asked, &(struct node_reply){ 0 }, buf_view(&out), NULL, 0);
}

static void end_noting(const struct catalog_change *c)
{
	struct build *b = c->build_id[0] ? catalog_build_anywhere(c->node, c->build_id) : NULL;

	if (b)
		b->noting = false;
}

static void on_written(struct journal_write *w, const struct err *failed)
{
	struct catalog_change *c = CONTAINER_OF(w, struct catalog_change, write);

	end_noting(c);
	if (failed) {
		log_error("template %s: not written: %s", c->template_id, failed->msg);
		undo(c);
		if (c->asked && c->node->door)
			door_refuse(c->asked, failed);
	} else {
		struct template *t = catalog_by_id(c->node, c->template_id);

		if (t)
			template_settle(t);
		answer(c);
		if (c->on_written)
			c->on_written(c);
	}
	change_free(c);
}

struct catalog_change *change_begin(struct template *t, struct build *b, struct door_asked *a)
{
	struct catalog_change *c = calloc(1, sizeof(*c));
	struct err err;

	if (!c) {
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "a change of a template");
		if (a)
			door_refuse(a, &err);
		return NULL;
	}
	c->node = t->node;
	c->asked = a;
	memcpy(c->template_id, t->row.id, sizeof(c->template_id));
	c->before = t->row;
	c->before_tags = t->tags;
	if (b) {
		snprintf(c->build_id, sizeof(c->build_id), "%.*s", BUILD_ID_SIZE - 1, b->row.id);
		c->before_status = (enum build_status)b->row.status;
	}
	list_add(&t->node->catalog.changes, c);
	return c;
}

void change_write(struct catalog_change *c)
{
	AUTO(buf_done)
	struct buf tags = BUF_MAX(TEMPLATE_TAGS_TEXT_MAX);
	struct template *t = catalog_by_id(c->node, c->template_id);
	struct build *b = c->build_id[0] ? catalog_build(t, c->build_id) : NULL;
	struct journal_template row = t->row;
	struct err err;

	if (c->removes) {
		if (journal_remove_template(c->node->journal, &c->write, c->template_id, on_written,
					    &err) < 0)
			on_written(&c->write, &err);
		return;
	}
	template_tags_text(t, &tags);
	row.tags = tags.len > 0 ? (char *)tags.ptr : NULL;
	if (journal_put_template(c->node->journal, &c->write, &row, b ? &b->row : NULL, on_written,
				 &err) < 0)
		on_written(&c->write, &err);
}
