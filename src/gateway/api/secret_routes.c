/* secret_routes.c - secrets: sealed before they are kept, never shown again.
 *
 *	add      seal key of node -> seal -> store -> tell node -> answer
 *	replace  store: which one -> the same
 *	delete   store: which one -> tell node -> store -> tell node -> answer
 *
 * Node is told of what its sandboxes may use already. Of a new version it is told after the store,
 * of a deletion before: what fails half-way is mended by asking again.
 */
#include "base/log.h"
#include "base/wipe.h"
#include "gateway/api/answer.h"
#include "gateway/api/api.h"
#include "gateway/parse/secret_request.h"
#include "tls/seal.h"

enum { LIST_MAX = 100, KEY_DEPTH_MAX = 2, LABEL_SIZE = 192 };

struct secret_job { /* of a call that changes one */
	struct api_job job;
	struct secret_request want;
	char id[STORE_SECRET_ID_SIZE]; /* empty: a new one */
	char name[SECRET_NAME_SIZE];
	char *sealed;
	json_t *answer;
	bool removed;
};

static struct secret_job *job_of(const struct api_call *c)
{
	return CONTAINER_OF(c->job, struct secret_job, job);
}

static void job_free(struct api_job *job)
{
	struct secret_job *j = CONTAINER_OF(job, struct secret_job, job);

	secret_request_done(&j->want);
	free(j->sealed);
	json_decref(j->answer);
	free(j);
}

/* E2B's words, and the cause behind them where there is one to tell. */
static void fail(struct api_call *c, const struct err *err)
{
	switch (err->code) {
	case ERR_INVALID:
		api_fail(c, 400, "Invalid secrets request: %s", err->msg);
		break;
	case ERR_NOT_FOUND:
		api_fail(c, 404, "Secret not found");
		break;
	case ERR_EXISTS:
	case ERR_EXHAUSTED:
		api_fail(c, 409, "Secret cannot be modified in its current state: %s", err->msg);
		break;
	case ERR_TIMEOUT:
		api_fail(c, 504, "Secrets backend timed out");
		break;
	case ERR_NONE:
	case ERR_DENIED:
	case ERR_MISMATCH:
	case ERR_VERSION:
	case ERR_UNAVAILABLE:
	case ERR_INTERNAL:
	case ERR_NO_SPACE:
	case ERR_NO_FILES:
	case ERR_BASE_LOST:
	case ERR_CODES:
		log_warn("secrets: %s", err->msg);
		api_fail(c, 502, "Secrets backend error");
		break;
	}
}

/* What node says when there is nobody to keep secrets. */
static void fail_node(struct api_call *c, const struct err *err)
{
	if (err->code == ERR_TIMEOUT || err->code == ERR_UNAVAILABLE || err->code == ERR_INTERNAL)
		fail(c, err);
	else
		api_fail(c, 403, "Secrets are not available for this team");
}

static json_t *secret_json(const struct store_secret *s)
{
	json_t *metadata = NULL;
	struct err err;

	if (json_decode(bytes_str(s->metadata), SECRET_METADATA_TEXT_MAX, 1, &metadata, &err) < 0)
		metadata = json_object();
	return json_pack("{s:s, s:s, s:I, s:o, s:o, s:o}", "secretID", s->id, "name", s->name,
			 "currentVersion", (json_int_t)s->version, "metadata", metadata,
			 "createdAt", api_time(s->created_ns), "updatedAt",
			 api_time(s->updated_ns));
}

/* Answered already when this is NULL. */
static struct secret_job *job_new(struct api_call *c)
{
	struct secret_job *j = calloc(1, sizeof(*j));

	if (!j) {
		api_fail(c, 503, "no memory");
		return NULL;
	}
	j->job.free = job_free;
	c->job = &j->job;
	return j;
}

/* Ask about the secret of a request; its memory is the store's from here on. */
static void ask_store(struct api_call *c, enum store_verb verb, struct store_secret *s,
		      api_store_any_fn *on_done)
{
	if (s)
		api_ask_store_any(c, &(struct store_request){ .verb = verb, .secret = s }, on_done);
	else
		api_fail(c, 503, "no memory");
}

/* The one in the path. */
static void ask_which(struct api_call *c, api_store_any_fn *on_done)
{
	struct store_secret *s = store_secret_new(c->team.id);

	if (s && !secret_selector(bytes_str(c->params[0]), s->id, s->name)) {
		store_secret_free(s);
		api_fail(c, 400, "Invalid secrets request: neither an id nor a name");
		return;
	}
	ask_store(c, STORE_SECRET_GET, s, on_done);
}

/* --- telling node ------------------------------------------------------------------------- */

/* `sealed` may be NULL: there is none any more. */
static void tell_node(struct api_call *c, const char *sealed, api_node_fn *on_done)
{
	AUTO(json_decrefp)
	json_t *text = json_pack("{s:s, s:s?}", "name", job_of(c)->name, "sealed", sealed);
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_TEXT_MAX);
	struct node_request rq = { .verb = NODE_SECRET };
	struct err err;

	c->on_refused = NULL;
	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	if (!text || json_encode(text, &out, &err) < 0)
		api_fail(c, 503, "no memory");
	else
		api_ask_node_or(c, &rq, buf_view(&out), API_CREATE_MS, on_done);
}

/* --- a value ------------------------------------------------------------------------------ */

static void on_told(struct api_call *c, struct node_answer *said)
{
	if (said->err && job_of(c)->id[0]) { /* sandboxes may go on with the old: done again */
		fail(c, said->err);
		return;
	}
	if (said->err)
		log_warn("secrets: node was not told of a new one: %s", said->err->msg);
	api_answer(c, job_of(c)->id[0] ? 200 : 201, TAKE(job_of(c)->answer));
}

static void on_stored(struct api_call *c, const struct store_result *ret, const struct err *err)
{
	if (err) {
		fail(c, err);
		return;
	}
	job_of(c)->answer = secret_json(&ret->secrets[0]);
	tell_node(c, job_of(c)->sealed, on_told);
}

/* The label: a sealed text of one team, or under one name, is of no use elsewhere. */
static int seal_value(struct api_call *c, struct bytes key, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(SEAL_TEXT_MAX + 1);
	struct secret_job *j = job_of(c);
	char label[LABEL_SIZE];

	snprintf(label, sizeof(label), "%s/%s", c->team.id, j->name);
	loop_forget(c->g->loop);
	if (seal(key, bytes_str(label), buf_view(&j->want.value), &text, err) < 0)
		return -1;
	buf_done(&j->want.value);
	j->sealed = strndup((const char *)text.ptr, text.len);
	return j->sealed ? 0 : err_set(err, ERR_INTERNAL, 0, "no memory");
}

static struct store_secret *to_store(struct api_call *c)
{
	struct store_secret *s = store_secret_new(c->team.id);
	const struct secret_job *j = job_of(c);
	struct bytes metadata = buf_view(&j->want.metadata);

	if (!s)
		return NULL;
	memcpy(s->id, j->id, sizeof(s->id));
	memcpy(s->name, j->name, sizeof(s->name));
	if (metadata.len == 0 && !j->id[0])
		metadata = BYTES_LIT("{}");
	s->sealed = strdup(j->sealed);
	if (metadata.len > 0)
		s->metadata = strndup((const char *)metadata.ptr, metadata.len);
	if (s->sealed && (s->metadata || metadata.len == 0))
		return s;
	store_secret_free(s);
	return NULL;
}

static void on_seal_key(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *text = NULL;
	struct bytes key;
	struct err why;

	if (said->err)
		fail_node(c, said->err);
	else if (json_decode(said->after, NODE_TEXT_MAX, KEY_DEPTH_MAX, &text, &why) < 0 ||
		 json_want_string(text, "sealKey", &key, &why) < 0 ||
		 seal_value(c, key, &why) < 0) {
		why.code = ERR_INTERNAL; /* nothing of it is the client's fault */
		fail(c, &why);
	} else {
		ask_store(c, job_of(c)->id[0] ? STORE_SECRET_UPDATE : STORE_SECRET_ADD, to_store(c),
			  on_stored);
	}
}

static void ask_seal_key(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_SEAL_KEY };

	c->outlives = true; /* what the store has, node is told of */
	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	c->on_refused = NULL;
	api_ask_node_or(c, &rq, (struct bytes){ 0 }, API_NODE_MS, on_seal_key);
}

/* Answered already when this fails. The value is nowhere else afterwards. */
static bool take_value(struct api_call *c, bool named)
{
	struct secret_job *j = job_new(c);
	struct err err;
	int rc;

	if (!j)
		return false;
	rc = secret_request_parse(buf_view(&c->body), named, &j->want, &err);
	wipe(c->body.ptr, c->body.len);
	if (rc < 0)
		fail(c, &err);
	else
		memcpy(j->name, j->want.name, sizeof(j->name));
	return rc == 0;
}

static void secret_add(struct api_call *c)
{
	if (take_value(c, false))
		ask_seal_key(c);
}

/* False: it is answered, for there is none. */
static bool take_found(struct api_call *c, const struct store_result *ret, const struct err *err)
{
	if (err) {
		fail(c, err);
		return false;
	}
	memcpy(job_of(c)->id, ret->secrets[0].id, sizeof(job_of(c)->id));
	memcpy(job_of(c)->name, ret->secrets[0].name, sizeof(job_of(c)->name));
	return true;
}

static void on_to_replace(struct api_call *c, const struct store_result *ret, const struct err *err)
{
	if (take_found(c, ret, err))
		ask_seal_key(c);
}

static void secret_replace(struct api_call *c)
{
	if (take_value(c, true))
		ask_which(c, on_to_replace);
}

/* --- looking ------------------------------------------------------------------------------ */

static void on_got(struct api_call *c, const struct store_result *ret, const struct err *err)
{
	if (err)
		fail(c, err);
	else
		api_answer(c, 200, secret_json(&ret->secrets[0]));
}

static void secret_get(struct api_call *c)
{
	ask_which(c, on_got);
}

/* One more was asked for than is shown: then there is another page. */
static void on_listed(struct api_call *c, const struct store_result *ret, const struct err *err)
{
	struct http1_field next = { BYTES_LIT("X-Next-Token"), { 0 } };
	json_t *all = json_array();
	size_t shown;

	if (err) {
		json_decref(all);
		fail(c, err);
		return;
	}
	shown = ret->n_secrets < c->seconds ? ret->n_secrets : c->seconds;
	for (size_t i = 0; i < shown; i++)
		json_array_append_new(all, secret_json(&ret->secrets[i]));
	if (ret->n_secrets > shown)
		next.value = bytes_str(ret->secrets[shown - 1].id);
	api_answer_with(c, 200, all, &next, ret->n_secrets > shown);
}

static bool take_page(struct api_call *c, uint64_t *ret_limit,
		      char ret_after[static STORE_SECRET_ID_SIZE])
{
	AUTO(buf_done) struct buf limit = BUF_MAX(STORE_NAME_SIZE);
	AUTO(buf_done) struct buf token = BUF_MAX(STORE_NAME_SIZE);
	char unused[SECRET_NAME_SIZE];
	bool found = false;
	struct err err;

	*ret_limit = LIST_MAX;
	ret_after[0] = '\0';
	if (target_find_param(c->query, "limit", &limit, &found, &err) < 0 ||
	    target_find_param(c->query, "nextToken", &token, &found, &err) < 0 ||
	    (limit.len > 0 && (!bytes_to_u64(buf_view(&limit), ret_limit) || *ret_limit < 1 ||
			       *ret_limit > LIST_MAX)) ||
	    (token.len > 0 &&
	     (!secret_selector(buf_view(&token), ret_after, unused) || !ret_after[0]))) {
		api_fail(c, 400, "Invalid secrets request: limit is 1 to %d, nextToken one given",
			 LIST_MAX);
		return false;
	}
	return true;
}

static void secret_list(struct api_call *c)
{
	struct store_request rq = { .verb = STORE_SECRET_LIST };
	char after[STORE_SECRET_ID_SIZE];
	uint64_t limit;

	if (!take_page(c, &limit, after))
		return;
	rq.secret = store_secret_new(c->team.id);
	if (!rq.secret) {
		api_fail(c, 503, "no memory");
		return;
	}
	memcpy(rq.secret->id, after, sizeof(after));
	c->seconds = (uint32_t)limit;
	rq.count = c->seconds + 1;
	api_ask_store_any(c, &rq, on_listed);
}

/* --- delete ------------------------------------------------------------------------------- */

static void on_removed(struct api_call *c, const struct store_result *ret, const struct err *err);

/* Sandboxes lose the secret before the store does. Node is told again afterwards, for sandboxes
 * that were made in between. */
static void on_untold(struct api_call *c, struct node_answer *said)
{
	struct store_secret *s;

	if (job_of(c)->removed) {
		if (said->err)
			log_warn("secrets: node was not told twice of a deletion: %s",
				 said->err->msg);
		api_answer(c, 204, NULL);
		return;
	}
	if (said->err) {
		fail(c, said->err);
		return;
	}
	s = store_secret_new(c->team.id);
	if (s)
		memcpy(s->id, job_of(c)->id, sizeof(s->id));
	ask_store(c, STORE_SECRET_REMOVE, s, on_removed);
}

static void on_removed(struct api_call *c, const struct store_result *ret, const struct err *err)
{
	(void)ret;
	if (err) {
		fail(c, err);
		return;
	}
	job_of(c)->removed = true;
	tell_node(c, NULL, on_untold);
}

static void on_to_remove(struct api_call *c, const struct store_result *ret, const struct err *err)
{
	if (!take_found(c, ret, err))
		return;
	c->outlives = true;
	tell_node(c, NULL, on_untold);
}

static void secret_remove(struct api_call *c)
{
	if (job_new(c))
		ask_which(c, on_to_remove);
}

const struct route secret_routes[] = {
	{ "GET", "/secrets", AUTH_KEY, secret_list },
	{ "POST", "/secrets", AUTH_KEY, secret_add, true, .secret = true },
	{ "GET", "/secrets/{secretID}", AUTH_KEY, secret_get },
	{ "POST", "/secrets/{secretID}", AUTH_KEY, secret_replace, true, .secret = true },
	{ "DELETE", "/secrets/{secretID}", AUTH_KEY, secret_remove },
	{ 0 },
};
