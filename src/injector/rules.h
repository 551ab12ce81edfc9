/* rules.h - from a sandbox's rules and sealed secrets to what its worker adds to requests.
 *
 * A header whose value cannot be made (a secret that is not there, an identity token) is not left
 * out and not sent empty: requests to that host are refused, with the reason.
 */
#pragma once

#include "tls/seal.h"
#include "wire/json.h"

enum {
	RULES_TEXT_MAX = 4 * 1024 * 1024, /* of what node sends, sealed secrets and all */
	RULES_HOSTS_MAX = 64,
	RULES_FIELDS_MAX = 32,         /* for each host */
	RULES_VALUE_MAX = 8 * 1024,    /* of a header, filled in */
	RULES_FIELDS_SIZE = 24 * 1024, /* of all that is added to one request */
	RULES_WHY_MAX = 255,
};

/* `text` as in INJECTOR_START. *ret is what a worker is told but for its certificates:
 * {"rules":[], "refusalPages":}; each rule is what worker/rule.h reads: {"host":, "secret":,
 * "refuse":, "headers":[["name","value"],...]}. A secret opens under the label TEAM/NAME. */
int rules_fill(struct bytes text, const char *team, const struct seal_key *key, json_t **ret,
	       struct err *err) NODISCARD;
