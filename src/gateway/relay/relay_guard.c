/* relay_guard.c - see relay_guard.h. Nothing here is remembered: every gateway decides alike. */
#include "gateway/relay/relay_guard.h"

#include <inttypes.h>

#include "base/clock.h"
#include "gateway/parse/pass_fields.h"
#include "gateway/relay/relay.h"
#include "gateway/relay/relay_page.h"
#include "wire/port_pass.h"
#include "wire/target.h"

enum {
	COOKIE_SIZE = 256,
	COOKIES_TRIED_MAX = 8, /* a sibling can set some; each costs an HMAC */
};

const struct guarded_port *relay_guarded(const struct relay *r)
{
	if (relay_is_agent(r) || !r->user.guest)
		return NULL;
	return guarded_ports_find(&r->user.guest->ingress.guarded, r->to.port);
}

static const struct http1_head *head_of(const struct relay *r)
{
	return http_request_head(r->rq);
}

static const struct node_sandbox *sandbox_of(const struct relay *r)
{
	return &r->user.guest->info;
}

/* --- what came ------------------------------------------------------------------------------ */

static struct bytes field(const struct relay *r, const char *name)
{
	struct bytes value = { 0 };

	return http1_find(head_of(r), name, &value) == 1 ? value : (struct bytes){ 0 };
}

/* Passes count at names of our own: who lets another name lead here is another site. */
static bool is_own_name(const struct relay *r)
{
	return r->to.named && pass_own_name(field(r, "host"), r->g->domain);
}

static bool in_address(const struct relay *r, struct bytes *ret)
{
	struct target t;
	struct err err;

	return target_split(head_of(r)->target, &t, &err) == 0 && pass_in_query(t.query, ret);
}

static const char *cookie_name(const struct relay *r)
{
	return http_request_secure(r->rq) ? PASS_COOKIE_SECURE : PASS_COOKIE_PLAIN;
}

/* The next field that has cookies; over HTTP/2 there are several. */
static bool next_cookies(const struct relay *r, size_t *i, struct bytes *ret)
{
	const struct http1_head *h = head_of(r);

	while (*i < h->n_fields) {
		const struct http1_field *f = &h->fields[(*i)++];

		if (bytes_eq_nocase(f->name, BYTES_LIT("cookie"))) {
			*ret = f->value;
			return true;
		}
	}
	return false;
}

/* It says that it is for this port, and not over. */
static bool claims(const struct relay *r, struct bytes given, enum port_pass_kind kind)
{
	struct port_pass p;

	return port_pass_claims(given, clock_wall_ns() / NSEC_PER_SEC, &p) && p.kind == kind &&
	       p.port == r->to.port;
}

/* The first that may be right; without one, the first. */
static bool best_cookie(const struct relay *r, struct bytes *ret)
{
	struct bytes cookies, one;
	bool found = false;
	size_t i = 0;

	while (next_cookies(r, &i, &cookies))
		while (pass_next_cookie(&cookies, cookie_name(r), &one)) {
			bool may = claims(r, one, PASS_COOKIE);

			if (may || !found)
				*ret = one;
			if (may)
				return true;
			found = true;
		}
	return found;
}

/* An empty field is none, as where it is compared. */
struct bytes relay_credential(const struct relay *r)
{
	struct bytes found = { 0 }, address = { 0 };
	bool in;

	if (http1_find(head_of(r), RELAY_TRAFFIC_TOKEN, &found) > 0 && found.len > 0)
		return field(r, RELAY_TRAFFIC_TOKEN);
	if (!is_own_name(r))
		return (struct bytes){ 0 };
	in = in_address(r, &address);
	if (in && claims(r, address, PASS_ADDRESS))
		return address;
	/* who has a cookie may come by an address that is too old */
	if (best_cookie(r, &found) && (!in || claims(r, found, PASS_COOKIE)))
		return found;
	return in ? address : (struct bytes){ 0 };
}

/* --- is it right? --------------------------------------------------------------------------- */

static bool is_token(const struct relay *r, struct bytes given)
{
	const char *token = sandbox_of(r)->traffic_token;

	return token[0] != '\0' && bytes_eq_secret(given, bytes_str(token));
}

static bool is_pass(const struct relay *r, struct bytes given, enum port_pass_kind kind)
{
	const struct node_sandbox *s = sandbox_of(r);
	struct port_pass p;

	return claims(r, given, kind) && port_pass_right(given, s->id, bytes_str(s->traffic_token),
							 clock_wall_ns() / NSEC_PER_SEC, &p);
}

/* Of several, as a sibling may have put one beside it, one is enough. */
static bool has_cookie(const struct relay *r)
{
	struct bytes cookies, one;
	size_t i = 0, tried = 0;

	while (next_cookies(r, &i, &cookies))
		while (pass_next_cookie(&cookies, cookie_name(r), &one)) {
			if (!claims(r, one, PASS_COOKIE))
				continue;
			if (is_pass(r, one, PASS_COOKIE))
				return true;
			if (++tried == COOKIES_TRIED_MAX)
				return false;
		}
	return false;
}

static bool is_read(const struct relay *r)
{
	const struct bytes method = head_of(r)->method;

	return bytes_eq(method, BYTES_LIT("GET")) || bytes_eq(method, BYTES_LIT("HEAD"));
}

/* A page of whatever site was left for this one. */
static bool is_navigation(const struct relay *r)
{
	struct bytes origin;

	return is_read(r) && http1_find(head_of(r), "origin", &origin) == 0 &&
	       bytes_eq(field(r, "sec-fetch-mode"), BYTES_LIT("navigate")) &&
	       bytes_eq(field(r, "sec-fetch-dest"), BYTES_LIT("document"));
}

static bool is_at(const struct relay *r, const char *path)
{
	struct target t;
	struct err err;

	return target_split(head_of(r)->target, &t, &err) == 0 && bytes_eq(t.path, bytes_str(path));
}

static enum relay_entry refused(enum relay_refusal why, enum relay_refusal *ret_why)
{
	*ret_why = why;
	return ENTRY_REFUSED;
}

/* By a link of another site. DevTools' front end and noVNC do what their address says, such as to
 * connect elsewhere, so no other site chooses that: of DevTools it may choose the list of tabs. Of
 * noVNC nothing, since what stands behind a # is followed, too, and never seen here. */
static enum relay_entry led_entry(const struct relay *r, enum relay_refusal *ret_why)
{
	switch (relay_guarded(r)->kind) {
	case GUARDED_DEVTOOLS:
		return is_at(r, "/") ? ENTRY_FREE : refused(REFUSE_LED_DEVTOOLS, ret_why);
	case GUARDED_NOVNC:
		return refused(REFUSE_LED_NOVNC, ret_why);
	case GUARDED_ANY:
	case GUARDED_KINDS:
		break;
	}
	return ENTRY_FREE;
}

/* A browser sends a cookie whoever asks. Sandboxes are siblings below one domain, so who asks has
 * to be looked at: it must be a page of this port. */
static bool is_own_page(const struct relay *r)
{
	struct bytes origin = { 0 }, site = field(r, "sec-fetch-site");
	bool switches = http1_upgrade(head_of(r)).len > 0;
	size_t n = http1_find(head_of(r), "origin", &origin);

	if (n > 0)
		return n == 1 &&
		       pass_same_origin(origin, http_request_secure(r->rq), field(r, "host"));
	if (switches || !is_read(r))
		return false; /* browsers say it then */
	return site.len == 0 || bytes_eq(site, BYTES_LIT("same-origin")) ||
	       bytes_eq(site, BYTES_LIT("none"));
}

/* Is what is in the address right, whoever follows it? */
static bool is_address(const struct relay *r)
{
	struct bytes given;

	return in_address(r, &given) && (is_token(r, given) || is_pass(r, given, PASS_ADDRESS));
}

/* Without the header, at a guarded port. */
static enum relay_entry visitor_entry(const struct relay *r, enum relay_refusal *ret_why)
{
	bool has = has_cookie(r), address;
	struct bytes given;

	address = in_address(r, &given) && is_read(r) && http1_upgrade(head_of(r)).len == 0;
	if (address && (has || is_address(r)))
		return ENTRY_EXCHANGE;
	if (!has && (address || best_cookie(r, &given) || relay_wants_page(head_of(r))))
		return refused(REFUSE_PASS, ret_why);
	if (!has)
		return refused(REFUSE_NO_TRAFFIC_TOKEN, ret_why);
	if (is_own_page(r))
		return ENTRY_FREE;
	return is_navigation(r) ? led_entry(r, ret_why) : refused(REFUSE_ORIGIN, ret_why);
}

/* What it takes to compare tells nothing of the token. */
enum relay_entry relay_entry(const struct relay *r, enum relay_refusal *ret_why)
{
	bool guarded = relay_guarded(r);
	struct bytes token = { 0 };
	size_t n;

	if (relay_is_agent(r) || (!guarded && !(sandbox_of(r)->flags & NODE_PRIVATE)))
		return ENTRY_FREE;
	n = http1_find(head_of(r), RELAY_TRAFFIC_TOKEN, &token);
	if (n == 1 && token.len > 0 && is_token(r, token))
		return ENTRY_FREE;
	if (n > 0 && token.len > 0)
		return refused(REFUSE_TRAFFIC_TOKEN, ret_why);
	if (guarded && is_own_name(r))
		return visitor_entry(r, ret_why);
	return refused(REFUSE_NO_TRAFFIC_TOKEN, ret_why);
}

/* --- the exchange --------------------------------------------------------------------------- */

static void make_cookie(const struct relay *r, char ret[static COOKIE_SIZE])
{
	const struct node_sandbox *s = sandbox_of(r);
	struct port_pass p = { PASS_COOKIE, r->to.port,
			       clock_wall_ns() / NSEC_PER_SEC + PORT_PASS_COOKIE_S };
	char pass[PORT_PASS_SIZE];

	port_pass_make(&p, s->id, bytes_str(s->traffic_token), pass);
	snprintf(ret, COOKIE_SIZE, "%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax%s",
		 cookie_name(r), pass, PORT_PASS_COOKIE_S,
		 http_request_secure(r->rq) ? "; Secure" : "");
}

void relay_exchange(const struct relay *r)
{
	AUTO(buf_done) struct buf to = BUF_SECRET(HTTP1_TARGET_MAX + 1);
	char cookie[COOKIE_SIZE];
	struct http1_field fields[] = {
		{ BYTES_LIT("location"), { 0 } },
		{ BYTES_LIT("cache-control"), BYTES_LIT("no-store") },
		{ BYTES_LIT("referrer-policy"), BYTES_LIT("no-referrer") },
		{ BYTES_LIT("set-cookie"), { 0 } },
	};
	/* who came by an address that is too old keeps the cookie he has */
	size_t n = is_address(r) ? COUNT(fields) : COUNT(fields) - 1;
	struct target t;
	struct err err;

	make_cookie(r, cookie);
	if (target_split(head_of(r)->target, &t, &err) < 0 ||
	    pass_drop_param(t.path, t.query, &to, &err) < 0) {
		http_fail(r->rq, 500, "out of memory");
		return;
	}
	fields[0].value = buf_view(&to);
	fields[COUNT(fields) - 1].value = bytes_str(cookie);
	http_answer(r->rq,
		    &(struct http_response){ .status = 303, .fields = fields, .n_fields = n },
		    (struct bytes){ 0 });
	explicit_bzero(cookie, sizeof(cookie));
}
