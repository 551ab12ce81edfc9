/* routes.c - which of the tables has the route of a request. */
#include "gateway/api/routes.h"

#include "gateway/api/answer.h"
#include "gateway/api/api.h"

static const struct route general_routes[] = {
	{ "GET", "/health", AUTH_NONE, health_get },
	{ "GET", "/volumes", AUTH_KEY, api_not_built },
	{ "POST", "/volumes", AUTH_KEY, api_not_built },
	{ "GET", "/volumes/{volumeID}", AUTH_KEY, api_not_built },
	{ "DELETE", "/volumes/{volumeID}", AUTH_KEY, api_not_built },
	{ 0 },
};

/* The first route that matches is taken, so a literal comes before the parameter it would match:
 * /sandboxes/metrics, of the records, before /sandboxes/{sandboxID}. */
static const struct route *const tables[] = {
	general_routes,       sandbox_record_routes, sandbox_routes, sandbox_list_routes,
	sandbox_life_routes,  snapshot_routes,       network_routes, key_routes,
	template_list_routes, template_routes,       build_routes,   secret_routes,
	admin_routes,         lost_routes,           ended_routes,   upload_routes,
	metrics_routes,       address_routes,
};

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

/* The route in one table; *rc is -1 when the path is broken. */
static const struct route *find_in(const struct route *table, struct route_search *s, int *rc,
				   struct err *err)
{
	for (const struct route *r = table; r->method; r++) {
		if ((r->auth == AUTH_ADMIN) != s->admin)
			continue;
		*rc = match(r->path, s->path, s->params, err);
		if (*rc < 0)
			return NULL;
		if (*rc == 0)
			continue;
		if (method_ok(r, s->method))
			return r;
		add_allowed(s->allow, r->method);
	}
	return NULL;
}

const struct route *route_find(struct route_search *s, struct err *err)
{
	const struct route *found = NULL;
	int rc = 0;

	for (size_t i = 0; i < COUNT(tables) && !found && rc >= 0; i++)
		found = find_in(tables[i], s, &rc, err);
	return found;
}

void routes_print(FILE *out)
{
	static const char *const names[] = { [AUTH_NONE] = "none",
					     [AUTH_KEY] = "key",
					     [AUTH_EITHER] = "key-or-bearer",
					     [AUTH_ADMIN] = "admin" };

	for (size_t i = 0; i < COUNT(tables); i++)
		for (const struct route *r = tables[i]; r->method; r++)
			fprintf(out, "%s %s %s\n", r->method, r->path, names[r->auth]);
}
