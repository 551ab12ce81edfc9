/* envs.c - GET /envs of the agent, over a connection of its own. */
#include "interp/envs.h"

#include "base/log.h"

enum { ENVS_DEPTH = 4 };

static void done(struct envs_ask *a, json_t *envs, const char *why)
{
	envs_done_fn *on_done = TAKE(a->on_done);

	if (!envs)
		log_warn("the variables of the sandbox are not known: %s", why ? why : "");
	on_done(a, envs);
}

/* Only strings: what else is in there nobody can have set. */
static void only_strings(json_t *envs)
{
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(envs, next, name, value)
	{
		if (!json_is_string(value))
			json_object_del(envs, name);
	}
}

static void on_answer(struct http_call *c, const struct http_call_result *ret,
		      const struct err *failed)
{
	struct envs_ask *a = CONTAINER_OF(c, struct envs_ask, call);
	json_t *envs = NULL;
	struct err err;

	if (failed) {
		done(a, NULL, failed->msg);
	} else if (ret->head->status != 200) {
		done(a, NULL, "the agent refuses");
	} else if (json_decode(ret->body, ENVS_MAX, ENVS_DEPTH, &envs, &err) < 0) {
		done(a, NULL, err.msg);
	} else {
		only_strings(envs);
		done(a, envs, NULL);
	}
}

static void on_dialled(struct dial *d, struct stream *s, const struct err *failed)
{
	struct envs_ask *a = CONTAINER_OF(d, struct envs_ask, dial);
	const struct http1_field field = { BYTES_LIT("x-access-token"), bytes_str(a->token) };
	struct err err;

	if (!s)
		done(a, NULL, failed->msg);
	else if (http_call_stream(&a->call, s,
				  &(struct http_ask){ .method = BYTES_LIT("GET"),
						      .target = BYTES_LIT("/envs"),
						      .host = BYTES_LIT("localhost"),
						      .fields = &field,
						      .n_fields = a->token[0] ? 1 : 0,
						      .deadline_ms = ENVS_MS,
						      .max_answer = ENVS_MAX },
				  on_answer, &err) < 0)
		done(a, NULL, err.msg);
}

int envs_ask_start(struct envs_ask *a, struct loop *l, const struct addr *agent, const char *token,
		   envs_done_fn *on_done, struct err *err)
{
	*a = (struct envs_ask){ .on_done = on_done };
	snprintf(a->token, sizeof(a->token), "%s", token);
	if (dial_start(&a->dial, l, agent, ENVS_MS, on_dialled, err) == 0)
		return 0;
	a->on_done = NULL;
	return -1;
}

void envs_ask_cancel(struct envs_ask *a)
{
	if (!a->on_done)
		return;
	dial_cancel(&a->dial);
	http_call_cancel(&a->call);
	a->on_done = NULL;
}
