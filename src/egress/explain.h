/* explain.h - what is allowed to a sandbox, and why: the same rules, read and asked by people.
 *
 * In:  {"rules":{}, "question":"example.com:443"}; rules as policy.h and known_names.h have them;
 *      the question may be absent, be an address, and have no port.
 * Out: {"operator":{"mode":"none"|"allowlist"|"open","allow":[]}, "packages":[], "allowOut":[],
 *       "denyOut":[], "opened":[], "services":[{"name":"db.hotcell.internal","address":"10.1.2.3",
 *       "port":5432}], "published":["db"],
 * "answer":{"question":"example.com:443","allowed":true,"why":"",
 *       "opened":false,"addresses":[{"address":"1.2.3.4","allowed":true,"why":""}]}};
 *      opened: rules of headers apply, and TLS is opened for them. addresses: of a name that the
 *      rules allow, unless the proxy resolves it; "allowed" is then whether one of them may be
 *      dialled.
 *      services: those that it may reach; published: all that the operator has.
 *      Without a question there is no answer.
 */
#pragma once

#include "egress/policy.h"
#include "wire/dns_answer.h"

enum {
	EXPLAIN_QUESTION_MAX = DOMAIN_SIZE + 8,
	EXPLAIN_IN_MAX = POLICY_TEXT_MAX + 1024,
	EXPLAIN_OUT_MAX = 4 * POLICY_TEXT_MAX,
};

struct explain { /* one question; all zero: none. It does not move */
	struct policy policy;
	json_t *all;            /* the answer, as far as it is known */
	char name[DOMAIN_SIZE]; /* whose addresses decide yet; empty: nothing does */
};

/* Goes as far as the rules do. ERR_INVALID: the rules, or the question, cannot be read. */
int explain_begin(struct explain *x, const struct policy_ground *g, struct bytes in,
		  struct err *err) NODISCARD;
/* What the resolver says of `name`: judged as for a connection. */
void explain_found(struct explain *x, enum dns_reading reading, const struct dns_addresses *found);
int explain_tell(const struct explain *x, struct buf *out, struct err *err) NODISCARD; /* appends */
void explain_done(struct explain *x);
