/* resume_identity.c - who a sandbox is, told again when it goes on or boots. */
#include <stdio.h>

#include "node/life/create_text.h"
#include "node/node.h"
#include "node/life/resume.h"

static int give_env(const struct sandbox *s, struct agent_identity *id, struct err *err)
{
	if (!s->env)
		return 0;
	return json_decode(bytes_str(s->env), NODE_TEXT_MAX, CREATE_TEXT_DEPTH, &id->env, err);
}

int resume_identity(const struct sandbox *s, bool resume, struct agent_identity *ret,
		    struct err *err)
{
	if (agent_identity_make(ret, bytes_str(s->info.id), bytes_str(s->info.template_id), err) <
	    0)
		return -1;
	ret->resume = resume;
	snprintf(ret->control_token, sizeof(ret->control_token), "%s", s->control_token);
	snprintf(ret->access_token, sizeof(ret->access_token), "%s", s->info.access_token);
	if (s->machine_id[0])
		snprintf(ret->machine_id, sizeof(ret->machine_id), "%.*s",
			 (int)sizeof(ret->machine_id) - 1, s->machine_id);
	if (resume && s->boot_id[0])
		snprintf(ret->boot_id, sizeof(ret->boot_id), "%.*s", (int)sizeof(ret->boot_id) - 1,
			 s->boot_id);
	if (!resume && give_env(s, ret, err) < 0) {
		agent_identity_done(ret);
		return -1;
	}
	return 0;
}
