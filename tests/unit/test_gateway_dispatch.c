/* test_gateway_dispatch.c - which plane a request is for. */
#include "tests/unit/check.h"

#include "gateway/dispatch.h"

#define LONG63 "012345678901234567890123456789012345678901234567890123456789abc"
#define BOTH   "E2b-Sandbox-Id: abc\r\nE2B-SANDBOX-PORT: 49983\r\n"

static const struct {
	const char *name, *target, *fields;
	enum plane plane;
	const char *id; /* or the message */
	unsigned int port;
} rows[] = {
	{ "api", "/sandboxes", "host: 127.0.0.1:3000\r\n", PLANE_API, NULL, 0 },
	{ "api by name", "/", "host: api.my-own.test\r\n", PLANE_API, NULL, 0 },
	{ "no host at all", "/", "", PLANE_API, NULL, 0 },
	{ "ipv6", "/", "host: [::1]:3000\r\n", PLANE_API, NULL, 0 },
	{ "headers", "/x", "host: localhost\r\n" BOTH, PLANE_SANDBOX, "abc", 49983 },
	{ "headers, any host", "/x", "host: gw.test\r\n" BOTH, PLANE_SANDBOX, "abc", 49983 },
	{ "no port", "/", "host: a\r\ne2b-sandbox-id: abc\r\n", PLANE_BAD, "missing header", 0 },
	{ "no id", "/", "host: a\r\ne2b-sandbox-port: 1\r\n", PLANE_BAD, "missing header", 0 },
	{ "two ids", "/", "host: a\r\n" BOTH "e2b-sandbox-id: abc\r\n", PLANE_BAD,
	  "Invalid sandbox ID", 0 },
	{ "two ports", "/", "host: a\r\n" BOTH "e2b-sandbox-port: 49983\r\n", PLANE_BAD,
	  "Invalid sandbox port", 0 },
	{ "empty id", "/", "host: a\r\ne2b-sandbox-id:\r\ne2b-sandbox-port: 1\r\n", PLANE_BAD,
	  "Invalid sandbox ID", 0 },
	{ "id of capitals", "/", "host: a\r\ne2b-sandbox-id: ABC\r\ne2b-sandbox-port: 1\r\n",
	  PLANE_BAD, "Invalid sandbox ID", 0 },
	{ "id with a slash", "/", "host: a\r\ne2b-sandbox-id: a/b\r\ne2b-sandbox-port: 1\r\n",
	  PLANE_BAD, "Invalid sandbox ID", 0 },
	{ "longest id", "/", "host: a\r\ne2b-sandbox-id: " LONG63 "\r\ne2b-sandbox-port: 1\r\n",
	  PLANE_SANDBOX, LONG63, 1 },
	{ "too long", "/", "host: a\r\ne2b-sandbox-id: " LONG63 "d\r\ne2b-sandbox-port: 1\r\n",
	  PLANE_BAD, "Invalid sandbox ID", 0 },
	{ "port 0", "/", "host: a\r\ne2b-sandbox-id: abc\r\ne2b-sandbox-port: 0\r\n", PLANE_BAD,
	  "Invalid sandbox port", 0 },
	{ "port 65535", "/", "host: a\r\ne2b-sandbox-id: a\r\ne2b-sandbox-port: 65535\r\n",
	  PLANE_SANDBOX, "a", 65535 },
	{ "port 65536", "/", "host: a\r\ne2b-sandbox-id: a\r\ne2b-sandbox-port: 65536\r\n",
	  PLANE_BAD, "Invalid sandbox port", 0 },
	{ "port -1", "/", "host: a\r\ne2b-sandbox-id: a\r\ne2b-sandbox-port: -1\r\n", PLANE_BAD,
	  "Invalid sandbox port", 0 },
	{ "host", "/", "host: 3000-abc.sbx.test\r\n", PLANE_SANDBOX, "abc", 3000 },
	{ "host and port", "/", "host: 3000-abc.sbx.test:8080\r\n", PLANE_SANDBOX, "abc", 3000 },
	{ "host in capitals", "/", "host: 3000-ABC.Sbx.Test\r\n", PLANE_SANDBOX, "abc", 3000 },
	{ "host with a client", "/", "host: 3000-abc-def0.sbx.test\r\n", PLANE_SANDBOX, "abc",
	  3000 },
	{ "host before headers", "/", "host: 3000-x.sbx.test\r\n" BOTH, PLANE_SANDBOX, "x", 3000 },
	{ "headers before a bad host", "/", "host: 3000-x_y.test\r\n" BOTH, PLANE_SANDBOX, "abc",
	  49983 },
	{ "host without a dot", "/", "host: 3000-abc\r\n", PLANE_BAD, "Invalid host", 0 },
	{ "host, odd id", "/", "host: 3000-a_c.test\r\n", PLANE_BAD, "Invalid sandbox ID", 0 },
	{ "host, no id", "/", "host: 3000-.test\r\n", PLANE_BAD, "Invalid sandbox ID", 0 },
	{ "host, long id", "/", "host: 3000-" LONG63 "d.test\r\n", PLANE_BAD, "Invalid sandbox ID",
	  0 },
	{ "host, port 99999", "/", "host: 99999-abc.test\r\n", PLANE_BAD, "Invalid sandbox port",
	  0 },
	{ "a name with a dash", "/", "host: my-gateway.test\r\n", PLANE_API, NULL, 0 },
	{ "the domain itself", "/", "host: 1-box.test:80\r\n", PLANE_API, NULL, 0 },
	{ "below the domain", "/", "host: 5-abc.1-box.test:80\r\n", PLANE_SANDBOX, "abc", 5 },
	{ "signed", "/files?path=a&signature=v1_x", "host: a\r\n", PLANE_BAD, "Invalid host", 0 },
	{ "signed, by address", "/files?signature=v1_x", "host: 127.0.0.1:3000\r\n", PLANE_SIGNED,
	  NULL, 0 },
	{ "signed, by address, IPv6", "/files?signature=v1_x", "host: [::1]\r\n", PLANE_SIGNED,
	  NULL, 0 },
	{ "signed, by header", "/files?signature=v1_x", "host: a\r\n" BOTH, PLANE_SANDBOX, "abc",
	  49983 },
	{ "signed, by host", "/files?signature=v1_x", "host: 49983-abc.t\r\n", PLANE_SANDBOX, "abc",
	  49983 },
	{ "not signed", "/files?path=a", "host: a\r\n", PLANE_API, NULL, 0 },
	{ "signed elsewhere", "/filesystem?signature=a", "host: a\r\n", PLANE_API, NULL, 0 },
	{ "no target", "*", "host: a\r\n", PLANE_API, NULL, 0 },
};

static void each_request_has_its_plane(void **state)
{
	(void)state;
	FOR_ROWS(row, rows) {
		bool is_star = row->target[0] == '*', is_old = row->fields[0] == '\0';
		struct http1_head head;
		struct dispatch d;
		struct err err = { 0 };
		char text[1024];

		(void)snprintf(text, sizeof(text), "%s %s HTTP/1.%d\r\n%s\r\n",
			       is_star ? "OPTIONS" : "GET", row->target, is_old ? 0 : 1,
			       row->fields);
		if (http1_parse_request(bytes_str(text), &head, &err) < 0)
			fail_msg("%s", err.msg);
		dispatch_find(&head, "1-box.test", &d);
		assert_int_equal(d.plane, row->plane);
		if (d.plane == PLANE_SANDBOX) {
			assert_string_equal(d.id, row->id);
			assert_int_equal(d.port, row->port);
		} else if (d.plane == PLANE_BAD) {
			assert_string_equal(d.message, row->id);
		}
	}
}

/* E2B_DOMAIN may have a port, and `domain` with it; what clients send as Host has the port that
 * they used: that one, the one of a proxy, or none. */
static void a_port_of_the_domain_is_no_part_of_its_name(void **state)
{
	static const struct {
		const char *name, *domain, *host;
		enum plane plane;
		unsigned int port;
	} hosts[] = {
		{ "api", "hotcell.localhost:8443", "api.hotcell.localhost:8443", PLANE_API, 0 },
		{ "a sandbox", "hotcell.localhost:8443", "3000-abc.hotcell.localhost:8443",
		  PLANE_SANDBOX, 3000 },
		{ "capitals", "hotcell.localhost:8443", "3000-ABC.HotCell.Localhost:8443",
		  PLANE_SANDBOX, 3000 },
		{ "without a port", "hotcell.localhost:8443", "49983-abc.hotcell.localhost",
		  PLANE_SANDBOX, 49983 },
		{ "another port", "hotcell.localhost:8443", "49983-abc.hotcell.localhost:443",
		  PLANE_SANDBOX, 49983 },
		{ "itself", "1-box.test:8443", "1-box.test:8443", PLANE_API, 0 },
		{ "itself, without a port", "1-box.test:8443", "1-box.test", PLANE_API, 0 },
		{ "itself, another port", "1-box.test:8443", "1-Box.test:443", PLANE_API, 0 },
		{ "itself, with a dot", "1-box.test:8443", "1-box.test.:8443", PLANE_API, 0 },
		{ "itself, set without", "1-box.test", "1-box.test:443", PLANE_API, 0 },
		{ "a sandbox, with a dot", "hotcell.localhost", "1-abc.hotcell.localhost.:443",
		  PLANE_SANDBOX, 1 },
	};

	(void)state;
	FOR_ROWS(row, hosts) {
		struct http1_head head;
		struct dispatch d;
		struct err err = { 0 };
		char text[1024];

		(void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nhost: %s\r\n\r\n", row->host);
		if (http1_parse_request(bytes_str(text), &head, &err) < 0)
			fail_msg("%s", err.msg);
		dispatch_find(&head, row->domain, &d);
		assert_int_equal(d.plane, row->plane);
		if (d.plane == PLANE_SANDBOX) {
			assert_string_equal(d.id, "abc");
			assert_int_equal(d.port, row->port);
		}
	}
}

/* Where host names lead to no sandbox, a signature has to do. */
static void signed_urls_without_a_domain(void **state)
{
	static const struct {
		const char *name, *target, *fields;
		enum plane plane;
	} signed_rows[] = {
		{ "signed", "/files?path=a&signature=v1_x", "", PLANE_SIGNED },
		{ "by header", "/files?signature=v1_x", BOTH, PLANE_SANDBOX },
		{ "half a header", "/files?signature=v1_x", "e2b-sandbox-id: a\r\n", PLANE_BAD },
		{ "not signed", "/files?path=a", "", PLANE_API },
		{ "elsewhere", "/filesystem?signature=a", "", PLANE_API },
	};

	(void)state;
	FOR_ROWS(row, signed_rows) {
		struct http1_head head;
		struct dispatch d;
		struct err err = { 0 };
		char text[1024];

		(void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nhost: a\r\n%s\r\n",
			       row->target, row->fields);
		if (http1_parse_request(bytes_str(text), &head, &err) < 0)
			fail_msg("%s", err.msg);
		dispatch_find(&head, "", &d);
		assert_int_equal(d.plane, row->plane);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_request_has_its_plane),
		cmocka_unit_test(a_port_of_the_domain_is_no_part_of_its_name),
		cmocka_unit_test(signed_urls_without_a_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
