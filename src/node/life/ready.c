/* ready.c - see ready.h. */
#include "node/life/ready.h"

#include <stdio.h>

#include "node/node.h"

static bool no(struct ready *ret, const char *reason, const char *message)
{
	ret->reason = reason;
	snprintf(ret->message, sizeof(ret->message), "%s", message);
	return false;
}

static bool link_ok(const struct node *n, const struct link *l, const char *away, struct ready *ret)
{
	struct err err;

	if (l->up || (!l->mismatch && loop_now_ms(n->loop) - l->down_since_ms < READY_GRACE_MS &&
		      l->peer.build[0]))
		return true;
	link_why(l, &err);
	return no(ret, l->mismatch ? "version_mismatch" : away, err.msg);
}

static bool base_ok(const struct node *n, struct ready *ret)
{
	char message[sizeof(ret->message)];

	if (n->base.state == BASE_READY)
		return true;
	if (n->base.state != BASE_FAILED)
		return no(ret, "template_building",
			  "template " BASE_ALIAS " is being made: creates wait for it");
	snprintf(message, sizeof(message), "template %s: %.200s", BASE_ALIAS, n->base.why.msg);
	return no(ret, "template_failed", message);
}

static bool disk_ok(const struct node *n, struct ready *ret)
{
	struct err err;

	return files_room(n->files, 0, &err) == 0 ||
	       no(ret, err.code == ERR_NO_SPACE ? "disk_full" : "disk_failed", err.msg);
}

void ready_look(const struct node *n, struct ready *ret)
{
	*ret = (struct ready){ .reason = "" };
	if (n->stopping) {
		(void)no(ret, "stopping", "node is being stopped");
		return;
	}
	(void)(link_ok(n, &n->warden.link, "warden_away", ret) &&
	       link_ok(n, &n->egress, "egress_away", ret) && disk_ok(n, ret) && base_ok(n, ret));
}

void ready_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
	       struct bytes text)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_TEXT_MAX);
	AUTO(json_decrefp) json_t *v = NULL;
	struct ready now;
	struct err err;

	(void)rq, (void)text;
	ready_look(n, &now);
	if (now.reason[0])
		v = json_pack("{s:s, s:o}", "reason", now.reason, "message",
			      json_text(bytes_str(now.message)));
	if (v && json_encode(v, &out, &err) < 0)
		door_refuse(a, &err);
	else
		door_answer(a, &(struct node_reply){ 0 }, buf_view(&out), NULL, 0);
}
