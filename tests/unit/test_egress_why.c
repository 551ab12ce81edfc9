/* test_egress_why.c - a guest asks why it does not reach a host, and is told who would have to
 * change what, and nothing else. */
#include "tests/unit/egress_world.h"

#include "egress/names.h"
#include "egress/why.h"

#define CONF "/etc/hotcell/egress.conf"

static bool is_answered(struct world *w)
{
	struct pollfd answered = { .fd = w->guest, .events = POLLIN };

	return poll(&answered, 1, 0) > 0;
}

static size_t ask_as(struct world *w, struct bytes query, uint8_t out[static DNS_EDNS_MAX])
{
	AUTO(auto_close) int door = bound(SOCK_DGRAM, 0x7f000001, 0);
	struct sockaddr_in who;
	socklen_t len = sizeof(who);
	ssize_t n;

	if (w->guest < 0)
		w->guest = bound(SOCK_DGRAM, 0x7f000001, 0);
	assert_int_equal(getsockname(w->guest, (struct sockaddr *)&who, &len), 0);
	names_ask(&w->sandbox_egress, door, query, &who);
	assert_true(until(w, is_answered));
	n = recv(w->guest, out, DNS_EDNS_MAX, 0);
	assert_true(n > 0);
	return (size_t)n;
}

static struct dns_lines why(struct world *w, const char *host)
{
	AUTO(buf_done) struct buf query = BUF_MAX(DNS_QUERY_MAX);
	char name[DOMAIN_SIZE];
	uint8_t in[DNS_EDNS_MAX];
	struct dns_lines l;
	struct err err;
	size_t n;

	snprintf(name, sizeof(name), "%s" WHY_DOMAIN, host);
	assert_int_equal(dns_write_lines_query(7, name, &query, &err), 0);
	n = ask_as(w, buf_view(&query), in);
	assert_true(dns_read_lines((struct bytes){ in, n }, buf_view(&query), &l));
	return l;
}

static void listed(struct world *w, const char *allow)
{
	struct err err;

	w->ground.mode = POLICY_ALLOWLIST;
	assert_int_equal(policy_ground_allow(&w->ground, bytes_str(allow), &err), 0);
}

#define NO_INTERNET "{\"allowInternetAccess\":false}"
#define OWNER                                                                                  \
	" to allowOut, at create or by updateNetwork; its own rules (denyOut, or no internet " \
	"access) "                                                                             \
	"say no"
#define AGAIN ", then: systemctl restart hotcell-egress"

static void it_is_told_who_would_have_to_change_what(void **state)
{
	static const struct {
		const char *name, *rules, *says[4];
	} rows[] = {
		{ "good.com", "{}", { "yes", "operator: good.com" } },
		{ "_443.good.com", "{}", { "yes", "operator: good.com" } },
		{ "github.com",
		  "{}",
		  { "no", "operator: not listed",
		    "the operator adds github.com to allow in " CONF AGAIN } },
		{ "good.com",
		  NO_INTERNET,
		  { "no", "denyOut 0.0.0.0/0", "whoever made the sandbox adds good.com" OWNER } },
		{ "github.com",
		  NO_INTERNET,
		  { "no", "operator: not listed",
		    "the operator adds github.com to allow in " CONF AGAIN,
		    "whoever made the sandbox adds github.com" OWNER } },
		{ "8.8.8.8",
		  "{}",
		  { "no", "operator: not listed",
		    "the operator adds 8.8.8.8 to allow in " CONF AGAIN } },
		{ "_80.10.9.9.9",
		  "{}",
		  { "no", "the address is private",
		    "no rule allows such an address; the operator can publish one as a service: "
		    "services = NAME=ADDRESS:PORT in " CONF AGAIN } },
		{ "rebound.com",
		  "{}",
		  { "no", "the address is private",
		    "no rule allows such an address; the operator can publish one as a service: "
		    "services = NAME=ADDRESS:PORT in " CONF AGAIN } },
		{ "nobody.com", "{}", { "no", "the name has no address" } },
		{ "db.hotcell.internal",
		  "{}",
		  { "no", "no service of that name",
		    "the operator publishes it (services in " CONF
		    ") and lets the key of this sandbox use it: hotcell keys services KEY db" } },
		{ "none.hotcell.internal",
		  "{}",
		  { "no", "no service of that name",
		    "the operator publishes it (services in " CONF
		    ") and lets the key of this sandbox use it: hotcell keys services KEY none" } },
		{ "_8080.db.hotcell.internal",
		  "{\"services\":[\"db\"]}",
		  { "yes", "service db.hotcell.internal" } },
		{ "_22.db.hotcell.internal",
		  "{\"services\":[\"db\"]}",
		  { "no", "the service is at port 8080" } },
		{ "_99999.good.com",
		  "{}",
		  { "no", "neither a name of a host nor an address of IPv4" } },
		{ "1.2.3", "{}", { "no", "neither a name of a host nor an address of IPv4" } },
	};
	struct world *w = *state;

	listed(w, "good.com rebound.com nobody.com");
	FOR_ROWS(row, rows) {
		struct dns_lines l;

		rule(w, row->rules);
		l = why(w, row->name);
		for (size_t i = 0; i < COUNT(row->says) && row->says[i]; i++)
			assert_string_equal(i < l.n ? l.line[i] : "(nothing)", row->says[i]);
		assert_true(l.n == COUNT(row->says) || !row->says[l.n]);
	}
	/* it asked about them, it did not try them */
	assert_int_equal(w->sandbox_egress.counts.names_refused, 0);
	assert_int_equal(w->sandbox_egress.counts.names_allowed, 0);
	assert_int_equal(w->sandbox_egress.known.n, 0);
}

static void without_a_network_the_operator_is_told_to_open_one(void **state)
{
	struct world *w = *state;
	struct dns_lines l;

	w->ground.mode = POLICY_NONE;
	rule(w, "{}");
	l = why(w, "good.com");
	assert_string_equal(l.line[1], "operator: no network");
	assert_string_equal(l.line[2], "the operator sets network = allowlist and adds good.com to "
				       "allow in " CONF AGAIN);
}

/* Whoever resolves it upstream would learn that it was asked about. */
static void about_a_name_that_is_refused_nobody_is_asked(void **state)
{
	struct world *w = *state;

	listed(w, "good.com");
	rule(w, "{}");
	watch_close(&w->dns_ready);
	assert_string_equal(why(w, "evil.com").line[0], "no");
	assert_int_equal(recv(w->dns, (char[1]){ 0 }, 1, MSG_DONTWAIT), -1);
	assert_int_equal(watch_open(&w->dns_ready, w->loop, w->dns, WATCH_READ, on_question,
				    &(struct err){ 0 }),
			 0);
}

static void the_longest_name_is_told_in_a_line(void **state)
{
	struct world *w = *state;
	char host[DOMAIN_SIZE];
	struct dns_lines l;

	listed(w, "good.com");
	rule(w, NO_INTERNET);
	memset(host, 'a', sizeof(host));
	for (size_t i = 63; i < DOMAIN_MAX - strlen(WHY_DOMAIN); i += 64)
		host[i] = '.';
	host[DOMAIN_MAX - strlen(WHY_DOMAIN)] = '\0';
	l = why(w, host);
	assert_int_equal(l.n, 4);
	assert_string_equal(l.line[2], "the operator adds it to allow in " CONF AGAIN);
}

#define EDNS(name, type) \
	"\x12\x34\1\0\0\1\0\0\0\0\0\1" name "\0\0" type "\0\1\0\0\x29\4\xd0\0\0\0\0\0\0"

static void a_refused_name_does_not_exist_and_says_why(void **state)
{
	static const char text[] = "hotcell: the address is private; more: hotcell-why rebound.com";
	struct world *w = *state;
	uint8_t out[DNS_EDNS_MAX];
	size_t n;

	rule(w, "{}");
	n = ask_as(w, BYTES_LIT(EDNS("\7rebound\3com", "\1")), out);
	assert_int_equal(out[3] & 0xf, DNS_NXDOMAIN);
	assert_memory_equal(out + n - strlen(text), text, strlen(text));
	w->ground.mode = POLICY_NONE;
	n = ask_as(w, BYTES_LIT(EDNS("\4good\3com", "\1")), out);
	assert_int_equal(out[3] & 0xf, DNS_NXDOMAIN);
	assert_true(memmem(out, n, "operator: no network; more: hotcell-why good.com", 48));
	assert_int_equal(w->sandbox_egress.counts.names_refused, 1);
}

static void of_another_type_there_is_nothing(void **state)
{
	struct world *w = *state;
	uint8_t out[DNS_EDNS_MAX];

	rule(w, "{}");
	(void)ask_as(w, BYTES_LIT(EDNS("\4good\3com\3why\7hotcell\10internal", "\1")), out);
	assert_int_equal(out[3] & 0xf, DNS_NOERROR);
	assert_int_equal(out[7], 0);
	/* not a question about a host */
	(void)ask_as(w, BYTES_LIT(EDNS("\3why\7hotcell\10internal", "\20")), out);
	assert_int_equal(out[3] & 0xf, DNS_NXDOMAIN);
}

static void a_request_that_is_refused_is_told_what_to_change(void **state)
{
	static const char says[] = "hotcell: not allowed: operator: not listed\nhotcell: fix: the "
				   "operator adds evil.com to allow in " CONF AGAIN "\n";
	struct world *w = *state;
	char got[2048] = "";

	listed(w, "good.com");
	rule(w, "{}");
	go(w, EVIL, GET("evil.com"));
	assert_true(until(w, is_answered));
	assert_true(recv(w->guest, got, sizeof(got) - 1, 0) > 0);
	assert_non_null(strstr(got, "HTTP/1.1 403 Forbidden\r\n"));
	assert_string_equal(strstr(got, "\r\n\r\n") + 4, says);
	assert_true(leaves(w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_told_who_would_have_to_change_what),
		TEST(without_a_network_the_operator_is_told_to_open_one),
		TEST(about_a_name_that_is_refused_nobody_is_asked),
		TEST(the_longest_name_is_told_in_a_line),
		TEST(a_refused_name_does_not_exist_and_says_why),
		TEST(of_another_type_there_is_nothing),
		TEST(a_request_that_is_refused_is_told_what_to_change),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
