/* secret_fill.c - which secrets a text names, and putting them beside the rules. */
#include "gateway/api/secret_fill.h"

#include "gateway/api/answer.h"
#include "wire/placeholder.h"
#include "wire/rule_secrets.h"

enum { TEXT_DEPTH_MAX = 32, NAMES_MAX = STORE_SECRETS_FOUND_MAX };

struct fill_job {
	struct api_job job;
	struct node_request rq;
	json_t *text;
	uint64_t deadline_ms;
	api_node_fn *on_done;
};

static struct fill_job *job_of(const struct api_call *c)
{
	return CONTAINER_OF(c->job, struct fill_job, job);
}

static void job_free(struct api_job *job)
{
	struct fill_job *j = CONTAINER_OF(job, struct fill_job, job);

	json_decref(j->text);
	free(j);
}

/* It may come later, as E2B allows; until then requests that need it are refused. */
static void warn_missing(struct api_call *c, const json_t *text, const json_t *sealed)
{
	AUTO(json_decrefp) json_t *names = rule_secrets(text);
	const char *name;
	json_t *unused;

	json_object_foreach(names, name, unused)
	{
		if (!json_object_get(sealed, name))
			api_warn(
				c,
				"no secret %s: requests that need it are refused until it is there",
				name);
	}
}

static void on_found(struct api_call *c, const struct store_result *ret, const struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(NODE_TEXT_MAX);
	struct fill_job *j = job_of(c);
	json_t *sealed = json_object();
	struct err why;

	for (size_t i = 0; ret && i < ret->n_secrets; i++)
		json_object_set_new(sealed, ret->secrets[i].name,
				    json_string(ret->secrets[i].sealed));
	if (ret)
		warn_missing(c, j->text, sealed);
	json_object_set_new(j->text, "sealed", sealed);
	if (!c->rq) /* nobody waits for it any more, and nothing was begun */
		api_call_free(c);
	else if (err)
		api_fail_err(c, err);
	else if (json_encode(j->text, &text, &why) < 0)
		api_fail(c, 400, "the network and the secrets it names are larger than %d KiB",
			 NODE_TEXT_MAX / 1024);
	else
		api_ask_node_or(c, &j->rq, buf_view(&text), j->deadline_ms, j->on_done);
}

/* NULL: no memory, or too many. */
static struct store_secret *question(const struct api_call *c, json_t *names)
{
	AUTO(buf_done) struct buf list = BUF_MAX((size_t)NAMES_MAX * (SECRET_NAME_MAX + 1) + 1);
	struct store_secret *s = store_secret_new(c->team.id);
	const char *name;
	json_t *unused;
	struct err err;

	json_object_foreach(names, name, unused)
	{
		if (buf_printf(&list, &err, "%s%s", list.len > 0 ? " " : "", name) < 0)
			break;
	}
	if (s && json_object_size(names) <= NAMES_MAX && list.len > 0)
		s->names = strndup((const char *)list.ptr, list.len);
	if (s && s->names)
		return s;
	store_secret_free(s);
	return NULL;
}

static bool names_any(struct bytes text)
{
	struct bytes mark = BYTES_LIT("${e2b.secrets.");

	return text.len > 0 && memmem(text.ptr, text.len, mark.ptr, mark.len);
}

void secret_fill(struct api_call *c, const struct node_request *rq, struct bytes text,
		 uint64_t deadline_ms, api_node_fn *on_done)
{
	AUTO(json_decrefp) json_t *v = NULL, *names = NULL;
	struct store_request ask = { .verb = STORE_SECRET_FIND };
	struct fill_job *j;
	struct err err;

	if (names_any(text) && json_decode(text, NODE_TEXT_MAX, TEXT_DEPTH_MAX, &v, &err) == 0)
		names = rule_secrets(v);
	if (json_object_size(names) == 0) {
		api_ask_node_or(c, rq, text, deadline_ms, on_done);
		return;
	}
	ask.secret = question(c, names);
	j = calloc(1, sizeof(*j));
	if (!ask.secret || !j) {
		store_secret_free(ask.secret);
		free(j);
		api_fail(c, 503, "no memory");
		return;
	}
	*j = (struct fill_job){ { job_free }, *rq, TAKE(v), deadline_ms, on_done };
	c->job = &j->job;
	api_ask_store_any(c, &ask, on_found);
}
