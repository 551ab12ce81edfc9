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

static json_t *facts(const struct policy *p)
{
	return json_pack("{so so so so so so}", "operator", operator_of(p->ground), "packages",
			 list(&p->packages), "allowOut", list(&p->allow), "denyOut", list(&p->deny),
			 "opened", list(&p->opened), "services", services(p));
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

static json_t *answer(const struct policy *p, const struct known_names *k, const struct asked *q)
{
	struct policy_verdict v = q->name[0] ? by_name(p, q) : reach_address(p, k, q->ip, q->port);

	return json_pack("{ss sb ss sb}", "question", q->text, "allowed", v.yes, "why", v.why,
			 "opened", v.yes && q->name[0] && policy_opens(p, q->name));
}

/* --- both ----------------------------------------------------------------------------------- */

static int put_answer(json_t *all, const struct policy *p, const json_t *rules,
		      struct bytes question, struct err *err)
{
	AUTO(known_names_done) struct known_names known = { 0 };
	struct asked q = { 0 };

	if (question.len == 0)
		return 0;
	if (known_names_read(&known, rules, err) < 0 || read_question(question, &q, err) < 0)
		return -1;
	if (json_object_set_new(all, "answer", answer(p, &known, &q)) < 0)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "explain");
	return 0;
}

int explain(const struct policy_ground *g, struct bytes in, struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	AUTO(json_decrefp) json_t *all = NULL;
	AUTO(policy_done) struct policy p = { .ground = g };
	struct bytes question = { 0 };
	json_t *rules = NULL;

	if (json_decode(in, EXPLAIN_IN_MAX, DEPTH_MAX, &v, err) < 0 ||
	    json_want_object(v, "rules", &rules, err) < 0 ||
	    json_may_string(v, "question", &question, err) < 0 || policy_of(&p, g, rules, err) < 0)
		return -1;
	all = facts(&p);
	if (!all)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "explain");
	if (put_answer(all, &p, rules, question, err) < 0)
		return -1;
	return json_encode(all, out, err);
}
