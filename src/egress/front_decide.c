/* front_decide.c - see front_decide.h. */
#include "egress/front_decide.h"

#include "egress/front_pass.h"
#include "egress/front_state.h"
#include "egress/reach.h"
#include "egress/fake_ip.h"

static void towards(struct front *f, uint32_t ip)
{
	f->found = (struct dns_addresses){ .ip = { ip }, .n = 1 };
}

static const struct policy_verdict hidden = { .why = "its true name is encrypted (ECH)" };

/* Where an address is good for the sake of a name, nobody may hide another one. */
struct policy_verdict front_by_address(const struct front *f)
{
	const struct policy *p = &f->sandbox_egress->policy;
	struct policy_verdict v = reach_address(p, &f->sandbox_egress->known, f->ip, f->port);

	if (!v.yes && f->ip == FAKE_IP_REFUSED)
		return (struct policy_verdict){ .why = "it stands for a name that is refused" };
	if (v.yes && f->hides && policy_minds_names(p) && !policy_address(p, f->ip).yes &&
	    !policy_service_at(p, f->ip, f->port))
		return hidden;
	return v;
}

static void decide_by_address(struct front *f)
{
	struct policy_verdict v = front_by_address(f), named;
	const char *name = NULL;

	if (is_fake_ip(f->ip)) /* the proxy is asked for the one that may be */
		name = v.yes ? reach_name(&f->sandbox_egress->policy, &f->sandbox_egress->known,
					  f->ip, &named)
			     : known_names_of(&f->sandbox_egress->known, f->ip, 0);
	towards(f, f->ip);
	if (name)
		snprintf(f->name, sizeof(f->name), "%s", name);
	if (v.yes)
		front_let_out(f, &v);
	else
		front_turn_away(f, &v);
}

static void on_found(struct lookup *l, enum dns_reading reading, const struct dns_addresses *found)
{
	struct front *f = CONTAINER_OF(l, struct front, lookup);
	struct policy_verdict v = { .why = "the name has no address" }, one;

	f->found.n = 0;
	if (!f->sandbox_egress->ruled) /* any more */
		snprintf(v.why, sizeof(v.why), "no rules yet");
	for (size_t i = 0; f->sandbox_egress->ruled && reading == DNS_ANSWERED && i < found->n;
	     i++) {
		one = policy_answer(&f->sandbox_egress->policy, f->name, found->ip[i]);
		if (!v.yes)
			v = one;
		if (one.yes)
			f->found.ip[f->found.n++] = found->ip[i];
	}
	if (f->found.n > 0)
		front_let_out(f, &v);
	else
		front_turn_away(f, &v);
}

static void decide_by_name(struct front *f)
{
	struct sandbox_egress *o = f->sandbox_egress;
	const struct policy_service *s = policy_service(&o->policy, f->name);
	struct policy_verdict v = policy_name(&o->policy, f->name);
	struct err err;

	if (v.yes && f->hides && policy_minds_names(&o->policy))
		v = hidden;
	if (s && v.yes && s->port != f->port) {
		v.yes = false;
		snprintf(v.why, sizeof(v.why), "the service is at port %u", s->port);
	}
	if (s && v.yes) {
		towards(f, s->ip);
		front_let_out(f, &v);
	} else if (!v.yes) {
		struct policy_verdict address = policy_address(&o->policy, f->ip);

		towards(f, f->ip);
		/* a range that is allowed, whatever is said there; but what a rule adds to requests
		 * is for that name's own addresses */
		if (address.yes && !front_has_rule(f))
			front_let_out(f, &address);
		else
			front_turn_away(f, &v);
	} else if (o->policy.ground->proxy_resolves) {
		towards(f, FAKE_IP_FIRST); /* any: the name is told, and resolved there */
		front_let_out(f, &v);
	} else if (resolver_ask(o->house->resolver, &f->lookup, &o->asker, f->name, on_found,
				&err) < 0) {
		f->sandbox_egress->counts.tcp_failed++;
		front_audit(f, AUDIT_FAILED, 0, err.msg);
		front_refuse(f, 502, err.msg);
	}
}

void front_decide(struct front *f)
{
	struct policy_verdict v = { 0 };

	timer_stop(&f->quiet);
	timer_stop(&f->late);
	if (!f->sandbox_egress->ruled) {
		snprintf(v.why, sizeof(v.why), "no rules yet");
		front_turn_away(f, &v);
	} else if (f->name[0]) {
		decide_by_name(f);
	} else {
		decide_by_address(f);
	}
}
