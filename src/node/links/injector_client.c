/* injector_client.c - the injector's words, and what it says of itself. */
/* #syscalls: fstat pread64 close */
#include "node/links/injector_client.h"

#include <assert.h>
#include <stdio.h>

#include "base/log.h"
#include "base/memory_file.h"
#include "node/links/reset.h"
#include "wire/json.h"

static_assert(offsetof(struct injector_request, verb) == offsetof(struct link_head, what) &&
		      offsetof(struct injector_reply, code) == offsetof(struct link_head, what),
	      "they begin as all do");

static struct injector_client *of_link(struct link *l)
{
	return CONTAINER_OF(l, struct injector_client, link);
}

static struct bytes bytes_of(const struct injector_request *rq)
{
	return (struct bytes){ (const uint8_t *)rq, sizeof(*rq) };
}

static int ask(struct injector_client *k, struct link_call *c, const struct injector_request *rq,
	       int fd, link_done_fn *on_done, struct err *err)
{
	const struct link_ask what = { .request = bytes_of(rq), .fds = &fd, .n_fds = fd >= 0 };

	return link_ask(&k->link, c, &what, on_done, err);
}

/* --- what it is --------------------------------------------------------------------------- */

static int keep_facts(struct injector_client *k, int fd, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(INJECTOR_FACTS_MAX);
	AUTO(json_decrefp) json_t *facts = NULL;
	struct bytes ca, key;
	char *copy;

	if (memory_file_read(fd, &text, err) < 0 ||
	    json_decode(buf_view(&text), INJECTOR_FACTS_MAX, 4, &facts, err) < 0 ||
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

static void on_facts(struct link_call *c, const struct link_reply *r)
{
	struct injector_client *k = CONTAINER_OF(c, struct injector_client, facts);
	struct err err;

	if (r->err || keep_facts(k, link_reply_fd(r), &err) < 0)
		log_error("injector: what it says of itself: %s", r->err ? r->err->msg : err.msg);
}

/* --- the link ----------------------------------------------------------------------------- */

static void on_hello(struct link *l)
{
	const struct injector_request rq = { .verb = INJECTOR_RESET };

	reset_ask(l, bytes_of(&rq));
}

static void on_up(struct link *l)
{
	const struct injector_request rq = { .verb = INJECTOR_FACTS };
	struct injector_client *k = of_link(l);
	struct err err;

	if (!link_exists(l))
		return;
	if (ask(k, &k->facts, &rq, -1, on_facts, &err) < 0)
		log_error("%s", err.msg);
	k->ops->on_up(k);
}

static void on_down(struct link *l)
{
	(void)l; /* hosts with rules are closed until it is back */
}

static void on_unasked(struct link *l, const struct link_reply *reply)
{
	struct injector_client *k = of_link(l);
	struct injector_reply r;

	memcpy(&r, reply->head.ptr, sizeof(r));
	k->ops->on_gone(k, r.slot);
}

void injector_client_open(struct injector_client *k, struct loop *l, const char *path,
			  const struct injector_client_ops *ops)
{
	static const struct link_words words = {
		.name = "injector",
		.own_name = "node",
		.min = INJECTOR_VERSION_MIN,
		.max = INJECTOR_VERSION_MAX,
		.request_max = sizeof(struct injector_request),
		.reply_min = sizeof(struct injector_reply),
		.reply_max = sizeof(struct injector_reply),
		.msg = offsetof(struct injector_reply, msg),
		.msg_size = sizeof(((struct injector_reply *)0)->msg),
		.named = true,
		.calls_max = DAEMON_CALLS_MAX,
		.fds_max = 1,
		.batch = DAEMON_BATCH,
		.silence_ms = DAEMON_SILENCE_MS,
	};
	static const struct link_ops link_ops = {
		.on_hello = on_hello, .on_up = on_up, .on_down = on_down, .on_unasked = on_unasked
	};

	*k = (struct injector_client){ .ops = ops };
	link_open(&k->link, l, path, &words, &link_ops);
}

void injector_client_close(struct injector_client *k)
{
	link_close(&k->link);
	free(TAKE(k->seal_key));
}

int injector_start(struct injector_client *k, struct link_call *c,
		   const struct injector_sandbox *of, int rules, link_done_fn *on_done,
		   struct err *err)
{
	struct injector_request rq = { .verb = INJECTOR_START, .slot = of->slot };

	snprintf(rq.id, sizeof(rq.id), "%s", of->id);
	snprintf(rq.team, sizeof(rq.team), "%s", of->team);
	return ask(k, c, &rq, rules, on_done, err);
}

void injector_stop(struct injector_client *k, uint32_t slot)
{
	const struct injector_request rq = { .verb = INJECTOR_STOP, .slot = slot };
	struct err err;

	if (k->link.up && link_exists(&k->link) && ask(k, NULL, &rq, -1, NULL, &err) < 0)
		log_error("%s", err.msg);
}
