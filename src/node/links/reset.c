/* reset.c - see reset.h. */
#include "node/links/reset.h"

#include "base/log.h"

static void on_reset(struct link_call *c, const struct link_reply *r)
{
	(void)c;
	if (!r->err) {
		link_up(r->link);
		return;
	}
	log_warn("%s", r->err->msg);
	link_hang_up(r->link);
}

void reset_ask(struct link *l, struct bytes request)
{
	const struct link_ask what = { .request = request, .first = true };
	struct err err;

	if (link_ask(l, NULL, &what, on_reset, &err) == 0)
		return;
	log_warn("%s", err.msg);
	link_hang_up(l);
}
