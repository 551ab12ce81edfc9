/* egress_client.c - egress's words. */
#include "node/links/egress_client.h"

#include <assert.h>
#include <stdio.h>

#include "base/log.h"
#include "node/links/reset.h"

static_assert(offsetof(struct egress_request, verb) == offsetof(struct link_head, what) &&
		      offsetof(struct egress_reply, code) == offsetof(struct link_head, what),
	      "they begin as all do");

const struct link_words egress_words = {
	.name = "egress",
	.own_name = "node",
	.min = EGRESS_VERSION_MIN,
	.max = EGRESS_VERSION_MAX,
	.request_max = sizeof(struct egress_request),
	.reply_min = sizeof(struct egress_reply),
	.reply_max = sizeof(struct egress_reply),
	.msg = offsetof(struct egress_reply, msg),
	.msg_size = sizeof(((struct egress_reply *)0)->msg),
	.named = true,
	.calls_max = DAEMON_CALLS_MAX,
	.fds_max = 1,
	.batch = DAEMON_BATCH,
	.silence_ms = DAEMON_SILENCE_MS,
};

static struct bytes bytes_of(const struct egress_request *rq)
{
	return (struct bytes){ (const uint8_t *)rq, sizeof(*rq) };
}

void egress_on_hello(struct link *l)
{
	const struct egress_request rq = { .verb = EGRESS_RESET };

	reset_ask(l, bytes_of(&rq));
}

int egress_ask(struct link *l, struct link_call *c, const struct egress_asked *what,
	       link_done_fn *on_done, struct err *err)
{
	const struct egress_request rq = { .verb = what->verb, .slot = what->slot };
	const struct link_ask ask = { .request = bytes_of(&rq),
				      .fds = what->fds,
				      .n_fds = what->n_fds,
				      .deadline_ms = what->deadline_ms };

	return link_ask(l, c, &ask, on_done, err);
}

static void tell(struct link *l, const struct egress_request *rq)
{
	const struct link_ask ask = { .request = bytes_of(rq) };
	struct err err;

	if (l->up && link_exists(l) && link_ask(l, NULL, &ask, NULL, &err) < 0)
		log_error("%s", err.msg);
}

void egress_close_doors(struct link *l, uint32_t slot)
{
	tell(l, &(struct egress_request){ .verb = EGRESS_CLOSE, .slot = slot });
}

void egress_name(struct link *l, uint32_t slot, const char *id)
{
	struct egress_request rq = { .verb = EGRESS_NAME, .slot = slot };

	snprintf(rq.id, sizeof(rq.id), "%s", id);
	tell(l, &rq);
}
