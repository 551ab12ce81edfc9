/* explain.h - what is allowed to a sandbox, and why: the same rules, read and asked by people.
 *
 * In:  {"rules":{}, "question":"example.com:443"}; rules as policy.h and known_names.h have them;
 *      the question may be absent, be an address, and have no port.
 * Out: {"operator":{"mode":"none"|"allowlist"|"open","allow":[]}, "packages":[], "allowOut":[],
 *       "denyOut":[], "opened":[], "services":[{"name":"db.hotcell.internal","address":"10.1.2.3",
 *       "port":5432}], "answer":{"question":"example.com:443","allowed":true,"why":"",
 *       "opened":false}}; opened: rules of headers apply, and TLS is opened for them.
 *      Without a question there is no answer.
 */
#pragma once

#include "egress/policy.h"

enum {
	EXPLAIN_QUESTION_MAX = DOMAIN_SIZE + 8,
	EXPLAIN_IN_MAX = POLICY_TEXT_MAX + 1024,
	EXPLAIN_OUT_MAX = 4 * POLICY_TEXT_MAX,
};

/* Appends. ERR_INVALID: the rules, or the question, cannot be read. */
int explain(const struct policy_ground *g, struct bytes in, struct buf *out,
	    struct err *err) NODISCARD;
