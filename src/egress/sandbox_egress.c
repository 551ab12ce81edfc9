/* sandbox_egress.c - see sandbox_egress.h. */
#include "egress/sandbox_egress.h"

#include "egress/front.h"
#include "egress/hand_over.h"
#include "egress/names.h"

void sandbox_egress_open(struct sandbox_egress *o, const struct house *house)
{
	*o = (struct sandbox_egress){ .house = house, .id = "(unnamed)" };
	share_open(&o->share, house->loop, house->limits.bytes_per_s);
}

static void drop_rules(struct sandbox_egress *o)
{
	if (o->ruled)
		policy_done(&o->policy);
	o->ruled = false;
}

static int read_rules(struct sandbox_egress *o, struct bytes text, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	if (policy_decode(text, &v, err) < 0 || policy_of(&o->policy, o->house->ground, v, err) < 0)
		return -1;
	if (known_names_read(&o->known, v, err) == 0)
		return 0;
	policy_done(&o->policy);
	return -1;
}

int sandbox_egress_rule(struct sandbox_egress *o, struct bytes text, struct err *err)
{
	int rc;

	drop_rules(o);
	rc = read_rules(o, text, err);
	o->ruled = rc == 0;
	fronts_check(o);
	return rc;
}

int sandbox_egress_injector(struct sandbox_egress *o, int fd, struct err *err)
{
	hand_over_close(TAKE(o->injector));
	return fd < 0 ? 0 : hand_over_open(&o->injector, o, fd, err);
}

void sandbox_egress_forget(struct sandbox_egress *o)
{
	hand_over_close(TAKE(o->injector));
	fronts_cut(o);
	names_cut(o);
	resolver_leave(o->house->resolver, &o->asker);
	drop_rules(o);
	known_names_done(&o->known);
	audit_done(&o->audit, o->id);
	share_close(&o->share);
	share_open(&o->share, o->house->loop, o->house->limits.bytes_per_s);
	o->pages_since_ms = 0;
	o->n_pages = 0;
	o->counts = (struct egress_counts){ 0 };
}

void sandbox_egress_audit(struct sandbox_egress *o, const struct audit_entry *e)
{
	audit_add(&o->audit, o->id, e);
}
