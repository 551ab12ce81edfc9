/* outlet.c - see outlet.h. */
#include "egress/outlet.h"

#include "base/log.h"
#include "egress/front.h"
#include "egress/names.h"

void outlet_open(struct outlet *o, struct loop *l, struct resolver *r,
		 const struct policy_ground *g)
{
	*o = (struct outlet){ .loop = l, .resolver = r, .ground = g, .id = "(unnamed)" };
}

static void drop_rules(struct outlet *o)
{
	if (o->ruled)
		policy_done(&o->policy);
	o->ruled = false;
}

int outlet_rule(struct outlet *o, struct bytes text, struct err *err)
{
	int rc;

	drop_rules(o);
	rc = policy_read(&o->policy, o->ground, text, err);
	o->ruled = rc == 0;
	fronts_check(o);
	return rc;
}

void outlet_forget(struct outlet *o)
{
	fronts_cut(o);
	names_cut(o);
	drop_rules(o);
	known_names_done(&o->known);
	o->counts = (struct egress_counts){ 0 };
}

void outlet_audit(struct outlet *o, enum outlet_kind kind, const struct policy_verdict *v,
		  const char *name, uint32_t ip, uint16_t port)
{
	static const char *const kinds[] = { "name", "tcp", "tls", "http" };
	char at[IP4_TEXT_MAX];

	ip4_text(ip, at);
	log_info("sandbox %s: %s %s%s%s:%u %s: %s", o->id, kinds[kind], name, name[0] ? " " : "",
		 at, port, v->yes ? "allowed" : "refused", v->why);
}
