/* signed.c - see signed.h. */
#include "node/life/signed.h"

#include <errno.h>

#include "base/list.h"
#include "node/node.h"

int signed_search_begin(struct signed_search *s, struct bytes query, bool writes, struct err *err)
{
	*s = (struct signed_search){ 0 };
	if (files_query_parse(query, &s->query, err) < 0 ||
	    files_query_signed(&s->query, writes ? "write" : "read", &s->url, err) < 0)
		return -1;
	signature_begin(&s->url, &s->begun);
	return 0;
}

void signed_search_end(struct signed_search *s)
{
	files_query_done(&s->query);
}

/* Without a token of its own a sandbox signs nothing: anybody could have. */
static bool is_signer(const struct signed_search *s, const struct sandbox *b)
{
	char want[SIGNATURE_TEXT_MAX];

	if (b->state == SANDBOX_ENDING || b->info.access_token[0] == '\0')
		return false;
	signature_end(&s->begun, &s->url, bytes_str(b->info.access_token), want);
	return bytes_eq_secret(buf_view(&s->query.signature), bytes_str(want));
}

bool signed_search_slice(struct signed_search *s, const struct sandbox_table *t,
			 const struct sandbox **ret)
{
	size_t left = 0;
	struct sandbox *const *at = table_after(t, TABLE_EVERYONE, s->after_ns, s->after_id, &left);
	size_t n = left < SIGNED_SLICE ? left : SIGNED_SLICE;

	*ret = NULL;
	for (size_t i = 0; i < n && !*ret; i++)
		if (is_signer(s, at[i]))
			*ret = at[i];
	if (*ret || left <= SIGNED_SLICE)
		return true;
	s->after_ns = at[n - 1]->info.started_ns;
	memcpy(s->after_id, at[n - 1]->info.id, sizeof(s->after_id));
	return false;
}

/* --- one after the other ------------------------------------------------------------------ */

static void search_free(struct signed_search *s)
{
	signed_search_end(s);
	free(s);
}

static void answer(struct signed_search *s, const struct sandbox *found)
{
	struct err err;

	if (found) {
		door_answer(s->asked, &(struct node_reply){ .sandbox = found->info },
			    (struct bytes){ 0 }, NULL, 0);
	} else {
		err_set(&err, ERR_NOT_FOUND, 0, SIGNATURE_INVALID);
		door_refuse(s->asked, &err);
	}
}

static void on_turn(struct timer *t)
{
	struct node *n = CONTAINER_OF(t, struct node, searches.turn);
	struct signed_searches *all = &n->searches;
	const struct sandbox *found;

	if (signed_search_slice(all->first, &n->table, &found)) {
		struct signed_search *s = queue_take(all);

		all->n--;
		answer(s, found);
		search_free(s);
	}
	if (all->first)
		timer_start(&all->turn, 0);
}

static int add(struct node *n, struct door_asked *a, bool writes, struct bytes query,
	       struct err *err)
{
	struct signed_searches *all = &n->searches;
	struct signed_search *s;

	if (all->n == SIGNED_WAITING_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "too many signed URLs at once");
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "look for a sandbox");
	if (signed_search_begin(s, query, writes, err) < 0) {
		search_free(s);
		return -1;
	}
	s->asked = a;
	queue_add(all, s);
	all->n++;
	if (!all->turn.active)
		timer_start(&all->turn, 0);
	return 0;
}

/* Is it this one? */
static int ask_one(struct node *n, struct door_asked *a, const struct node_request *rq,
		   struct bytes query, struct err *err)
{
	const struct sandbox *b = table_find(&n->table, rq->id);
	struct signed_search s;
	int rc = signed_search_begin(&s, query, rq->flags & NODE_WRITE, err);

	if (rc == 0 && (!b || !b->team || !is_signer(&s, b)))
		rc = err_set(err, ERR_NOT_FOUND, 0, SIGNATURE_INVALID);
	if (rc == 0)
		door_answer(a, &(struct node_reply){ .sandbox = b->info }, (struct bytes){ 0 },
			    NULL, 0);
	signed_search_end(&s);
	return rc;
}

void signed_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		struct bytes text)
{
	struct err err;

	if ((rq->id[0] ? ask_one(n, a, rq, text, &err)
		       : add(n, a, rq->flags & NODE_WRITE, text, &err)) < 0)
		door_refuse(a, &err);
}

void signed_open(struct node *n)
{
	n->searches = (struct signed_searches){ .last = &n->searches.first };
	timer_init(&n->searches.turn, n->loop, on_turn);
}

void signed_close(struct node *n)
{
	while (n->searches.first)
		search_free(queue_take(&n->searches));
	timer_stop(&n->searches.turn);
}
