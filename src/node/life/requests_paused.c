/* requests_paused.c - pause, resume, and what is asked of a sandbox that does not run.
 *
 * On its way between two states of rest it answers nothing but a kill: whoever asks waits, and is
 * asked for again when it has arrived.
 */
#include "node/life/requests_paused.h"

#include "node/life/limits.h"
#include "node/life/sandbox_row.h"
#include "node/node.h"
#include "node/life/pause.h"
#include "node/life/resume.h"
#include "node/life/deferred.h"

bool requests_rests(const struct sandbox *s)
{
	return s->state == SANDBOX_PAUSED || s->state == SANDBOX_PARKING;
}

/* Who pauses what runs by another key is asked for the limits of the team and the host alone. */
static int may_pause(const struct sandbox *s, const struct node_request *rq, struct err *err)
{
	struct node_request asked = *rq;

	if (strcmp(s->key_id, rq->key_id) != 0)
		asked.limits = (struct node_limits){ 0 };
	return limits_allow_paused(s->node, s->info.team, &asked, err);
}

void requests_pause(struct node *n, struct door_asked *a, const struct node_request *rq,
		    struct bytes text)
{
	struct err err;
	struct sandbox *s = requests_find(n, rq, &err);

	(void)text;
	if (s && s->state == SANDBOX_ENDING) {
		requests_not_found(rq->id, &err);
		s = NULL;
	} else if (s && requests_rests(s) &&
		   !s->deferred) { /* else somebody wants it resumed first */
		err_set(&err, ERR_EXISTS, 0, "Sandbox %s is already paused", rq->id);
		s = NULL;
	}
	if (s && absence_check(s, &err) < 0)
		s = NULL;
	if (!s)
		ended_refuse(n, a, rq, &err);
	else if (s->state == SANDBOX_RUNNING && may_pause(s, rq, &err) < 0)
		door_refuse(a, &err);
	else if (s->state == SANDBOX_RUNNING)
		pause_begin(s, a, !(rq->flags & NODE_NO_MEMORY));
	else
		deferred_add(s, a, rq);
}

struct sandbox *requests_to_copy(struct node *n, const struct node_request *rq, struct err *err)
{
	struct sandbox *s = requests_find(n, rq, err);

	if (s && s->state == SANDBOX_ENDING) {
		requests_not_found(rq->id, err);
		return NULL;
	}
	if (s && requests_rests(s) && !s->deferred && !(rq->flags & NODE_ALSO_PAUSED)) {
		err_set(err, ERR_EXISTS, 0, "Sandbox %s is paused", rq->id);
		return NULL;
	}
	if (s && requests_rests(s) && s->saved_bytes == 0) {
		err_set(err, ERR_EXISTS, 0, "of sandbox %s the disk alone was kept", rq->id);
		return NULL;
	}
	return s && absence_check(s, err) < 0 ? NULL : s;
}

bool requests_copies_now(const struct sandbox *s, const struct node_request *rq)
{
	return s->state == SANDBOX_RUNNING ||
	       (s->state == SANDBOX_PAUSED && (rq->flags & NODE_ALSO_PAUSED));
}

/* It is, or will be, paused; `timeout_s` from when it runs. */
static void resume(struct sandbox *s, struct door_asked *a, const struct node_request *rq,
		   uint32_t timeout_s)
{
	struct err err;

	if (s->state == SANDBOX_PAUSED &&
	    resume_begin(s, timeout_s, !(rq->flags & NODE_NO_MEMORY), &err) < 0) {
		door_refuse(a, &err);
		return;
	}
	resume_join(s, timeout_s);
	deferred_add(s, a, rq);
}

void requests_resume(struct sandbox *s, struct door_asked *a, const struct node_request *rq)
{
	struct err err;

	if (s->state == SANDBOX_PAUSED &&
	    limits_allow(
		    s->node, s->info.team, rq,
		    (struct limits_sizes){ s->info.vcpus, s->info.memory_mib, s->info.disk_mib },
		    &err) < 0) {
		door_refuse(a, &err);
		return;
	}
	if (s->state == SANDBOX_PAUSED && rq->key_id[0])
		memcpy(s->key_id, rq->key_id, sizeof(s->key_id)); /* by which it runs now */
	if (requests_rests(s) && rq->verb == NODE_RESUME && (rq->flags & NODE_AUTO_PAUSE))
		s->info.flags |= NODE_AUTO_PAUSE;
	resume(s, a, rq, rq->timeout_s);
}

/* Only the paused ones that said so, and only for somebody who waits: traffic alone does not begin
 * to cost. One whose disk alone was kept would lose what the visitor came for. The answer says that
 * it is paused. */
void requests_traffic(struct sandbox *s, struct door_asked *a, const struct node_request *rq)
{
	struct node_reply r = { .code = ERR_NOT_FOUND, .sandbox = sandbox_told(s) };
	bool may = (s->info.flags & rq->flags & NODE_AUTO_RESUME) && s->saved_bytes > 0;
	struct err err;

	if (!requests_rests(s)) {
		deferred_add(s, a, rq);
	} else if (may &&
		   (rq->flags & (NODE_TO_AGENT | NODE_PRIVATE))) { /* its token was not right */
		err_set(&err, ERR_DENIED, 0, "only its access token resumes sandbox %s", rq->id);
		door_refuse(a, &err);
	} else if (may) {
		resume(s, a, rq, RESUME_TRAFFIC_S);
	} else {
		requests_not_found(rq->id, &err);
		memcpy(r.msg, err.msg, sizeof(r.msg));
		door_answer(a, &r, (struct bytes){ 0 }, NULL, 0);
	}
}
