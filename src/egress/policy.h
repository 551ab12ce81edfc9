/* policy.h - whom a sandbox may reach, and which rule says so.
 *
 * Two have a say. The operator's ground holds for all: nobody, a list, or the internet; and the
 * named services of the own network. A sandbox narrows it, never widens it. Its own rules have
 * E2B's order: a name or range that is allowed, a range that is denied, else allowed. Addresses
 * that are not the internet's, or the host's own, are refused whatever a rule says: only a named
 * service has one.
 */
#pragma once

#include "egress/rule_list.h"
#include "wire/json.h"

enum {
	POLICY_TEXT_MAX = 256 * 1024,
	POLICY_WHY_MAX = 320,
	POLICY_SERVICES_MAX = 64,
	POLICY_HOST_MAX = 64,
	POLICY_SERVICE_NAME_MAX = 63,
};

#define POLICY_SERVICE_DOMAIN ".hotcell.internal"

enum policy_mode { POLICY_NONE, POLICY_ALLOWLIST, POLICY_OPEN };

struct policy_service {
	char name[POLICY_SERVICE_NAME_MAX + 1]; /* db */
	uint32_t ip;
	uint16_t port;
};

struct policy_ground {
	enum policy_mode mode;
	bool proxy_resolves; /* names are the proxy's: stand-ins (fake_ip.h) are as good */
	bool packages;       /* the list has the template's own package hosts, too */
	struct rule_list allow;
	struct policy_service services[POLICY_SERVICES_MAX];
	size_t n_services;
	uint32_t host[POLICY_HOST_MAX]; /* public addresses that are this host's own */
	size_t n_host;
	uint32_t proxy; /* the operator's: it would lead anywhere. 0: none */
};

/* "db=10.1.2.3:5432 cache=10.1.2.4:6379", names of one label. */
int policy_ground_services(struct policy_ground *g, struct bytes text, struct err *err) NODISCARD;
/* "example.com *.example.org 1.2.3.0/24"; `packages` stands for the template's hosts. */
int policy_ground_allow(struct policy_ground *g, struct bytes text, struct err *err) NODISCARD;
/* Once all of it is read: may these settings be together? The error says what to change. */
int policy_ground_check(const struct policy_ground *g, struct err *err) NODISCARD;
void policy_ground_done(struct policy_ground *g);

struct policy {
	const struct policy_ground *ground; /* borrowed */
	struct rule_list packages;          /* the template's */
	struct rule_list allow, deny;
	struct rule_list opened; /* names only: their TLS is opened for a rule */
	uint64_t services;       /* bits: those of the ground that it may reach */
	bool pages;              /* what is refused is shown as a page, over TLS too */
};

/* {"packages":[], "services":[], "allowInternetAccess":, "refusalPages":, "network":{"allowOut":[],
 * "denyOut":[], "rules":{}}}, each of which may be absent. What is unknown is passed over;
 * known_names.h has more. */
int policy_decode(struct bytes text, json_t **ret, struct err *err) NODISCARD;
int policy_of(struct policy *ret, const struct policy_ground *g, const json_t *rules,
	      struct err *err) NODISCARD;
void policy_done(struct policy *p);

enum policy_cause {                    /* of a refusal: who could change it */
		    POLICY_NO_CAUSE,   /* none, or one that no rule changes */
		    POLICY_NO_NETWORK, /* the operator: network = none */
		    POLICY_NOT_LISTED, /* the operator's list */
		    POLICY_DENIED,     /* the sandbox's own rules */
		    POLICY_NO_SERVICE, /* the operator, and the services of a key */
		    POLICY_NOT_PUBLIC, /* an address that only a service has */
};

struct policy_verdict {
	bool yes;
	char why[POLICY_WHY_MAX]; /* whose rule, and which: for the log and for people */
	enum policy_cause cause;
};

/* May a name be asked for, and dialled if its address is fit? A service is. */
struct policy_verdict policy_name(const struct policy *p, const char *name);
/* May this address, which our resolver gave for that name, be dialled? */
struct policy_verdict policy_answer(const struct policy *p, const char *name, uint32_t ip);
/* May this one, for which there is no name? */
struct policy_verdict policy_address(const struct policy *p, uint32_t ip);

/* The service of that name, or at that address, if it may be reached. NULL: none. */
const struct policy_service *policy_service(const struct policy *p, const char *name);
const struct policy_service *policy_service_at(const struct policy *p, uint32_t ip, uint16_t port);

/* Do the sandbox's own rules keep it from a name or, without one, from an address? */
bool policy_denies(const struct policy *p, const char *name, uint32_t ip);

/* Is it names that tell the allowed from the rest? Then nobody may hide one. */
bool policy_minds_names(const struct policy *p);
bool policy_opens(const struct policy *p, const char *name); /* its TLS, for a rule */
