/* explain.c - see explain.h. */
#include "egress/explain.h"

#include <errno.h>

#include "egress/reach.h"

enum { DEPTH_MAX = 13 };

struct asked {
	char text[EXPLAIN_QUESTION_MAX + 1];
	char name[DOMAIN_SIZE]; /* empty: it is an address */
	uint32_t ip;
	uint16_t port; /* 0: any */
};

/* --- what there is -------------------------------------------------------------------------- */

static json_t *list(const struct rule_list *l)
{
	json_t *all = json_array();

	for (size_t i = 0; i < l->n; i++)
		(void)json_array_append_new(all, json_string(l->all[i].text));
	return all;
}

static json_t *operator_of(const struct policy_ground *g)
{
	static const char *const modes[] = { "none", "allowlist", "open" };
	json_t *allow = g->mode == POLICY_ALLOWLIST ? list(&g->allow) : json_array();

	if (g->mode == POLICY_ALLOWLIST && g->packages)
		(void)json_array_insert_new(allow, 0, json_string("packages"));
	return json_pack("{ss so}", "mode", modes[g->mode], "allow", allow);
}

static json_t *services(const struct policy *p)
{
	json_t *all = json_array();
	char ip[IP4_TEXT_MAX], name[POLICY_SERVICE_NAME_MAX + sizeof(POLICY_SERVICE_DOMAIN)];

	for (size_t i = 0; i < p->ground->n_services; i++) {
		const struct policy_service *s = &p->ground->services[i];

		if (!policy_service_at(p, s->ip, s->port))
			continue;
		ip4_text(s->ip, ip);
		snprintf(name, sizeof(name), "%s" POLICY_SERVICE_DOMAIN, s->name);
		(void)json_array_append_new(
			all, json_pack("{ss ss si}", "name", name, "address", ip, "port", s->port));
	}
	return all;
}

static json_t *published(const struct policy_ground *g)
{
	json_t *all = json_array();

	for (size_t i = 0; i < g->n_services; i++)
		(void)json_array_append_new(all, json_string(g->services[i].name));
	return all;
}

static json_t *facts(const struct policy *p)
{
	return json_pack("{so so so so so so so}", "operator", operator_of(p->ground), "packages",
			 list(&p->packages), "allowOut", list(&p->allow), "denyOut", list(&p->deny),
			 "opened", list(&p->opened), "services", services(p), "published",
			 published(p->ground));
}

/* --- the question --------------------------------------------------------------------------- */

static int read_question(struct bytes text, struct asked *ret, struct err *err)
{
	struct bytes host = text, port = { 0 };
	uint64_t n = 0;

	if (!bytes_to_str(text, ret->text, sizeof(ret->text)))
		return err_set(err, ERR_INVALID, 0, "question: too long");
	if (memchr(text.ptr, ':', text.len)) {
		port = text;
		if (!bytes_cut(&port, ':', &host) || !bytes_to_u64(port, &n) || n < 1 || n > 65535)
			return err_set(err, ERR_INVALID, 0, "question: not a port after the colon");
	}
	ret->port = (uint16_t)n;
	if (ip4_parse(host, &ret->ip) || domain_normal(host, ret->name))
		return 0;
	return err_set(err, ERR_INVALID, 0,
		       "question: neither a name of a host nor an address of IPv4");
}

static struct policy_verdict by_name(const struct policy *p, const struct asked *q)
{
	const struct policy_service *s = policy_service(p, q->name);
	struct policy_verdict v = policy_name(p, q->name);

	if (s && q->port && s->port != q->port) {
		v.yes = false;
		snprintf(v.why, sizeof(v.why), "the service is at port %u", s->port);
	}
	return v;
}

static json_t *answer(const struct policy *p, const struct asked *q, const struct policy_verdict *v)
{
	return json_pack("{ss sb ss sb}", "question", q->text, "allowed", v->yes, "why", v->why,
			 "opened", v->yes && q->name[0] && policy_opens(p, q->name));
}

/* Whether a name may be asked for is half of it: its addresses are the other half. */
static bool needs_addresses(const struct policy *p, const struct asked *q)
{
	return q->name[0] && !policy_service(p, q->name) && !p->ground->proxy_resolves;
}

static int put_answer(struct explain *x, const json_t *rules, struct bytes question,
		      struct err *err)
{
	AUTO(known_names_done) struct known_names known = { 0 };
	struct asked q = { 0 };
	struct policy_verdict v;

	if (question.len == 0)
		return 0;
	if (known_names_read(&known, rules, err) < 0 || read_question(question, &q, err) < 0)
		return -1;
	v = q.name[0] ? by_name(&x->policy, &q) : reach_address(&x->policy, &known, q.ip, q.port);
	if (json_object_set_new(x->all, "answer", answer(&x->policy, &q, &v)) < 0)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "explain");
	if (v.yes && needs_addresses(&x->policy, &q))
		memcpy(x->name, q.name, sizeof(x->name));
	return 0;
}

/* --- its addresses -------------------------------------------------------------------------- */

static json_t *address(uint32_t ip, const struct policy_verdict *v)
{
	char text[IP4_TEXT_MAX];

	ip4_text(ip, text);
	return json_pack("{ss sb ss}", "address", text, "allowed", v->yes, "why", v->why);
}

/* As when a guest asks for it (names.c): the first that may be dialled decides. */
void explain_found(struct explain *x, enum dns_reading reading, const struct dns_addresses *found)
{
	json_t *answer = json_object_get(x->all, "answer"), *all = json_array();
	struct policy_verdict v = { .why = "the name has no address" }, one;

	if (reading == DNS_FAILED)
		snprintf(v.why, sizeof(v.why), "no resolver answers");
	for (size_t i = 0; reading == DNS_ANSWERED && i < found->n; i++) {
		one = policy_answer(&x->policy, x->name, found->ip[i]);
		if (i == 0 || (one.yes && !v.yes))
			v = one;
		(void)json_array_append_new(all, address(found->ip[i], &one));
	}
	(void)json_object_set_new(answer, "addresses", all);
	if (v.yes)
		return; /* the rule that allows the name is said */
	(void)json_object_set_new(answer, "allowed", json_false());
	(void)json_object_set_new(answer, "opened", json_false());
	(void)json_object_set_new(answer, "why",
				  json_sprintf("%s; its rule would let it: %s", v.why,
					       json_string_value(json_object_get(answer, "why"))));
}

/* --- all of it ------------------------------------------------------------------------------ */

int explain_begin(struct explain *x, const struct policy_ground *g, struct bytes in,
		  struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	struct bytes question = { 0 };
	json_t *rules = NULL;

	*x = (struct explain){ .policy.ground = g };
	if (json_decode(in, EXPLAIN_IN_MAX, DEPTH_MAX, &v, err) < 0 ||
	    json_want_object(v, "rules", &rules, err) < 0 ||
	    json_may_string(v, "question", &question, err) < 0 ||
	    policy_of(&x->policy, g, rules, err) < 0)
		return -1;
	x->all = facts(&x->policy);
	if (!x->all)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "explain");
	return put_answer(x, rules, question, err);
}

int explain_tell(const struct explain *x, struct buf *out, struct err *err)
{
	return json_encode(x->all, out, err);
}

void explain_done(struct explain *x)
{
	policy_done(&x->policy);
	json_decref(TAKE(x->all));
}
