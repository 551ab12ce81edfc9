/* test_egress_pages.c - a sandbox that sees refusals as pages: which names lead to one, and what
 * its injector is handed to show it. */
#include "tests/unit/egress_world.h"

#include <errno.h>

#include "egress/front_state.h"
#include "egress/names.h"

#define PAGES      "\"refusalPages\":true"
#define DENIED     "{" PAGES ",\"network\":{\"allowOut\":[\"good.com\"],\"denyOut\":[\"0.0.0.0/0\"]}}"
#define WHY_DENIED "denyOut 0.0.0.0/0"

/* --- names ---------------------------------------------------------------------------------- */

#define QUESTION(name, type) "\x12\x34\1\0\0\1\0\0\0\0\0\0" name "\0\0" type "\0\1"

static bool is_answered(struct world *w)
{
	struct pollfd p = { .fd = w->guest, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Its code; the address it is told, 0: none. */
static int ask(struct world *w, struct bytes query, uint32_t *ret)
{
	AUTO(auto_close) int door = bound(SOCK_DGRAM, 0x7f000001, 0);
	uint8_t out[DNS_RESOLVED_MAX];
	struct sockaddr_in who;
	socklen_t len = sizeof(who);
	ssize_t n;

	if (w->guest < 0)
		w->guest = bound(SOCK_DGRAM, 0x7f000001, 0);
	assert_int_equal(getsockname(w->guest, (struct sockaddr *)&who, &len), 0);
	names_ask(&w->sandbox_egress, door, query, &who);
	assert_true(until(w, is_answered));
	n = recv(w->guest, out, sizeof(out), 0);
	assert_true(n > 12);
	*ret = 0;
	if (out[7] == 1) {
		memcpy(ret, out + n - 4, 4);
		*ret = ntohl(*ret);
		assert_int_equal(out[n - 7], FAKE_IP_REFUSED_TTL_S);
	}
	return out[3] & 0xf;
}

static void names_that_lead_to_a_page(void **state)
{
	static const struct {
		const char *name;
		enum policy_mode mode;
		const char *rules;
		struct bytes query;
		int code;
		uint32_t ip;
	} rows[] = {
		{ "denied", POLICY_OPEN, DENIED, BYTES_LIT(QUESTION("\4evil\3com", "\1")),
		  DNS_NOERROR, FAKE_IP_REFUSED },
		{ "of another type", POLICY_OPEN, DENIED, BYTES_LIT(QUESTION("\4evil\3com", "\34")),
		  DNS_NOERROR, 0 },
		{ "not listed", POLICY_ALLOWLIST, "{" PAGES "}",
		  BYTES_LIT(QUESTION("\4evil\3com", "\1")), DNS_NOERROR, FAKE_IP_REFUSED },
		{ "no network", POLICY_NONE, "{" PAGES "}",
		  BYTES_LIT(QUESTION("\4good\3com", "\1")), DNS_NOERROR, FAKE_IP_REFUSED },
		{ "it leads inside", POLICY_OPEN, "{" PAGES "}",
		  BYTES_LIT(QUESTION("\7rebound\3com", "\1")), DNS_NOERROR, FAKE_IP_REFUSED },
		{ "of one label", POLICY_OPEN, DENIED, BYTES_LIT(QUESTION("\4evil", "\1")),
		  DNS_NXDOMAIN, 0 },
		{ "without pages", POLICY_ALLOWLIST, "{\"refusalPages\":false}",
		  BYTES_LIT(QUESTION("\4evil\3com", "\1")), DNS_NXDOMAIN, 0 },
		{ "nobody said so", POLICY_ALLOWLIST, "{}",
		  BYTES_LIT(QUESTION("\4evil\3com", "\1")), DNS_NXDOMAIN, 0 },
	};
	struct world *w = *state;
	uint32_t ip;

	FOR_ROWS(row, rows) {
		w->ground.mode = row->mode;
		rule(w, row->rules);
		assert_int_equal(ask(w, row->query, &ip), row->code);
		assert_int_equal(ip, row->ip);
	}
	assert_int_equal(w->sandbox_egress.counts.names_refused, 7); /* and one that was resolved */
	assert_int_equal(w->sandbox_egress.known.n, 0);
	w->sandbox_egress.ruled = false;
	assert_int_equal(ask(w, rows[0].query, &ip), DNS_NXDOMAIN);
	w->sandbox_egress.ruled = true;
}

static void what_is_no_choice_is_an_error(void **state)
{
	struct world *w = *state;
	struct err err;

	assert_int_equal(sandbox_egress_rule(&w->sandbox_egress,
					     BYTES_LIT("{\"refusalPages\":\"yes\"}"), &err),
			 -1);
}

/* --- TLS ------------------------------------------------------------------------------------ */

/* A greeting to evil.com. */
static const char hello[] = "\x16\x03\x01\x00\x40\x01\x00\x00\x3c\x03\x03"
			    "0123456789abcdef0123456789abcdef"
			    "\x00\x00\x02\x13\x01\x01\x00\x00\x11\x00\x00\x00\x0d\x00\x0b\x00\x00"
			    "\x08"
			    "evil.com";

static void greet(struct world *w)
{
	go(w, FAKE_IP_REFUSED, NULL);
	assert_int_equal(send(w->guest, hello, sizeof(hello) - 1, MSG_NOSIGNAL), sizeof(hello) - 1);
	assert_true(until(w, nobody_left));
}

static int with_injector(struct world *w)
{
	int pair[2];
	struct err err;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(sandbox_egress_injector(&w->sandbox_egress, pair[1], &err), 0);
	return pair[0];
}

static bool is_cut(const struct world *w)
{
	char c;

	return recv(w->guest, &c, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

struct page {
	struct injector_hand hand;
	struct injector_refusal refusal;
	char first[sizeof(hello) - 1];
};

/* The guest's end, to be closed. */
static int take_page(int worker, struct page *ret)
{
	int fds[INJECTOR_HAND_FDS] = { -1, -1 };
	size_t len = 0, n = 0;
	struct err err;

	if (fdmsg_recv_some(worker, ret, offsetof(struct page, first), sizeof(*ret), &len, fds,
			    INJECTOR_HAND_FDS, &n, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(n, 1);
	return fds[0];
}

static void over_tls_it_is_handed_to_its_injector(void **state)
{
	struct world *w = *state;
	struct injector_over over = { 0 };
	int worker = with_injector(w), guest;
	struct page page;

	rule(w, DENIED);
	greet(w);
	assert_int_equal(w->sandbox_egress.n_handed, 1);
	guest = take_page(worker, &page);
	assert_int_equal(page.hand.version, INJECTOR_REFUSED_VERSION);
	assert_int_equal(page.hand.tls, 1);
	assert_int_equal(page.hand.first_len, sizeof(page.first));
	assert_memory_equal(page.first, hello, sizeof(page.first));
	assert_string_equal(page.hand.name, "evil.com");
	assert_string_equal(page.refusal.why, WHY_DENIED);
	assert_non_null(strstr(page.refusal.fix, "adds evil.com to allowOut"));
	assert_int_equal(write(guest, "told", 4), 4);
	must_arrive(w, w->guest, "told");
	assert_int_equal(w->sandbox_egress.counts.tcp_refused, 1);
	assert_int_equal(w->sandbox_egress.counts.tcp_failed, 0);
	over.tag = page.hand.tag;
	assert_int_equal(write(worker, &over, sizeof(over)), sizeof(over));
	while (w->sandbox_egress.n_handed > 0)
		(void)loop_turn(w->loop);
	assert_false(came(&w->evil));
	close(guest);
	close(worker);
}

static void without_one_of_the_two_it_is_cut(void **state)
{
	struct world *w = *state;
	int worker;

	rule(w, DENIED);
	greet(w);
	assert_true(is_cut(w));
	worker = with_injector(w);
	rule(w, ONLY_GOOD);
	greet(w);
	assert_true(is_cut(w));
	assert_int_equal(recv(worker, &(struct page){ 0 }, 1, MSG_DONTWAIT), -1);
	rule(w, DENIED);
	close(worker);
	greet(w);
	assert_true(is_cut(w));
}

static void so_many_in_a_second(void **state)
{
	enum { MORE = 10 };
	struct world *w = *state;
	int worker = with_injector(w), shown = 0, cut = 0;

	w->house.limits.connections = 100;
	rule(w, DENIED);
	for (int i = 0; i < SANDBOX_EGRESS_PAGES_PER_S + MORE; i++) {
		w->sandbox_egress.pages_since_ms = loop_now_ms(w->loop); /* no second ends */
		greet(w);
		*(is_cut(w) ? &cut : &shown) += 1;
	}
	assert_int_equal(shown, SANDBOX_EGRESS_PAGES_PER_S);
	assert_int_equal(cut, MORE);
	w->sandbox_egress.pages_since_ms = loop_now_ms(w->loop) - 1000;
	greet(w);
	assert_false(is_cut(w));
	close(worker);
	sandbox_egress_forget(&w->sandbox_egress); /* the next one begins anew */
	assert_int_equal(w->sandbox_egress.n_pages, 0);
}

static bool is_silent(struct world *w)
{
	return !w->sandbox_egress.fronts || w->sandbox_egress.fronts->silent;
}

/* A guest may need more than a moment to make a greeting. */
static void there_a_greeting_is_waited_for(void **state)
{
	struct world *w = *state;
	struct timer patience;

	rule(w, DENIED);
	go(w, FAKE_IP_REFUSED, NULL);
	timer_init(&patience, w->loop, patience_over);
	timer_start(&patience, 2 * FRONT_QUIET_MS);
	while (patience.active && !is_silent(w))
		(void)loop_turn(w->loop);
	assert_false(is_silent(w));
	timer_stop(&patience);
	assert_int_equal(send(w->guest, GET("evil.com"), strlen(GET("evil.com")), MSG_NOSIGNAL),
			 strlen(GET("evil.com")));
	must_arrive(w, w->guest, "HTTP/1.1 403 Forbidden\r\n");
	rule(w, ONLY_GOOD);
	go(w, FAKE_IP_REFUSED, NULL);
	assert_true(until(w, is_silent)); /* as anywhere */
}

static void what_says_no_name_there_is_told_of_it(void **state)
{
	struct world *w = *state;
	AUTO(buf_done) struct buf told = BUF_MAX(AUDIT_TEXT_MAX);
	struct err err;

	rule(w, DENIED);
	go(w, FAKE_IP_REFUSED, "\1\2\3");
	assert_true(until(w, nobody_left));
	assert_int_equal(audit_tell(&w->sandbox_egress.audit, &told, &err), 0);
	assert_non_null(memmem(told.ptr, told.len, "it stands for a name that is refused", 36));
}

/* Whoever remembers the address reaches the name, wherever that is now. */
static void a_name_that_is_allowed_now_is_reached(void **state)
{
	struct world *w = *state;

	rule(w, DENIED);
	go(w, FAKE_IP_REFUSED, GET("good.com"));
	assert_true(until(w, at_good));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_that_lead_to_a_page),
		TEST(what_is_no_choice_is_an_error),
		TEST(over_tls_it_is_handed_to_its_injector),
		TEST(without_one_of_the_two_it_is_cut),
		TEST(so_many_in_a_second),
		TEST(there_a_greeting_is_waited_for),
		TEST(what_says_no_name_there_is_told_of_it),
		TEST(a_name_that_is_allowed_now_is_reached),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
