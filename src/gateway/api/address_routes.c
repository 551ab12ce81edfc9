/* address_routes.c - addresses of a sandbox's guarded ports, for people's browsers: each with a
 * pass. */
#include <inttypes.h>

#include "base/clock.h"
#include "gateway/api/answer.h"
#include "gateway/api/sandbox_ask.h"
#include "gateway/parse/ingress.h"
#include "gateway/parse/pass_fields.h"
#include "wire/port_pass.h"

enum { URL_SIZE = 1024 };

/* What a person sees first. */
static const char *page_of(enum guarded_kind kind)
{
	return kind == GUARDED_NOVNC ? "/vnc.html?autoconnect=true&resize=scale&" : "/?";
}

/* Below a domain that was set, names are served as the gateway serves; else as the client came. */
static bool is_secure(const struct api_call *c)
{
	return http_request_secure(c->rq) || (c->g->domain[0] && c->g->arrivals);
}

static json_t *one_address(struct api_call *c, const struct node_sandbox *s,
			   const struct guarded_port *p)
{
	uint64_t now_s = clock_wall_ns() / NSEC_PER_SEC;
	const struct port_pass pass = { PASS_ADDRESS, p->port, now_s + PORT_PASS_ADDRESS_S };
	char text[PORT_PASS_SIZE], url[URL_SIZE];

	port_pass_make(&pass, s->id, bytes_str(s->traffic_token), text);
	snprintf(url, sizeof(url), "%s://%u-%s.%s%s" PASS_PARAM "=%s",
		 is_secure(c) ? "https" : "http", (unsigned int)p->port, s->id, api_domain(c),
		 page_of(p->kind), text);
	return json_pack("{s:i, s:s, s:s, s:o}", "port", (int)p->port, "kind",
			 guarded_kind_name(p->kind), "url", url, "expiresAt",
			 api_time(pass.expires_s * NSEC_PER_SEC));
}

static void on_got(struct api_call *c, struct node_answer *said)
{
	const struct node_sandbox *s = &said->reply->sandbox;
	struct ingress in = { 0 };
	json_t *all;
	struct err err;

	if (strcmp(api_domain(c), SANDBOX_DOMAIN_NONE) == 0) {
		api_fail(c, 412,
			 "sandboxes have no host names here, which these addresses need: set "
			 "`domain` in gateway.conf");
		return;
	}
	all = json_array();
	if ((s->flags & NODE_INGRESS) && ingress_recall(said->after, &in, &err) < 0) {
		json_decref(all);
		api_fail(c, 500, "node's text of the sandbox cannot be read");
		return;
	}
	for (size_t i = 0; s->traffic_token[0] && i < in.guarded.n; i++)
		if (json_array_append_new(all, one_address(c, s, &in.guarded.at[i])) < 0) {
			json_decref(all);
			api_fail(c, 500, "out of memory");
			return;
		}
	api_answer(c, 201, json_pack("{s:s, s:o}", "sandboxID", s->id, "addresses", all));
}

/* Made for who has the key of its team: whoever has an address may enter. */
static void sandbox_addresses(struct api_call *c)
{
	if (sandbox_take_id(c))
		sandbox_ask(c, &(struct node_request){ .verb = NODE_GET }, API_NODE_MS, on_got);
}

const struct route address_routes[] = {
	{ "POST", "/sandboxes/{sandboxID}/addresses", AUTH_KEY, sandbox_addresses },
	{ 0 },
};
