/* opener_keep.c - the opener's words, and what it says of itself. */
/* #syscalls: fstat pread64 close */
#include "node/links/opener_keep.h"

#include <assert.h>
#include <stdio.h>

#include "base/log.h"
#include "base/memory_file.h"
#include "wire/json.h"

static_assert(offsetof(struct opener_request, tag) == offsetof(struct daemon_request, tag) &&
		      offsetof(struct opener_request, slot) ==
			      offsetof(struct daemon_request, slot) &&
		      offsetof(struct opener_reply, code) == offsetof(struct daemon_reply, code),
	      "they begin as all do");

static struct opener_keep *of_link(struct daemon_keep *l)
{
	return CONTAINER_OF(l, struct opener_keep, link);
}

static int ask(struct opener_keep *k, struct daemon_call *c, const struct opener_request *rq,
	       int fd, void (*on_done)(struct daemon_call *c, const struct err *err),
	       struct err *err)
{
	struct daemon_asked what = { .request = { (const uint8_t *)rq, sizeof(*rq) },
				     .fds = { fd },
				     .n_fds = fd >= 0 };

	return daemon_ask(&k->link, c, &what, on_done, err);
}

/* --- what it is --------------------------------------------------------------------------- */

static int keep_facts(struct opener_keep *k, int fd, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(OPENER_FACTS_MAX);
	AUTO(json_decrefp) json_t *facts = NULL;
	struct bytes ca, key;
	char *copy;

	if (memory_file_read(fd, &text, err) < 0 ||
	    json_decode(buf_view(&text), OPENER_FACTS_MAX, 4, &facts, err) < 0 ||
	    json_want_string(facts, "ca", &ca, err) < 0 ||
	    json_want_string(facts, "sealKey", &key, err) < 0)
		return -1;
	copy = strndup((const char *)key.ptr, key.len);
	if (copy) {
		free(k->seal_key);
		k->seal_key = copy;
	}
	if (k->ops->on_authority)
		k->ops->on_authority(k, ca);
	return 0;
}

static void on_facts(struct daemon_call *c, const struct err *failed)
{
	struct opener_keep *k = CONTAINER_OF(c, struct opener_keep, facts);
	struct err err;

	if (failed || keep_facts(k, *c->came, &err) < 0)
		log_error("opener: what it says of itself: %s", failed ? failed->msg : err.msg);
}

/* --- the link ----------------------------------------------------------------------------- */

static void on_up(struct daemon_keep *l)
{
	const struct opener_request rq = { .version = OPENER_VERSION, .verb = OPENER_FACTS };
	struct opener_keep *k = of_link(l);
	struct err err;

	if (!daemon_exists(l))
		return;
	if (ask(k, &k->facts, &rq, -1, on_facts, &err) < 0)
		log_error("%s", err.msg);
	k->ops->on_up(k);
}

static void on_down(struct daemon_keep *l)
{
	(void)l; /* hosts with rules are closed until it is back */
}

static void on_unasked(struct daemon_keep *l, struct bytes reply)
{
	struct opener_keep *k = of_link(l);
	struct opener_reply r;

	memcpy(&r, reply.ptr, sizeof(r));
	k->ops->on_gone(k, r.slot);
}

void opener_keep_open(struct opener_keep *k, struct loop *l, const char *path,
		      const struct opener_keep_ops *ops)
{
	static const struct daemon_words words = {
		.name = "opener",
		.request = sizeof(struct opener_request),
		.reply = sizeof(struct opener_reply),
		.msg = offsetof(struct opener_reply, msg),
		.msg_size = sizeof(((struct opener_reply *)0)->msg),
		.hello = { .version = OPENER_VERSION, .verb = OPENER_RESET },
	};
	static const struct daemon_keep_ops link_ops = { on_up, on_down, on_unasked };

	*k = (struct opener_keep){ .ops = ops };
	daemon_keep_open(&k->link, l, path, &words, &link_ops);
}

void opener_keep_close(struct opener_keep *k)
{
	daemon_keep_close(&k->link);
	free(TAKE(k->seal_key));
}

int opener_start(struct opener_keep *k, struct daemon_call *c, const struct opener_sandbox *of,
		 int rules, void (*on_done)(struct daemon_call *c, const struct err *err),
		 struct err *err)
{
	struct opener_request rq = { .version = OPENER_VERSION,
				     .verb = OPENER_START,
				     .slot = of->slot };

	snprintf(rq.id, sizeof(rq.id), "%s", of->id);
	snprintf(rq.team, sizeof(rq.team), "%s", of->team);
	return ask(k, c, &rq, rules, on_done, err);
}

void opener_stop(struct opener_keep *k, uint32_t slot)
{
	const struct opener_request rq = { .version = OPENER_VERSION,
					   .verb = OPENER_STOP,
					   .slot = slot };
	struct err err;

	if (k->link.up && daemon_exists(&k->link) && ask(k, NULL, &rq, -1, NULL, &err) < 0)
		log_error("%s", err.msg);
}
