/* built_in.c - see built_in.h. */
#include "node/life/built_in.h"

#include <errno.h>

#include "node/build/build_context.h"
#include "node/life/snapshots.h"
#include "node/verbs.h"

static int add_env(const struct build_context *c, struct agent_identity *id, struct err *err)
{
	json_t *all = json_copy(c->env);

	if (!all || (id->env && json_object_update(all, id->env) < 0)) {
		json_decref(all);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "an environment");
	}
	json_decref(id->env);
	id->env = all;
	return 0;
}

static bool may_wish(const char *context)
{
	return strstr(context, GUARDED_PORTS_VARIABLE) || strstr(context, REFUSAL_PAGES_VARIABLE);
}

int built_in_wishes(const struct snapshot *p, struct built_in_wishes *ret, struct err *err)
{
	struct build_context c;
	const char *text;

	*ret = (struct built_in_wishes){ 0 };
	if (!p || !p->row.context || !may_wish(p->row.context))
		return 0;
	if (build_context_parse(bytes_str(p->row.context), &c, err) < 0)
		return err_wrap(err, "what snapshot %s was built with", p->row.id);
	text = json_string_value(json_object_get(c.env, GUARDED_PORTS_VARIABLE));
	snprintf(ret->guarded, sizeof(ret->guarded), "%s", text ? text : "");
	ret->refusal_pages = build_context_shows_pages(&c);
	build_context_done(&c);
	return 0;
}

int built_in_allows(const struct snapshot *p, uint32_t flags, struct err *err)
{
	struct built_in_wishes w;

	if (flags & (NODE_SECURE | NODE_BUILDER))
		return 0;
	if (built_in_wishes(p, &w, err) < 0)
		return -1;
	if (w.guarded[0] == '\0')
		return 0;
	return err_set(
		err, ERR_INVALID, 0,
		"its template guards ports (%s), which whoever reaches the agent of a "
		"sandbox without a token could open from inside: create it with secure: true",
		w.guarded);
}

int built_in_tell(const struct snapshot *p, struct agent_identity *id, struct err *err)
{
	struct build_context c;
	int rc;

	if (!p || !p->row.context)
		return 0;
	if (build_context_parse(bytes_str(p->row.context), &c, err) < 0)
		return err_wrap(err, "what snapshot %s was built with", p->row.id);
	snprintf(id->user, sizeof(id->user), "%s", c.user);
	snprintf(id->workdir, sizeof(id->workdir), "%s", c.workdir);
	rc = add_env(&c, id, err);
	build_context_done(&c);
	return rc;
}
