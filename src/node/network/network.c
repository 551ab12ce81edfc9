/* network.c - names and rules to egress. */
/* #syscalls: memfd_create pwrite64 fstat pread64 close */
#include "node/network/network.h"

#include <errno.h>

#include "base/log.h"
#include "base/memory_file.h"
#include "node/network/network_text.h"
#include "node/node.h"
#include "node/life/snapshot_take.h"
#include "node/template/base_packages.h"

/* --- one message -------------------------------------------------------------------------- */

int network_rules(const struct sandbox *s, const char *text, struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *packages = base_packages(s->node);
	const struct network_from from = { text, packages, s->network.known };

	if (!packages)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "the rules of a network");
	return network_text_rules(&from, out, err);
}

int network_rules_none(const struct node *n, struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *packages = base_packages(n);
	const struct network_from from = { .packages = packages };

	if (!packages)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "the rules of a network");
	return network_text_rules(&from, out, err);
}

int network_allow(const struct node *n, const char *text, struct err *err)
{
	AUTO(buf_done) struct buf opened = BUF_MAX(NETWORK_RULES_MAX);

	if (link_exists(&n->injector.link))
		return 0;
	if (network_text_opened(text, false, &opened, err) < 0)
		return -1;
	if (opened.len == 0)
		return 0;
	return err_set(err, ERR_INVALID, 0,
		       "network rules need the injector, which this server runs without");
}

/* --- all of a sandbox --------------------------------------------------------------------- */

static void told(struct sandbox *s)
{
	struct network *w = &s->network;
	network_rules_fn *on_rules = TAKE(w->on_rules);

	if (on_rules)
		on_rules(s, w->refused.code == ERR_NONE ? NULL : &w->refused);
}

/* Whatever else went wrong, its network is closed, and it is told of again with its doors. */
static void on_rule(struct network_telling *t, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(t, struct sandbox, network.telling);

	if (err)
		log_warn("%s: its network stays closed: %s", s->info.id, err->msg);
	if (err && err->code == ERR_INVALID)
		s->network.refused = *err;
	told(s);
}

/* One that is being claimed has its text from its create. */
static const char *text_of(const struct sandbox *s)
{
	return s->text || !s->create ? s->text : s->create->text;
}

void network_retell(struct sandbox *s)
{
	struct network_telling *t = &s->network.telling;
	struct err err;

	if (s->slot == WARDEN_NO_SLOT || !link_exists(&s->node->egress) || !s->node->egress.up)
		return;
	network_telling_cancel(t);
	timer_stop(&s->network.again);
	s->network.refused = (struct err){ 0 };
	if (!s->info.team[0]) /* nobody's */
		return;
	if (network_telling_begin(t, s, text_of(s), on_rule, &err) < 0)
		on_rule(t, &err);
}

void network_tell(struct sandbox *s)
{
	if (s->slot == WARDEN_NO_SLOT)
		return;
	egress_name(&s->node->egress, s->slot, s->info.id);
	network_retell(s);
}

void network_wait(struct sandbox *s, network_rules_fn *on_rules)
{
	s->network.on_rules = on_rules;
	if (!network_telling_busy(&s->network.telling))
		told(s);
}

void network_cancel(struct sandbox *s)
{
	network_telling_cancel(&s->network.telling);
	link_cancel(&s->network.learn);
	timer_stop(&s->network.again);
	s->network.on_rules = NULL;
	s->network.on_learned = NULL;
}

void network_done(struct sandbox *s)
{
	network_cancel(s);
	free(TAKE(s->network.known));
}

void network_reopened(struct slots *slots, uint32_t slot)
{
	struct node *n = CONTAINER_OF(slots, struct node, slots);

	for (struct sandbox *s = n->table.all; s; s = s->next)
		if (s->slot == slot && s->state != SANDBOX_ENDING)
			network_tell(s);
}

/* --- its worker --------------------------------------------------------------------------- */

void network_close_opened(struct sandbox *s)
{
	if (s->network.opened && s->slot != WARDEN_NO_SLOT)
		injector_stop(&s->node->injector, s->slot);
	s->network.opened = false;
	timer_stop(&s->network.again);
}

void network_injector_up(struct injector_client *k)
{
	struct node *n = CONTAINER_OF(k, struct node, injector);

	for (struct sandbox *s = n->table.all; s; s = s->next)
		if (s->network.opened && s->state != SANDBOX_ENDING)
			network_retell(s);
}

static void on_again(struct timer *t)
{
	network_retell(CONTAINER_OF(t, struct sandbox, network.again));
}

/* Not at once: one that cannot live must not keep the injector busy. */
void network_worker_gone(struct injector_client *k, uint32_t slot)
{
	struct node *n = CONTAINER_OF(k, struct node, injector);

	for (struct sandbox *s = n->table.all; s; s = s->next) {
		if (s->slot != slot || !s->network.opened || s->state == SANDBOX_ENDING ||
		    s->network.again.active) /* of one that came in between */
			continue;
		log_warn("%s: its worker ended; there will be another", s->info.id);
		timer_init(&s->network.again, n->loop, on_again);
		timer_start(&s->network.again, NETWORK_AGAIN_MS);
	}
}

/* --- what it knows of names --------------------------------------------------------------- */

static int keep_known(struct sandbox *s, int fd, struct err *err)
{
	AUTO(buf_done) struct buf said = BUF_MAX(NETWORK_RULES_MAX);
	char *known;

	if (memory_file_read(fd, &said, err) < 0 ||
	    network_text_known(buf_view(&said), &known, err) < 0)
		return -1;
	free(s->network.known);
	s->network.known = known;
	return 0;
}

static void on_known(struct link_call *c, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct sandbox *s = CONTAINER_OF(c, struct sandbox, network.learn);
	network_learned_fn *on_learned = TAKE(s->network.on_learned);
	struct err err;

	if (failed || keep_known(s, link_reply_fd(r), &err) < 0)
		log_warn("%s: what it knows of names: %s", s->info.id,
			 failed ? failed->msg : err.msg);
	if (s->copying)
		taking_known(s->copying, s->network.known);
	if (on_learned)
		on_learned(s);
}

void network_learn(struct sandbox *s, network_learned_fn *on_learned)
{
	const struct egress_asked what = { .verb = EGRESS_KNOWN, .slot = s->slot };
	struct err err;

	link_cancel(&s->network.learn);
	s->network.on_learned = NULL;
	if (egress_ask(&s->node->egress, &s->network.learn, &what, on_known, &err) == 0)
		s->network.on_learned = on_learned;
	else if (link_exists(&s->node->egress))
		log_warn("%s: what it knows of names: %s", s->info.id, err.msg);
}

bool network_learns(const struct sandbox *s)
{
	return s->network.learn.link;
}
