/* fuzz_list_query.c - promises of the list's query: within limits, and a token made of its cursor
 * is the same cursor.
 */
#include "fuzz/must.h"
#include "gateway/parse/list_query.h"

enum { LIMIT = 100 };

static void must_continue(const struct list_query *q)
{
	AUTO(buf_done) struct buf query = BUF_MAX(4096);
	struct node_sandbox s = { .started_ns = q->cursor_ns };
	struct list_query again;
	struct err err = { 0 };

	memcpy(s.id, q->cursor_id, sizeof(s.id));
	if (strstr(s.id, "__"))
		return; /* no id of ours has it, and it would be cut there */
	MUST(!list_query_follows(q, &s));
	MUST(buf_printf(&query, &err, "order=%s&nextToken=", q->ascending ? "asc" : "desc") == 0);
	MUST(list_token_put(&query, &s, q->ascending, &err) == 0);
	MUST(list_query_parse(buf_view(&query), LIMIT, &again, &err) == 0);
	MUST(again.has_cursor && again.cursor_ns == q->cursor_ns);
	MUST(strcmp(again.cursor_id, q->cursor_id) == 0);
	list_query_done(&again);
}

static void check(const struct list_query *q)
{
	MUST(q->limit >= 1 && q->limit <= LIMIT);
	MUST(q->running || q->paused);
	MUST(memchr(q->template_id, 0, sizeof(q->template_id)));
	MUST(memchr(q->cursor_id, 0, sizeof(q->cursor_id)));
	MUST(q->n_pairs <= LIST_PAIRS_MAX);
	for (size_t i = 0; i < q->n_pairs; i++) {
		MUST(inside(q->pairs[i].key, buf_view(&q->decoded)));
		MUST(inside(q->pairs[i].value, buf_view(&q->decoded)));
	}
	if (q->has_cursor)
		must_continue(q);
}

/* A sandbox with exactly the metadata asked for is found. */
static void must_match(struct list_query *q)
{
	AUTO(json_decrefp) json_t *metadata = json_object();
	struct node_sandbox s = { .started_ns = q->started_after_ns };
	bool all = true;

	MUST(metadata);
	memcpy(s.alias, q->template_id, sizeof(s.alias));
	for (size_t i = 0; i < q->n_pairs && all; i++) {
		const struct list_pair *p = &q->pairs[i];
		json_t *v =
			json_stringn(p->value.len ? (const char *)p->value.ptr : "", p->value.len);
		const char *key = p->key.len ? (const char *)p->key.ptr : "";

		/* what is not UTF-8 no metadata can be, and one key cannot have two values */
		all = v && !json_object_getn(metadata, key, p->key.len) &&
		      json_object_setn(metadata, key, p->key.len, v) == 0;
		json_decref(v);
	}
	MUST(!all || list_query_matches(q, &s, metadata) == q->running);
	s.state = NODE_PAUSED;
	MUST(!all || list_query_matches(q, &s, metadata) == q->paused);
	s.state = NODE_ENDING;
	MUST(!list_query_matches(q, &s, metadata));
	s.state = NODE_RUNNING;
	MUST(q->n_pairs == 0 || !list_query_matches(q, &s, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct list_query q;
	struct err err = { 0 };

	if (list_query_parse((struct bytes){ data, size }, LIMIT, &q, &err) < 0) {
		must_say_why(&err);
		MUST(err.code == ERR_INVALID && !q.decoded.ptr);
		return 0;
	}
	check(&q);
	must_match(&q);
	list_query_done(&q);
	return 0;
}
