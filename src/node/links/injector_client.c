/* injector_client.c - the injector's words, and what it says of itself. */
/* #syscalls: fstat pread64 close */
#include "node/links/injector_client.h"

#include <assert.h>
#include <stdio.h>

#include "base/log.h"
#include "base/memory_file.h"
#include "wire/json.h"

static_assert(offsetof(struct injector_request, tag) == offsetof(struct daemon_request, tag) &&
		      offsetof(struct injector_request, slot) ==
			      offsetof(struct daemon_request, slot) &&
		      offsetof(struct injector_reply, code) == offsetof(struct daemon_reply, code),
	      "they begin as all do");

static struct injector_client *of_link(struct daemon_client *l)
{
	return CONTAINER_OF(l, struct injector_client, link);
}

static int ask(struct injector_client *k, struct daemon_call *c, const struct injector_request *rq,
	       int fd, void (*on_done)(struct daemon_call *c, const struct err *err),
	       struct err *err)
{
	struct daemon_asked what = { .request = { (const uint8_t *)rq, sizeof(*rq) },
				     .fds = { fd },
				     .n_fds = fd >= 0 };

	return daemon_ask(&k->link, c, &what, on_done, err);
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

static void on_facts(struct daemon_call *c, const struct err *failed)
{
	struct injector_client *k = CONTAINER_OF(c, struct injector_client, facts);
	struct err err;

	if (failed || keep_facts(k, *c->came, &err) < 0)
		log_error("injector: what it says of itself: %s", failed ? failed->msg : err.msg);
}

/* --- the link ----------------------------------------------------------------------------- */

static void on_up(struct daemon_client *l)
{
	const struct injector_request rq = { .version = INJECTOR_VERSION, .verb = INJECTOR_FACTS };
	struct injector_client *k = of_link(l);
	struct err err;

	if (!daemon_exists(l))
		return;
	if (ask(k, &k->facts, &rq, -1, on_facts, &err) < 0)
		log_error("%s", err.msg);
	k->ops->on_up(k);
}

static void on_down(struct daemon_client *l)
{
	(void)l; /* hosts with rules are closed until it is back */
}

static void on_unasked(struct daemon_client *l, struct bytes reply)
{
	struct injector_client *k = of_link(l);
	struct injector_reply r;

	memcpy(&r, reply.ptr, sizeof(r));
	k->ops->on_gone(k, r.slot);
}

void injector_client_open(struct injector_client *k, struct loop *l, const char *path,
			  const struct injector_client_ops *ops)
{
	static const struct daemon_words words = {
		.name = "injector",
		.request = sizeof(struct injector_request),
		.reply = sizeof(struct injector_reply),
		.msg = offsetof(struct injector_reply, msg),
		.msg_size = sizeof(((struct injector_reply *)0)->msg),
		.hello = { .version = INJECTOR_VERSION, .verb = INJECTOR_RESET },
	};
	static const struct daemon_client_ops link_ops = { on_up, on_down, on_unasked };

	*k = (struct injector_client){ .ops = ops };
	daemon_client_open(&k->link, l, path, &words, &link_ops);
}

void injector_client_close(struct injector_client *k)
{
	daemon_client_close(&k->link);
	free(TAKE(k->seal_key));
}

int injector_start(struct injector_client *k, struct daemon_call *c,
		   const struct injector_sandbox *of, int rules,
		   void (*on_done)(struct daemon_call *c, const struct err *err), struct err *err)
{
	struct injector_request rq = { .version = INJECTOR_VERSION,
				       .verb = INJECTOR_START,
				       .slot = of->slot };

	snprintf(rq.id, sizeof(rq.id), "%s", of->id);
	snprintf(rq.team, sizeof(rq.team), "%s", of->team);
	return ask(k, c, &rq, rules, on_done, err);
}

void injector_stop(struct injector_client *k, uint32_t slot)
{
	const struct injector_request rq = { .version = INJECTOR_VERSION,
					     .verb = INJECTOR_STOP,
					     .slot = slot };
	struct err err;

	if (k->link.up && daemon_exists(&k->link) && ask(k, NULL, &rq, -1, NULL, &err) < 0)
		log_error("%s", err.msg);
}
