/* egress_client.c - egress's words. */
#include "node/links/egress_client.h"

#include <assert.h>
#include <stdio.h>

#include "base/log.h"

static_assert(offsetof(struct egress_request, tag) == offsetof(struct daemon_request, tag) &&
		      offsetof(struct egress_request, slot) ==
			      offsetof(struct daemon_request, slot) &&
		      offsetof(struct egress_reply, code) == offsetof(struct daemon_reply, code),
	      "they begin as all do");
static_assert((int)EGRESS_DOORS <= (int)DAEMON_FDS_MAX, "doors fit a message");

void egress_client_open(struct daemon_client *k, struct loop *l, const char *path,
			const struct daemon_client_ops *ops)
{
	static const struct daemon_words words = {
		.name = "egress",
		.request = sizeof(struct egress_request),
		.reply = sizeof(struct egress_reply),
		.msg = offsetof(struct egress_reply, msg),
		.msg_size = sizeof(((struct egress_reply *)0)->msg),
		.hello = { .version = EGRESS_VERSION, .verb = EGRESS_RESET },
	};

	daemon_client_open(k, l, path, &words, ops);
}

static struct bytes bytes_of(const struct egress_request *rq)
{
	return (struct bytes){ (const uint8_t *)rq, sizeof(*rq) };
}

int egress_ask(struct daemon_client *k, struct daemon_call *c, const struct egress_asked *what,
	       void (*on_done)(struct daemon_call *c, const struct err *err), struct err *err)
{
	const struct egress_request rq = { .version = EGRESS_VERSION,
					   .verb = what->verb,
					   .slot = what->slot };
	struct daemon_asked asked = { .request = bytes_of(&rq), .n_fds = what->n_fds };

	memcpy(asked.fds, what->fds, sizeof(asked.fds));
	return daemon_ask(k, c, &asked, on_done, err);
}

static void tell(struct daemon_client *k, const struct egress_request *rq)
{
	const struct daemon_asked asked = { .request = bytes_of(rq) };
	struct err err;

	if (k->up && daemon_exists(k) && daemon_ask(k, NULL, &asked, NULL, &err) < 0)
		log_error("%s", err.msg);
}

void egress_close_doors(struct daemon_client *k, uint32_t slot)
{
	tell(k, &(struct egress_request){
			.version = EGRESS_VERSION, .verb = EGRESS_CLOSE, .slot = slot });
}

void egress_name(struct daemon_client *k, uint32_t slot, const char *id)
{
	struct egress_request rq = { .version = EGRESS_VERSION, .verb = EGRESS_NAME, .slot = slot };

	snprintf(rq.id, sizeof(rq.id), "%s", id);
	tell(k, &rq);
}
