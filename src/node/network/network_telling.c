/* network_telling.c - a worker first: egress hands connections to it as soon as it has the rules.
 */
/* #syscalls: memfd_create pwrite64 close */
#include "node/network/network_telling.h"

#include "base/log.h"
#include "base/memory_file.h"
#include "node/life/requests.h"
#include "node/network/network_text.h"
#include "node/node.h"

static int make_rules(const struct sandbox *s, const char *text, struct err *err)
{
	AUTO(buf_done) struct buf rules = BUF_MAX(NETWORK_RULES_MAX);

	if (network_rules(s, text, &rules, err) < 0)
		return -1;
	return memory_file_make("rules", buf_view(&rules), err);
}

/* --- egress ------------------------------------------------------------------------------- */

static void on_ruled(struct link_call *c, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct network_telling *t = CONTAINER_OF(c, struct network_telling, rule);

	t->on_done(t, err);
}

/* Takes both; worker: -1, there is none. */
static int ask_egress(struct network_telling *t, int rules, int worker, struct err *err)
{
	struct egress_asked what = { .verb = EGRESS_RULE,
				     .slot = t->slot,
				     .fds = { rules, worker },
				     .n_fds = worker < 0 ? 1 : 2 };

	return egress_ask(&t->node->egress, &t->rule, &what, on_ruled, err);
}

/* --- the injector --------------------------------------------------------------------------- */

static struct sandbox *still_there(const struct network_telling *t, struct err *err)
{
	struct sandbox *s = table_find(&t->node->table, t->id);

	if (s && s->slot == t->slot && s->state != SANDBOX_ENDING)
		return s;
	requests_not_found(t->id, err);
	return NULL;
}

/* Takes both. */
static int go_on(struct network_telling *t, int rules, int worker, struct err *err)
{
	AUTO(auto_close) int old_rules = rules;
	AUTO(auto_close) int old_worker = worker;
	struct sandbox *s = still_there(t, err);

	if (!s)
		return -1;
	if (s->network.changes != t->changes)
		return network_telling_begin(t, s, s->text, t->on_done, err);
	return ask_egress(t, take_fd(&old_rules), take_fd(&old_worker), err);
}

static void on_opened(struct link_call *c, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct network_telling *t = CONTAINER_OF(c, struct network_telling, open);
	int rules = take_fd(&t->rules);
	struct err err;

	if (failed)
		log_warn("%s: hosts with rules stay closed: %s", t->id, failed->msg);
	if (failed && failed->code == ERR_INVALID) {
		close(rules);
		err = *failed;
	} else if (go_on(t, rules, link_reply_take_fd(r), &err) == 0) {
		return;
	}
	t->on_done(t, &err);
}

/* Takes `rules`. */
static int ask_injector(struct network_telling *t, struct sandbox *s, struct bytes opened,
			int rules, struct err *err)
{
	const struct injector_sandbox of = { s->slot, s->info.id, s->info.team };
	int fd = memory_file_make("headers", opened, err);

	s->network.opened = true;
	t->rules = rules;
	if (fd >= 0 && injector_start(&s->node->injector, &t->open, &of, fd, on_opened, err) == 0)
		return 0;
	log_warn("%s: hosts with rules stay closed: %s", s->info.id, err->msg);
	return ask_egress(t, take_fd(&t->rules), -1, err);
}

/* --- both --------------------------------------------------------------------------------- */

int network_telling_begin(struct network_telling *t, struct sandbox *s, const char *text,
			  network_telling_done_fn *on_done, struct err *err)
{
	AUTO(buf_done) struct buf opened = BUF_MAX(NETWORK_RULES_MAX);
	int rules;

	*t = (struct network_telling){ .node = s->node,
				       .slot = s->slot,
				       .changes = s->network.changes,
				       .rules = -1,
				       .on_done = on_done };
	memcpy(t->id, s->info.id, sizeof(t->id));
	if (network_text_opened(text, link_exists(&s->node->injector.link), &opened, err) < 0)
		return -1;
	rules = make_rules(s, text, err);
	if (rules < 0)
		return -1;
	if (opened.len > 0)
		return ask_injector(t, s, buf_view(&opened), rules, err);
	network_close_opened(s);
	return ask_egress(t, rules, -1, err);
}

bool network_telling_busy(const struct network_telling *t)
{
	return t->open.message || t->rule.message;
}

void network_telling_cancel(struct network_telling *t)
{
	if (t->open.message)
		close(take_fd(&t->rules));
	link_cancel(&t->open);
	link_cancel(&t->rule);
}
