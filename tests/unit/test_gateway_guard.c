/* test_gateway_guard.c - ports that a template guards: who may enter, how a pass becomes a cookie,
 * what Chromium's DevTools is told and tells. */
#include "tests/unit/gateway_world.h"

#include "base/clock.h"
#include "wire/port_pass.h"

#define TOKEN   "0123456789abcdefghijklmnopqrstuv"
#define DOMAIN  "sbx.test"
#define MISSING "Token header 'e2b-traffic-access-token' is missing"
#define INVALID "Provided token in header 'e2b-traffic-access-token' is invalid"
#define PASS    "This port is guarded, and no right pass came"
#define ORIGIN  "A page of another site"
#define LED     "Another site led here"
#define TEA     "\r\n\r\ntea"

static const struct script plain = {
	.text = BYTES_LIT("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntea"),
};

struct guard_world {
	struct world w;
	char text[64];
};

static void guard_open(struct guard_world *g, const char *kind)
{
	world_open(&g->w);
	(void)snprintf(g->w.g.domain, sizeof(g->w.g.domain), "%s", DOMAIN);
	(void)snprintf(g->text, sizeof(g->text), "{\"guardedPorts\":\"%u%s\"}",
		       (unsigned int)g->w.port, kind);
	g->w.node.text = g->text;
	g->w.node.traffic_token = TOKEN;
	g->w.node.open = true;
	g->w.script = &plain;
}

static uint64_t now_s(void)
{
	return clock_wall_ns() / NSEC_PER_SEC;
}

/* %P in `from`: a pass as said; %T: the token; %N: the port. */
struct pass_of {
	enum port_pass_kind kind;
	const char *sandbox;
	int port_more;
	int64_t lasts_s;
	const char *token;
};

static void fill(const struct world *w, const char *from, const struct pass_of *of, char *ret,
		 size_t size)
{
	char pass[PORT_PASS_SIZE];
	size_t n = 0;

	port_pass_make(&(struct port_pass){ of->kind, (uint16_t)(w->port + of->port_more),
					    (uint64_t)((int64_t)now_s() + of->lasts_s) },
		       of->sandbox, bytes_str(of->token), pass);
	for (; *from; from++) {
		if (*from != '%') {
			ret[n++] = *from;
			continue;
		}
		from++;
		if (*from == 'N')
			n += (size_t)snprintf(ret + n, size - n, "%u", (unsigned int)w->port);
		else
			n += (size_t)snprintf(ret + n, size - n, "%s", *from == 'P' ? pass : TOKEN);
		assert_true(n < size);
	}
	ret[n] = '\0';
}

static const struct pass_of address = { PASS_ADDRESS, "abc", 0, 60, TOKEN };
static const struct pass_of cookie = { PASS_COOKIE, "abc", 0, 60, TOKEN };
static const struct pass_of of_other = { PASS_COOKIE, "abd", 0, 60, TOKEN };
static const struct pass_of of_token = { PASS_COOKIE, "abc", 0, 60, "another" };
static const struct pass_of of_port = { PASS_COOKIE, "abc", 1, 60, TOKEN };
static const struct pass_of over = { PASS_COOKIE, "abc", 0, 0, TOKEN };
static const struct pass_of old_address = { PASS_ADDRESS, "abc", 0, 0, TOKEN };
static const struct pass_of other_address = { PASS_ADDRESS, "abd", 0, 60, TOKEN };

/* By its host name, unless the fields have another. */
static void visit(struct guard_world *g, const char *line, const char *fields,
		  const struct pass_of *of)
{
	char from[2048], text[4096];

	(void)snprintf(from, sizeof(from), "%s HTTP/1.1\r\n%s%s\r\n", line,
		       strncmp(fields, "host:", 5) == 0 ? "" : "host: %N-abc." DOMAIN "\r\n",
		       fields);
	fill(&g->w, from, of, text, sizeof(text));
	world_client(&g->w);
	say(&g->w, text);
}

#define COOKIE "cookie: hotcell-pass=%P\r\n"
#define SWITCH "connection: upgrade\r\nupgrade: websocket\r\n"
#define OWN    "origin: http://%N-abc." DOMAIN "\r\n"

#define NO_MAC "0000000000000000000000000000000000000000000000000000000000000000"
#define TOSSED "cookie: hotcell-pass=c%N.99999999999." NO_MAC "\r\n" /* it may be right */
#define OLD    "cookie: hotcell-pass=c%N.1." NO_MAC "\r\n"
#define LINK \
	"sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n"

#define FRAME  "sec-fetch-site: same-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: iframe\r\n"
#define PERSON "user-agent: Mozilla/5.0\r\naccept: text/html\r\n"

static const struct {
	const char *name, *line, *fields;
	const struct pass_of *of;
	const char *want;
} visits[] = {
	{ "nothing", "GET /", "", &cookie, MISSING },
	{ "a person with nothing", "GET /", PERSON, &cookie, PASS },
	{ "a switch with nothing", "GET /", SWITCH, &cookie, MISSING },
	{ "the agent's token", "GET /", "x-access-token: %T\r\n", &cookie, MISSING },
	{ "the header", "GET /", "e2b-traffic-access-token: %T\r\n", &cookie, TEA },
	{ "a wrong header", "GET /", "e2b-traffic-access-token: x\r\n", &cookie, INVALID },
	{ "a wrong header beside a cookie", "GET /", "e2b-traffic-access-token: x\r\n" COOKIE,
	  &cookie, INVALID },
	{ "a pass in the header", "GET /", "e2b-traffic-access-token: %P\r\n", &cookie, INVALID },
	{ "the header at a foreign name", "GET /",
	  "host: %N-abc.proxy.test\r\ne2b-traffic-access-token: %T\r\n", &cookie, TEA },

	{ "an address with a pass", "GET /?e2b-traffic-access-token=%P", "", &address, "303 " },
	{ "an address with the token", "GET /?e2b-traffic-access-token=%T", "", &address, "303 " },
	{ "an address of another sandbox", "GET /?e2b-traffic-access-token=%P", "", &other_address,
	  PASS },
	{ "an address that is too old", "GET /?e2b-traffic-access-token=%P", "", &old_address,
	  PASS },
	{ "an address with a cookie's pass", "GET /?e2b-traffic-access-token=%P", "", &cookie,
	  PASS },
	{ "an address with nonsense", "GET /?e2b-traffic-access-token=x", "", &cookie, PASS },
	{ "an address to post to", "POST /?e2b-traffic-access-token=%P", "", &address, MISSING },
	{ "an address to switch at", "GET /?e2b-traffic-access-token=%P", SWITCH, &address,
	  MISSING },
	{ "an address at a rebound name", "GET /?e2b-traffic-access-token=%P",
	  "host: %N-abc.evil.test\r\n", &address, MISSING },
	{ "an address by headers", "GET /?e2b-traffic-access-token=%P",
	  "host: 127.0.0.1\r\ne2b-sandbox-id: abc\r\ne2b-sandbox-port: %N\r\n", &address, MISSING },

	{ "a cookie", "GET /", COOKIE, &cookie, TEA },
	{ "a cookie among others", "GET /", "cookie: a=1; hotcell-pass=x\r\n" COOKIE, &cookie,
	  TEA },
	{ "a cookie of TLS alone", "GET /", "cookie: __Host-hotcell-pass=%P\r\n", &cookie,
	  MISSING },
	{ "an address's pass as cookie", "GET /", COOKIE, &address, PASS },
	{ "the token as cookie", "GET /", "cookie: hotcell-pass=%T\r\n", &cookie, PASS },
	{ "a cookie of another sandbox", "GET /", COOKIE, &of_other, PASS },
	{ "a cookie by another token", "GET /", COOKIE, &of_token, PASS },
	{ "a cookie of another port", "GET /", COOKIE, &of_port, PASS },
	{ "a cookie that is over", "GET /", COOKIE, &over, PASS },
	{ "a cookie at a rebound name", "GET /", "host: %N-abc.evil.test\r\n" COOKIE, &cookie,
	  MISSING },
	{ "a cookie by headers", "GET /",
	  "host: 127.0.0.1\r\ne2b-sandbox-id: abc\r\ne2b-sandbox-port: %N\r\n" COOKIE, &cookie,
	  MISSING },
	{ "a cookie and an old address", "GET /?a=1&e2b-traffic-access-token=x", COOKIE, &cookie,
	  "location: /?a=1\r\n" },
	{ "an empty header beside a cookie", "GET /", "e2b-traffic-access-token:\r\n" COOKIE,
	  &cookie, TEA },
	{ "behind some that a sibling set", "GET /", TOSSED TOSSED TOSSED COOKIE, &cookie, TEA },
	{ "behind more than are tried", "GET /",
	  TOSSED TOSSED TOSSED TOSSED TOSSED TOSSED TOSSED TOSSED COOKIE, &cookie, PASS },
	{ "behind many that say that they are over", "GET /",
	  OLD OLD OLD OLD OLD OLD OLD OLD COOKIE, &cookie, TEA },

	{ "its own page", "GET /", COOKIE OWN, &cookie, TEA },
	{ "its own page posts", "POST /", COOKIE OWN "content-length: 0\r\n", &cookie, TEA },
	{ "its own page switches", "GET /", COOKIE OWN SWITCH, &cookie, TEA },
	{ "nobody's page posts", "POST /", COOKIE "content-length: 0\r\n", &cookie, ORIGIN },
	{ "nobody's page switches", "GET /", COOKIE SWITCH, &cookie, ORIGIN },
	{ "a sibling's page switches", "GET /",
	  COOKIE SWITCH "origin: http://%N-abd." DOMAIN "\r\n", &cookie, ORIGIN },
	{ "a foreign page switches", "GET /", COOKIE SWITCH "origin: http://evil.test\r\n", &cookie,
	  ORIGIN },
	{ "a page of no origin", "GET /", COOKIE "origin: null\r\n", &cookie, ORIGIN },
	{ "a page of two origins", "GET /", COOKIE OWN OWN, &cookie, ORIGIN },
	{ "a sibling's picture", "GET /",
	  COOKIE
	  "sec-fetch-site: same-site\r\nsec-fetch-mode: no-cors\r\nsec-fetch-dest: image\r\n",
	  &cookie, ORIGIN },
	{ "a sibling's frame", "GET /", COOKIE FRAME, &cookie, ORIGIN },
	{ "a link elsewhere", "GET /", COOKIE LINK, &cookie, TEA },
	{ "a link elsewhere, deep", "GET /a/b", COOKIE LINK, &cookie, TEA },
	{ "a link of a page that says where it is", "GET /", COOKIE LINK "origin: null\r\n",
	  &cookie, ORIGIN },
	{ "its own script", "GET /", COOKIE "sec-fetch-site: same-origin\r\n", &cookie, TEA },
};

/* Twice: node is asked first, then what it said is known. */
static void who_may_enter(void **state)
{
	(void)state;
	FOR_ROWS(row, visits) {
		struct guard_world g;

		bool enters = strcmp(row->want, TEA) == 0; /* over a connection that is kept */

		guard_open(&g, "");
		for (int i = 0; i < (enters ? 1 : 2); i++) {
			visit(&g, row->line, row->fields, row->of);
			RUN_UNTIL(g.w.l, heard(&g.w.client, row->want));
		}
		assert_int_equal(g.w.n_accepted > 0, enters);
		assert_true(g.w.n_accepted || heard(&g.w.client, "HTTP/1.1 403 ") ||
			    heard(&g.w.client, "HTTP/1.1 303 "));
		world_close(&g.w);
	}
}

/* Front ends do what their address says, so other sites do not choose that. */
static void links_into_front_ends(void **state)
{
	static const struct {
		const char *name, *kind, *line, *fields, *want;
	} rows[] = {
		{ "the list of tabs", "/devtools", "GET /", COOKIE LINK, "Tabs of this browser" },
		{ "the front end", "/devtools", "GET /devtools/inspector.html?ws=evil.test",
		  COOKIE LINK, LED },
		{ "an order", "/devtools", "GET /json/close/1", COOKIE LINK, LED },
		{ "a way on", "/devtools", "GET /devtools/inspector.html", COOKIE LINK PERSON,
		  "<a href=\"/\">" },
		{ "typed", "/devtools", "GET /devtools/inspector.html",
		  COOKIE "sec-fetch-site: none\r\n", TEA },
		{ "its own link", "/devtools", "GET /devtools/inspector.html",
		  COOKIE "sec-fetch-site: same-origin\r\n", TEA },
		{ "noVNC to somewhere else", "/novnc", "GET /vnc.html?path=//evil.test/",
		  COOKIE LINK, LED },
		{ "noVNC, perhaps with more behind a #", "/novnc",
		  "GET /vnc.html?autoconnect=true&resize=scale", COOKIE LINK, LED },
		{ "noVNC by a frame", "/novnc", "GET /vnc.html", COOKIE FRAME, ORIGIN },
		{ "noVNC and a way on", "/novnc", "GET /vnc.html", COOKIE LINK PERSON,
		  "<a href=\"/vnc.html?autoconnect=true&amp;resize=scale#\">" },
		{ "noVNC, typed", "/novnc", "GET /vnc.html", COOKIE "sec-fetch-site: none\r\n",
		  TEA },
		{ "noVNC by its own link", "/novnc", "GET /vnc.html",
		  COOKIE "sec-fetch-site: same-origin\r\n", TEA },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct guard_world g;

		guard_open(&g, row->kind);
		visit(&g, row->line, row->fields, &cookie);
		RUN_UNTIL(g.w.l, heard(&g.w.client, row->want));
		world_close(&g.w);
	}
}

/* By who comes again with a right address, and not by an old one. */
static void cookies_are_renewed(void **state)
{
	static const struct {
		const char *name, *line;
		bool renewed;
	} rows[] = {
		{ "by the token", "GET /?e2b-traffic-access-token=%T", true },
		{ "by nothing", "GET /?e2b-traffic-access-token=x", false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct guard_world g;

		guard_open(&g, "");
		visit(&g, row->line, COOKIE, &cookie);
		RUN_UNTIL(g.w.l, heard(&g.w.client, "\r\n\r\n"));
		assert_true(heard(&g.w.client, "HTTP/1.1 303 "));
		assert_int_equal(heard(&g.w.client, "set-cookie:"), row->renewed);
		world_close(&g.w);
	}
}

static void the_exchange_leaves_no_token(void **state)
{
	struct guard_world g;
	char text[512], *value, *end;

	(void)state;
	guard_open(&g, "");
	visit(&g, "GET //evil.test/a?x=1&e2b-traffic-access-token=%P&y=2", "", &address);
	RUN_UNTIL(g.w.l, heard(&g.w.client, "\r\n\r\n"));
	assert_true(heard(&g.w.client, "HTTP/1.1 303 "));
	assert_true(heard(&g.w.client, "cache-control: no-store\r\n"));
	assert_true(heard(&g.w.client, "referrer-policy: no-referrer\r\n"));
	assert_true(heard(&g.w.client, "location: /evil.test/a?x=1&y=2\r\n"));
	assert_true(heard(&g.w.client, "; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax\r\n"));
	assert_false(heard(&g.w.client, TOKEN) || heard(&g.w.client, "Secure"));
	assert_int_equal(g.w.n_accepted, 0);

	/* what came of it opens the port */
	assert_true(bytes_to_str(buf_view(&g.w.client.got), text, sizeof(text)));
	value = strstr(text, "set-cookie: hotcell-pass=c");
	assert_non_null(value);
	value += strlen("set-cookie: ");
	end = strchr(value, ';');
	assert_non_null(end);
	*end = '\0';
	{
		char fields[256];

		(void)snprintf(fields, sizeof(fields), "cookie: %s\r\n", value);
		visit(&g, "GET /", fields, &cookie);
		RUN_UNTIL(g.w.l, heard(&g.w.client, TEA));
	}
	world_close(&g.w);
}

/* Neither header, nor cookie, nor parameter. */
static void nothing_of_it_reaches_the_guest(void **state)
{
	static const struct {
		const char *name, *line, *fields, *want;
	} rows[] = {
		{ "header", "GET /?e2b-traffic-access-token=%T&b=2",
		  "e2b-traffic-access-token: %T\r\ncookie: a=1; hotcell-pass=%P; b=2\r\n",
		  "GET /?b=2 HTTP/1.1\r\n" },
		{ "cookie", "POST /x?e2b-traffic-access-token=%T",
		  "cookie: hotcell-pass=%P\r\ncookie: a=1\r\ncookie: b=2\r\n"
		  "content-length: 0\r\n" OWN,
		  "POST /x HTTP/1.1\r\n" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct guard_world g;

		guard_open(&g, "");
		visit(&g, row->line, row->fields, &cookie);
		RUN_UNTIL(g.w.l, heard(&g.w.client, TEA));
		assert_true(heard(&g.w.peers->ear, row->want));
		assert_true(heard(&g.w.peers->ear, "Cookie: a=1; b=2\r\n"));
		assert_false(heard(&g.w.peers->ear, TOKEN) || heard(&g.w.peers->ear, "pass") ||
			     heard(&g.w.peers->ear, "raffic"));
		world_close(&g.w);
	}
}

static void other_ports_stay_as_they_are(void **state)
{
	struct guard_world g;

	(void)state;
	guard_open(&g, "");
	g.w.node.text = "{\"guardedPorts\":\"1/devtools\"}";
	visit(&g, "GET /?e2b-traffic-access-token=%T", "origin: http://a.test\r\n", &cookie);
	RUN_UNTIL(g.w.l, heard(&g.w.client, TEA));
	assert_true(
		heard(&g.w.peers->ear, "GET /?e2b-traffic-access-token=" TOKEN " HTTP/1.1\r\n"));
	assert_true(heard(&g.w.peers->ear, "origin: http://a.test\r\n"));
	world_close(&g.w);

	/* in a private sandbox they want the header, and nothing else */
	guard_open(&g, "");
	g.w.node.open = false;
	g.w.node.text = "{\"guardedPorts\":\"1\"}";
	visit(&g, "GET /?e2b-traffic-access-token=%T", COOKIE, &cookie);
	RUN_UNTIL(g.w.l, heard(&g.w.client, MISSING));
	world_close(&g.w);

	/* the agent has a token of its own */
	guard_open(&g, "");
	g.w.g.guests->agent_port = g.w.port;
	visit(&g, "GET /", "", &cookie);
	RUN_UNTIL(g.w.l, heard(&g.w.client, TEA));
	world_close(&g.w);
}

static void what_node_says_of_ports_is_checked(void **state)
{
	static const char *const texts[] = { "{\"guardedPorts\":\"x\"}", "{\"guardedPorts\":7}" };

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct guard_world g;

		guard_open(&g, "");
		g.w.node.text = texts[i];
		visit(&g, "GET /", "", &cookie);
		RUN_UNTIL(g.w.l, heard(&g.w.client, "HTTP/1.1 503 "));
		world_close(&g.w);
	}
	{
		struct guard_world g; /* a port that is guarded by nobody's token is closed */

		guard_open(&g, "");
		g.w.node.traffic_token = NULL;
		visit(&g, "GET /", COOKIE, &cookie);
		RUN_UNTIL(g.w.l, heard(&g.w.client, PASS));
		visit(&g, "GET /?e2b-traffic-access-token=", "", &cookie);
		RUN_UNTIL(g.w.l, heard(&g.w.client, PASS));
		visit(&g, "GET /", "e2b-traffic-access-token:\r\n", &cookie);
		RUN_UNTIL(g.w.l, heard(&g.w.client, MISSING));
		world_close(&g.w);
	}
}

/* Node is asked with what the visitor has. */
static void a_paused_one_is_told_of_the_pass(void **state)
{
	static const struct {
		const char *name, *line, *fields, *want;
	} rows[] = {
		{ "alone", "GET /", COOKIE, TEA },
		{ "behind another's", "GET /", "cookie: hotcell-pass=x\r\n" COOKIE, TEA },
		{ "behind one that is over", "GET /", OLD COOKIE, TEA },
		{ "beside an empty header", "GET /", "e2b-traffic-access-token:\r\n" COOKIE, TEA },
		{ "beside an address that is too old",
		  "GET /?e2b-traffic-access-token=a%N.1." NO_MAC, COOKIE, "HTTP/1.1 303 " },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct guard_world g;

		guard_open(&g, "");
		g.w.node.paused = true;
		visit(&g, row->line, row->fields, &cookie);
		RUN_UNTIL(g.w.l, heard(&g.w.client, row->want));
		assert_int_equal(g.w.node.n_resumes, 1);
		assert_int_equal(g.w.node.token[0], PASS_COOKIE);
		assert_null(strstr(g.w.node.token, ".1."));
		world_close(&g.w);
	}
}

/* --- DevTools ------------------------------------------------------------------------------- */

static void devtools_is_masked(void **state)
{
	struct guard_world g;

	(void)state;
	guard_open(&g, "/devtools");
	visit(&g, "GET /devtools/browser/1",
	      SWITCH "origin: http://a.test\r\ne2b-traffic-access-token: %T\r\n", &cookie);
	RUN_UNTIL(g.w.l, heard(&g.w.client, TEA));
	assert_true(heard(&g.w.peers->ear, ".localhost:"));
	assert_false(heard(&g.w.peers->ear, "a.test"));
	assert_true(heard(&g.w.peers->ear, "upgrade: websocket\r\n") ||
		    heard(&g.w.peers->ear, "Upgrade: websocket\r\n"));
	world_close(&g.w);
}

/* The Host that the guest was given; without a NUL, as long as `ret` has room. */
static void take_host(const struct ear *e, char *ret, size_t size)
{
	const char *at = memmem(e->got.ptr, e->got.len, "Host: ", 6), *end;

	assert_non_null(at);
	end = memchr(at, '\r', 256);
	assert_non_null(end);
	(void)snprintf(ret, size, "%.*s", (int)(end - at) - 6, at + 6);
}

/* What came in chunks, joined. */
static void take_body(const struct ear *e, char *ret, size_t size)
{
	const char *at = memmem(e->got.ptr, e->got.len, "\r\n\r\n", 4);
	size_t n = 0;

	assert_non_null(at);
	for (at += 4;;) {
		char *text;
		unsigned long len = strtoul(at, &text, 16);

		if (len == 0)
			break;
		assert_true(n + len < size);
		memcpy(ret + n, text + 2, len);
		n += len;
		at = text + 2 + len + 2;
	}
	ret[n] = '\0';
}

static void devtools_body(const char *host, char *ret, size_t size)
{
	(void)snprintf(ret, size,
		       "{\"a\":\"ws://%s/devtools/browser/1\",\"b\":\"x?ws=%s/p\","
		       "\"c\":\"ws://localhost:1/www\",\"d\":\"%s\",\"e\":\"ws",
		       host, host, "wws:/ws=a");
}

/* The guest answers with addresses of the Host it was given, in two pieces. */
static void devtools_answers(const char *fields, const char *want_host, size_t cut)
{
	static const struct script silent = { .text = BYTES_LIT("") };
	struct guard_world g;
	char host[128], body[512], answer[1024], want[512], got[512];
	struct err err;
	size_t n;

	guard_open(&g, "/devtools");
	g.w.script = &silent;
	visit(&g, "GET /json/version/", fields, &cookie);
	RUN_UNTIL(g.w.l, g.w.peers && heard(&g.w.peers->ear, "\r\n\r\n"));
	take_host(&g.w.peers->ear, host, sizeof(host));
	assert_non_null(strstr(host, ".localhost:"));
	devtools_body(host, body, sizeof(body));
	(void)snprintf(answer, sizeof(answer),
		       "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
		       "%zu\r\n\r\n%s",
		       strlen(body), body);
	n = strlen(answer) - strlen(body) + cut % strlen(body);
	assert_int_equal(stream_write(g.w.peers->ear.s, bytes_head(bytes_str(answer), n), &err), 0);
	RUN_UNTIL(g.w.l, heard(&g.w.client, "HTTP/1.1 200 "));
	assert_int_equal(stream_write(g.w.peers->ear.s, bytes_tail(bytes_str(answer), n), &err), 0);
	RUN_UNTIL(g.w.l, heard(&g.w.client, "\r\n0\r\n\r\n"));
	take_body(&g.w.client, got, sizeof(got));
	devtools_body(want_host, want, sizeof(want));
	assert_string_equal(got, want);
	world_close(&g.w);
}

static void devtools_leads_back(void **state)
{
	(void)state;
	for (size_t cut = 0; cut < 120; cut++)
		devtools_answers(
			"host: 127.0.0.1:4000\r\ne2b-sandbox-id: abc\r\ne2b-sandbox-port: %N\r\n"
			"e2b-traffic-access-token: %T\r\n",
			"127.0.0.1:4000", cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_may_enter),
		cmocka_unit_test(links_into_front_ends),
		cmocka_unit_test(cookies_are_renewed),
		cmocka_unit_test(the_exchange_leaves_no_token),
		cmocka_unit_test(nothing_of_it_reaches_the_guest),
		cmocka_unit_test(other_ports_stay_as_they_are),
		cmocka_unit_test(what_node_says_of_ports_is_checked),
		cmocka_unit_test(a_paused_one_is_told_of_the_pass),
		cmocka_unit_test(devtools_is_masked),
		cmocka_unit_test(devtools_leads_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
