/* network.c - names and rules to egress. */
/* #syscalls: memfd_create write close */
#include "node/network.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/log.h"
#include "node/network_text.h"
#include "node/node.h"

/* --- one message -------------------------------------------------------------------------- */

/* A file in memory: egress reads it and waits for nobody. */
static int put_in_memory(struct bytes text, struct err *err)
{
	AUTO(auto_close) int fd = memfd_create("rules", MFD_CLOEXEC);

	if (fd < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "a file in memory");
	if (write(fd, text.ptr, text.len) != (ssize_t)text.len)
		return err_set(err, ERR_EXHAUSTED, errno, "write a file in memory");
	return take_fd(&fd);
}

int network_rule(struct sandbox *s, struct egress_call *c, const char *text,
		 void (*on_done)(struct egress_call *c, const struct err *err), struct err *err)
{
	AUTO(buf_done) struct buf rules = BUF_MAX(NETWORK_RULES_MAX);
	struct network_from from = { .text = text, .known = s->network.known };
	struct egress_asked what = { .verb = EGRESS_RULE, .slot = s->slot, .n_fds = 1 };

	if (network_text_rules(&from, &rules, err) < 0)
		return -1;
	what.fds[0] = put_in_memory(buf_view(&rules), err);
	if (what.fds[0] < 0)
		return -1;
	return egress_ask(&s->node->egress, c, &what, on_done, err);
}

/* --- all of a sandbox --------------------------------------------------------------------- */

static void told(struct sandbox *s)
{
	struct network *w = &s->network;
	void (*on_rules)(struct sandbox *, const struct err *) = TAKE(w->on_rules);

	if (on_rules)
		on_rules(s, w->refused.code == ERR_NONE ? NULL : &w->refused);
}

/* Whatever else went wrong, its network is closed, and it is told of again with its doors. */
static void on_rule(struct egress_call *c, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(c, struct sandbox, network.rule);

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

void network_tell(struct sandbox *s)
{
	struct node *n = s->node;
	struct err err;

	if (s->slot == WARDEN_NO_SLOT || !egress_exists(&n->egress) || !n->egress.up)
		return;
	egress_call_cancel(&s->network.rule);
	s->network.refused = (struct err){ 0 };
	egress_name(&n->egress, s->slot, s->info.id);
	if (!s->info.team[0]) /* nobody's */
		return;
	if (network_rule(s, &s->network.rule, text_of(s), on_rule, &err) < 0)
		on_rule(&s->network.rule, &err);
}

void network_wait(struct sandbox *s, void (*on_rules)(struct sandbox *s, const struct err *refused))
{
	s->network.on_rules = on_rules;
	if (!s->network.rule.message)
		told(s);
}

void network_cancel(struct sandbox *s)
{
	egress_call_cancel(&s->network.rule);
	s->network.on_rules = NULL;
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
