/* routes.c - every path the control plane knows, in one table. */
#include "gateway/api/handlers.h"
#include "gateway/api/lost_routes.h"

/* A literal comes before the parameter it would match. */
static const struct route routes[] = {
	{ "GET", "/health", AUTH_NONE, health_get },
	{ "POST", "/sandboxes", AUTH_KEY, sandbox_create_v1, true },
	{ "GET", "/sandboxes", AUTH_KEY, sandbox_list_v1 },
	{ "POST", "/v2/sandboxes", AUTH_KEY, sandbox_create_v2, true },
	{ "GET", "/v2/sandboxes", AUTH_KEY, sandbox_list_v2 },
	{ "GET", "/sandboxes/metrics", AUTH_KEY, sandboxes_metrics },
	{ "GET", "/sandboxes/{sandboxID}", AUTH_KEY, sandbox_get },
	{ "DELETE", "/sandboxes/{sandboxID}", AUTH_KEY, sandbox_kill },
	{ "POST", "/sandboxes/{sandboxID}/timeout", AUTH_KEY, sandbox_timeout, true },
	{ "POST", "/sandboxes/{sandboxID}/refreshes", AUTH_KEY, sandbox_refresh, true },
	{ "POST", "/sandboxes/{sandboxID}/connect", AUTH_KEY, sandbox_connect_v1, true },
	{ "POST", "/v2/sandboxes/{sandboxID}/connect", AUTH_KEY, sandbox_connect_v2, true },
	{ "POST", "/sandboxes/{sandboxID}/pause", AUTH_KEY, sandbox_pause, true },
	{ "POST", "/sandboxes/{sandboxID}/resume", AUTH_KEY, sandbox_resume, true },
	{ "POST", "/sandboxes/{sandboxID}/fork", AUTH_KEY, sandbox_fork, true },
	{ "POST", "/sandboxes/{sandboxID}/snapshots", AUTH_KEY, snapshot_take, true },
	{ "PUT", "/sandboxes/{sandboxID}/network", AUTH_KEY, sandbox_network, true },
	{ "GET", "/sandboxes/{sandboxID}/metrics", AUTH_KEY, sandbox_metrics },
	{ "GET", "/sandboxes/{sandboxID}/logs", AUTH_KEY, sandbox_logs_v1 },
	{ "GET", "/v2/sandboxes/{sandboxID}/logs", AUTH_KEY, sandbox_logs_v2 },
	{ "GET", "/snapshots", AUTH_KEY, snapshot_list },
	{ "GET", "/teams", AUTH_EITHER, team_list },
	{ "GET", "/teams/{teamID}/metrics", AUTH_KEY, not_built },
	{ "GET", "/teams/{teamID}/metrics/max", AUTH_KEY, not_built },
	{ "GET", "/api-keys", AUTH_KEY, key_list },
	{ "POST", "/api-keys", AUTH_KEY, key_add, true },
	{ "PATCH", "/api-keys/{apiKeyID}", AUTH_KEY, key_rename, true },
	{ "DELETE", "/api-keys/{apiKeyID}", AUTH_KEY, key_remove },
	{ "GET", "/templates", AUTH_KEY, template_list },
	{ "GET", "/templates/aliases/{alias}", AUTH_KEY, template_alias },
	{ "POST", "/v3/templates", AUTH_KEY, not_built },
	{ "GET", "/v2/templates", AUTH_KEY, not_built },
	{ "POST", "/templates/tags", AUTH_KEY, not_built },
	{ "DELETE", "/templates/tags", AUTH_KEY, not_built },
	{ "GET", "/templates/{templateID}", AUTH_KEY, not_built },
	{ "DELETE", "/templates/{templateID}", AUTH_KEY, snapshot_delete },
	{ "PATCH", "/templates/{templateID}", AUTH_KEY, not_built },
	{ "PATCH", "/v2/templates/{templateID}", AUTH_KEY, not_built },
	{ "GET", "/templates/{templateID}/tags", AUTH_KEY, not_built },
	{ "GET", "/templates/{templateID}/files/{hash}", AUTH_KEY, not_built },
	{ "POST", "/v2/templates/{templateID}/builds/{buildID}", AUTH_KEY, not_built },
	{ "GET", "/templates/{templateID}/builds/{buildID}/status", AUTH_KEY, not_built },
	{ "GET", "/templates/{templateID}/builds/{buildID}/logs", AUTH_KEY, not_built },
	{ "GET", "/volumes", AUTH_KEY, not_built },
	{ "POST", "/volumes", AUTH_KEY, not_built },
	{ "GET", "/volumes/{volumeID}", AUTH_KEY, not_built },
	{ "DELETE", "/volumes/{volumeID}", AUTH_KEY, not_built },
	{ "GET", "/secrets", AUTH_KEY, secret_list },
	{ "POST", "/secrets", AUTH_KEY, secret_add, true, .secret = true },
	{ "GET", "/secrets/{secretID}", AUTH_KEY, secret_get },
	{ "POST", "/secrets/{secretID}", AUTH_KEY, secret_replace, true, .secret = true },
	{ "DELETE", "/secrets/{secretID}", AUTH_KEY, secret_remove },

	{ "GET", "/admin/teams", AUTH_ADMIN, admin_team_list },
	{ "POST", "/admin/teams", AUTH_ADMIN, admin_team_add, true },
	{ "DELETE", "/admin/teams/{team}", AUTH_ADMIN, admin_team_remove },
	{ "PATCH", "/admin/teams/{team}/limits", AUTH_ADMIN, admin_team_limits, true },
	{ "GET", "/admin/teams/{team}/keys", AUTH_ADMIN, admin_key_list },
	{ "POST", "/admin/teams/{team}/keys", AUTH_ADMIN, admin_key_add, true },
	{ "DELETE", "/admin/keys/{apiKeyID}", AUTH_ADMIN, key_remove },
	{ "PATCH", "/admin/keys/{apiKeyID}/limits", AUTH_ADMIN, admin_key_limits, true },
	{ "POST", "/admin/keys/{apiKeyID}/rotate", AUTH_ADMIN, admin_key_rotate },
	{ "PATCH", "/admin/keys/{apiKeyID}/services", AUTH_ADMIN, admin_key_services, true },
	{ "GET", "/admin/sandboxes", AUTH_ADMIN, admin_sandbox_list },
	{ "DELETE", "/admin/sandboxes/{sandboxID}", AUTH_ADMIN, admin_sandbox_kill },
	{ "POST", "/admin/sandboxes/{sandboxID}/pause", AUTH_ADMIN, sandbox_pause, true },
	{ "POST", "/admin/sandboxes/{sandboxID}/resume", AUTH_ADMIN, admin_sandbox_resume, true },
	{ "GET", "/admin/sandboxes/{sandboxID}/why", AUTH_ADMIN, admin_sandbox_why },
	{ "GET", "/admin/sandboxes/{sandboxID}/explain", AUTH_ADMIN, admin_sandbox_explain },
	{ "GET", "/admin/sandboxes/{sandboxID}/egress", AUTH_ADMIN, admin_sandbox_egress },
	{ "POST", "/admin/sandboxes/{sandboxID}/fork", AUTH_ADMIN, admin_sandbox_fork, true },
	{ "GET", "/admin/snapshots", AUTH_ADMIN, admin_snapshot_list },
	{ "GET", "/admin/lost", AUTH_ADMIN, admin_lost_list },
	{ "POST", "/admin/lost/{id}/restore", AUTH_ADMIN, admin_lost_restore },
	{ "DELETE", "/admin/lost/{id}", AUTH_ADMIN, admin_lost_drop },
	{ "GET", "/admin/ended", AUTH_ADMIN, admin_ended_list },
	{ "GET", "/admin/templates", AUTH_ADMIN, admin_template_list },
	{ "POST", "/admin/confirm-lost", AUTH_ADMIN, admin_confirm_lost },
	{ "GET", "/admin/status", AUTH_ADMIN, admin_status },
	{ "GET", "/admin/health", AUTH_ADMIN, admin_health },
};

typedef char route_param[TARGET_SEGMENT_MAX + 1];

/* One segment against one of the pattern; a parameter takes anything but nothing. */
static int match_segment(struct bytes want, struct bytes raw, route_param *params, size_t *n,
			 struct err *err)
{
	AUTO(buf_done) struct buf plain = BUF_MAX(TARGET_SEGMENT_MAX);

	if (target_decode_segment(raw, &plain, err) < 0)
		return -1;
	if (want.len == 0 || want.ptr[0] != '{')
		return bytes_eq(want, buf_view(&plain));
	assert(*n < API_PARAMS_MAX);
	if (plain.len == 0 || !bytes_to_str(buf_view(&plain), params[*n], sizeof(params[0])))
		return 0;
	(*n)++;
	return 1;
}

/* 1: it matches, 0: not, -1: the path is broken. */
static int match(const char *pattern, struct bytes path, route_param *params, struct err *err)
{
	struct bytes want, raw, rest = bytes_str(pattern);
	size_t n = 0;
	int rc;

	for (;;) {
		bool more = target_next_segment(&rest, &want);

		if (more != target_next_segment(&path, &raw))
			return 0;
		if (!more)
			return 1;
		rc = match_segment(want, raw, params, &n, err);
		if (rc <= 0)
			return rc;
	}
}

static bool method_ok(const struct route *r, struct bytes method)
{
	if (bytes_eq(method, BYTES_LIT("HEAD")))
		return strcmp(r->method, "GET") == 0;
	return bytes_eq(method, bytes_str(r->method));
}

static void add_allowed(char *allow, const char *method)
{
	size_t n = strlen(allow);

	if (!strstr(allow, method))
		snprintf(allow + n, ROUTE_ALLOW_SIZE - n, "%s%s", n > 0 ? ", " : "", method);
}

const struct route *route_find(struct bytes method, struct bytes path, bool admin,
			       char params[static API_PARAMS_MAX][TARGET_SEGMENT_MAX + 1],
			       char ret_allow[static ROUTE_ALLOW_SIZE], struct err *err)
{
	ret_allow[0] = '\0';
	for (size_t i = 0; i < COUNT(routes); i++) {
		const struct route *r = &routes[i];
		int rc;

		if ((r->auth == AUTH_ADMIN) != admin)
			continue;
		rc = match(r->path, path, params, err);
		if (rc < 0)
			return NULL;
		if (rc == 0)
			continue;
		if (method_ok(r, method))
			return r;
		add_allowed(ret_allow, r->method);
	}
	return NULL;
}

void routes_print(FILE *out)
{
	static const char *const names[] = { [AUTH_NONE] = "none",
					     [AUTH_KEY] = "key",
					     [AUTH_EITHER] = "key-or-bearer",
					     [AUTH_ADMIN] = "admin" };

	for (size_t i = 0; i < COUNT(routes); i++)
		fprintf(out, "%s %s %s\n", routes[i].method, routes[i].path, names[routes[i].auth]);
}
