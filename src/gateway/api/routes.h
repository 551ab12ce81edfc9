/* routes.h - every path the control plane knows.
 *
 * Each file of handlers has the table of its routes, ended by an empty one. So a new route is one
 * function and one line in the same file. A new table is named here and in the list of routes.c.
 */
#pragma once

#include "wire/target.h"

enum {
	API_PARAMS_MAX = 2, /* in a path */
	ROUTE_ALLOW_SIZE = 64,
};

enum api_auth {
	AUTH_NONE,
	AUTH_KEY,    /* X-API-KEY */
	AUTH_EITHER, /* or the same key as a bearer token */
	AUTH_ADMIN,  /* came in by the admin door */
};

struct api_call;
struct route {
	const char *method, *path; /* "/sandboxes/{sandboxID}" */
	enum api_auth auth;
	void (*run)(struct api_call *c); /* ends the call, now or later */
	bool has_body, secret;           /* secret: the body is */
	bool v2;                         /* as the second version of E2B's API has it */
	bool large;                      /* its body has up to API_LARGE_MAX bytes */
};

extern const struct route address_routes[], admin_routes[], build_routes[], ended_routes[],
	key_routes[], lost_routes[], metrics_routes[], network_routes[], sandbox_life_routes[],
	sandbox_list_routes[], sandbox_record_routes[], sandbox_routes[], secret_routes[],
	snapshot_routes[], template_list_routes[], template_routes[], upload_routes[];

typedef char route_param[TARGET_SEGMENT_MAX + 1]; /* decoded */
struct route_search {
	struct bytes method, path;
	bool admin;
	route_param *params;          /* API_PARAMS_MAX, for those of the route found */
	char allow[ROUTE_ALLOW_SIZE]; /* when none is: the methods of that path, if any */
};
/* NULL: none, or the path is broken (err). */
const struct route *route_find(struct route_search *s, struct err *err);
void routes_print(FILE *out); /* METHOD PATH AUTH of each, one per line */
