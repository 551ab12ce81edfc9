/* list_query.c - the filters of a list, the triple encoding of metadata, and the cursor. */
#include "gateway/parse/list_query.h"

#include "gateway/parse/template_ref.h"
#include "wire/base64.h"
#include "wire/rfc3339.h"
#include "wire/target.h"

enum { PARAM_MAX = 512 };

static int parse_states(struct bytes in, struct list_query *ret, struct err *err)
{
	struct bytes one;

	ret->running = ret->paused = in.len == 0;
	while (bytes_next(&in, ',', &one)) {
		if (bytes_eq(one, BYTES_LIT("running")))
			ret->running = true;
		else if (bytes_eq(one, BYTES_LIT("paused")))
			ret->paused = true;
		else
			return err_set(err, ERR_INVALID, 0, "state must be running or paused");
	}
	return 0;
}

static int parse_order(struct bytes in, struct list_query *ret, struct err *err)
{
	ret->ascending = bytes_eq(in, BYTES_LIT("asc"));
	if (in.len > 0 && !ret->ascending && !bytes_eq(in, BYTES_LIT("desc")))
		return err_set(err, ERR_INVALID, 0, "order must be asc or desc");
	return 0;
}

static int parse_limit(struct bytes in, uint32_t most, struct list_query *ret, struct err *err)
{
	uint64_t n = most;

	if (in.len > 0 && (!bytes_to_u64(in, &n) || n < 1 || n > most))
		return err_set(err, ERR_INVALID, 0, "limit must be between 1 and %u", most);
	ret->limit = (uint32_t)n;
	return 0;
}

static int parse_template(struct bytes in, struct list_query *ret, struct err *err)
{
	struct template_ref ref;

	if (in.len == 0)
		return 0;
	if (template_ref_parse(in, &ref, err) < 0)
		return -1;
	if (ref.tag[0])
		return err_set(err, ERR_INVALID, 0, "template must not have a tag");
	/* a namespace is nobody's yet: matches nothing */
	snprintf(ret->template_id, sizeof(ret->template_id), "%s",
		 ref.has_namespace ? "/" : ref.name);
	return 0;
}

/* Cut at the first "__". */
static bool cut_mark(struct bytes *in, struct bytes *ret)
{
	for (size_t i = 0; i + 1 < in->len; i++) {
		if (in->ptr[i] != '_' || in->ptr[i + 1] != '_')
			continue;
		*ret = bytes_head(*in, i);
		*in = bytes_tail(*in, i + 2);
		return true;
	}
	return false;
}

static bool read_cursor(struct bytes plain, struct list_query *ret, struct err *err)
{
	struct bytes when, id;
	bool ascending = true;

	if (!cut_mark(&plain, &when) || rfc3339_parse(when, &ret->cursor_ns, err) < 0)
		return false;
	if (!cut_mark(&plain, &id)) {
		id = plain;
		ascending = false;
	} else if (!bytes_eq(plain, BYTES_LIT("asc"))) {
		return false;
	}
	return ascending == ret->ascending && id.len > 0 &&
	       bytes_to_str(id, ret->cursor_id, sizeof(ret->cursor_id));
}

static int parse_cursor(struct bytes in, struct list_query *ret, struct err *err)
{
	AUTO(buf_done) struct buf plain = BUF_MAX(LIST_TOKEN_MAX);
	struct err why;

	if (in.len == 0)
		return 0;
	if (base64_decode(in, &plain, &why) < 0 || !read_cursor(buf_view(&plain), ret, &why))
		return err_set(err, ERR_INVALID, 0, "Invalid next token");
	ret->has_cursor = true;
	return 0;
}

/* One `key=value` of the filter, each still encoded once. */
static int add_pair(struct bytes pair, struct list_query *ret, struct err *err)
{
	struct list_pair *p = &ret->pairs[ret->n_pairs];
	struct bytes key;
	size_t at = ret->decoded.len, middle;

	if (ret->n_pairs == LIST_PAIRS_MAX)
		return err_set(err, ERR_INVALID, 0, "metadata: more than %d pairs", LIST_PAIRS_MAX);
	if (!bytes_cut(&pair, '=', &key) || (pair.len > 0 && memchr(pair.ptr, '=', pair.len)))
		return err_set(err, ERR_INVALID, 0, "metadata: each pair must be key=value");
	if (target_decode_param(key, &ret->decoded, err) < 0)
		return err_wrap(err, "metadata");
	middle = ret->decoded.len;
	if (target_decode_param(pair, &ret->decoded, err) < 0)
		return err_wrap(err, "metadata");
	p->key = (struct bytes){ ret->decoded.ptr + at, middle - at };
	p->value = (struct bytes){ ret->decoded.ptr + middle, ret->decoded.len - middle };
	ret->n_pairs++;
	return 0;
}

/* Encoded three times: as a query's parameter, as a whole, and each key and value by itself. */
static int parse_metadata(struct bytes query, struct list_query *ret, struct err *err)
{
	AUTO(buf_done) struct buf once = BUF_MAX(LIST_METADATA_MAX);
	AUTO(buf_done) struct buf twice = BUF_MAX(LIST_METADATA_MAX);
	struct bytes rest, pair;
	uint8_t *room;

	if (target_param(query, "metadata", &once, err) < 0)
		return -1;
	if (once.len == 0)
		return 0;
	if (target_decode_param(buf_view(&once), &twice, err) < 0)
		return err_wrap(err, "metadata");
	/* all of it at once: pairs point into it, so it must not move */
	ret->decoded = BUF_MAX(LIST_METADATA_MAX);
	if (buf_reserve(&ret->decoded, LIST_METADATA_MAX, &room, err) < 0)
		return -1;
	rest = buf_view(&twice);
	while (bytes_next(&rest, '&', &pair))
		if (add_pair(pair, ret, err) < 0)
			return -1;
	return 0;
}

static int parse_started(struct bytes in, struct list_query *ret, struct err *err)
{
	if (in.len > 0 && rfc3339_parse(in, &ret->started_after_ns, err) < 0)
		return err_wrap(err, "startedAfter");
	return 0;
}

static int parse_usage(struct bytes in, struct list_query *ret, struct err *err)
{
	ret->usage = bytes_eq(in, BYTES_LIT("true"));
	if (in.len > 0 && !ret->usage && !bytes_eq(in, BYTES_LIT("false")))
		return err_set(err, ERR_INVALID, 0, "usage must be true or false");
	return 0;
}

static int parse_all(struct bytes query, uint32_t limit, struct list_query *ret, struct err *err)
{
	AUTO(buf_done) struct buf v = BUF_MAX(PARAM_MAX);

	if (target_param(query, "state", &v, err) < 0 || parse_states(buf_view(&v), ret, err) < 0 ||
	    target_param(query, "order", &v, err) < 0 || parse_order(buf_view(&v), ret, err) < 0 ||
	    target_param(query, "limit", &v, err) < 0 ||
	    parse_limit(buf_view(&v), limit, ret, err) < 0 ||
	    target_param(query, "template", &v, err) < 0 ||
	    parse_template(buf_view(&v), ret, err) < 0 ||
	    target_param(query, "startedAfter", &v, err) < 0 ||
	    parse_started(buf_view(&v), ret, err) < 0 ||
	    target_param(query, "usage", &v, err) < 0 || parse_usage(buf_view(&v), ret, err) < 0 ||
	    target_param(query, "nextToken", &v, err) < 0 ||
	    parse_cursor(buf_view(&v), ret, err) < 0)
		return -1;
	return parse_metadata(query, ret, err);
}

int list_query_parse(struct bytes query, uint32_t limit, struct list_query *ret, struct err *err)
{
	*ret = (struct list_query){ 0 };
	if (parse_all(query, limit, ret, err) < 0) {
		list_query_done(ret);
		err->code = ERR_INVALID; /* also when it was too long for a buffer */
		return -1;
	}
	return 0;
}

void list_query_done(struct list_query *q)
{
	buf_done(&q->decoded);
	q->n_pairs = 0;
}

static bool has_pair(const json_t *metadata, const struct list_pair *p)
{
	json_t *v;

	if (p->key.len == 0)
		v = json_object_get(metadata, "");
	else
		v = json_object_getn(metadata, (const char *)p->key.ptr, p->key.len);
	return json_is_string(v) && bytes_eq(json_bytes(v), p->value);
}

bool list_query_matches(const struct list_query *q, const struct node_sandbox *s,
			const json_t *metadata)
{
	bool wanted =
		(q->running && s->state == NODE_RUNNING) || (q->paused && s->state == NODE_PAUSED);

	if (!wanted || s->started_ns < q->started_after_ns)
		return false;
	if (q->template_id[0] && strcmp(q->template_id, s->template_id) != 0 &&
	    strcmp(q->template_id, s->alias) != 0)
		return false;
	for (size_t i = 0; i < q->n_pairs; i++)
		if (!has_pair(metadata, &q->pairs[i]))
			return false;
	return true;
}

bool list_query_follows(const struct list_query *q, const struct node_sandbox *s)
{
	int side;

	if (!q->has_cursor)
		return true;
	side = (s->started_ns > q->cursor_ns) - (s->started_ns < q->cursor_ns);
	if (side == 0)
		side = strcmp(s->id, q->cursor_id);
	return q->ascending ? side > 0 : side < 0;
}

int list_token_put(struct buf *out, const struct node_sandbox *s, bool ascending, struct err *err)
{
	AUTO(buf_done) struct buf plain = BUF_MAX(LIST_TOKEN_MAX);
	char when[RFC3339_SIZE];
	size_t at = out->len;

	rfc3339_put(s->started_ns, 9, when);
	if (buf_printf(&plain, err, "%s__%s%s", when, s->id, ascending ? "__asc" : "") < 0 ||
	    base64_encode(buf_view(&plain), out, err) < 0)
		return -1;
	for (size_t i = at; i < out->len; i++) {
		if (out->ptr[i] == '+')
			out->ptr[i] = '-';
		else if (out->ptr[i] == '/')
			out->ptr[i] = '_';
	}
	while (out->len > at && out->ptr[out->len - 1] == '=')
		out->len--;
	return 0;
}
