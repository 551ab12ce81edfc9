/* network_rules.h - headers that are put into what a sandbox sends to a host. Pure. */
#pragma once

#include "wire/json.h"

enum {
	NETWORK_RULES_MAX = 10,
	NETWORK_RULE_NAME_MAX = 128,
	NETWORK_HEADERS_MAX = 20, /* of one rule */
	NETWORK_HEADER_NAME_MAX = 64,
	NETWORK_HEADER_VALUE_MAX = 2048,
	NETWORK_SECRETS_MAX = 32, /* that one rule names */
};

/* {"host":[{"transform":{"headers":{}}}]} */
int network_rules_take(const json_t *rules, json_t **ret, struct err *err) NODISCARD;
