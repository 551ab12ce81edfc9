/* test_egress_peek.c - what first bytes say of whom a guest means: whatever some server would read
 * as a request or a greeting must not be taken for a protocol without names. */
#include "tests/unit/check.h"

#include <time.h>

#include "egress/peek.h"

static enum peek_kind read_bytes(struct bytes in, struct peek *said)
{
	struct peek_place place = { 0 };

	return peek_read(in, &place, said);
}

static enum peek_kind read_text(const char *text)
{
	struct peek said;

	return read_bytes(bytes_str(text), &said);
}

static void a_request_says_its_host(void **state)
{
	struct peek said;

	(void)state;
	assert_int_equal(read_bytes(BYTES_LIT("GET / HTTP/1.1\r\nHost: A.test:81\r\n\r\n"), &said),
			 PEEK_HTTP);
	assert_string_equal(said.name, "a.test");
	assert_int_equal(said.port, 81);
	assert_int_equal(read_text("GET / HTTP/1.1\r\nHost: a.test\r\n"), PEEK_MORE);
	assert_int_equal(read_text("GET /"), PEEK_MORE);
}

static void what_only_lenient_servers_read_is_no_other_protocol(void **state)
{
	static const char *const all[] = {
		"GET / HTTP/1.1\nHost: a.test\n\n",
		"GET  /  HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"GET\t/\tHTTP/1.1\r\nHost: a.test\r\n\r\n",
		"GET / http/1.1\r\nHost: a.test\r\n\r\n",
		"GET / HTTP/1.1 \r\nHost: a.test\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"\n\n\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		" GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"\tGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"\r \nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"GET\v/\fHTTP/1.1\r\nHost: a.test\r\n\r\n",
		"GET\x1c/\xa0HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJ / HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"GET http://a.test/\r\n\r\n",
		"GET https://a.test/ \n\n",
		"GET / RTSP/1.0\r\nHost: a.test\r\n\r\n",
		"GET /\1", /* and the rest of it later */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++)
		assert_int_equal(read_text(all[i]), PEEK_BROKEN);
	assert_int_equal(read_text("\r\n"), PEEK_MORE);
	assert_int_equal(read_text("\r\nGET"), PEEK_MORE);
	assert_int_equal(read_text("G3T! / HTTP/1.1\r\nHost: a.test\r\n\r\n"), PEEK_HTTP);
}

static void a_record_before_a_greeting_is_none_either(void **state)
{
	(void)state;
	assert_int_equal(read_text("\x15"), PEEK_MORE);
	assert_int_equal(read_text("\x15\x03\x01"), PEEK_BROKEN);
	assert_int_equal(read_text("\x14\x03\x03"), PEEK_BROKEN);
	assert_int_equal(read_text("\x15\x05"), PEEK_OTHER);
}

static void other_protocols_are_told_at_once(void **state)
{
	static const char *const all[] = {
		"SSH-2.0-OpenSSH_9.2\r\n",
		"EHLO me\r\n",
		"QUIT\r\n",
		"*1\r\n$4\r\nPING\r\n",
		"\1\2\3",
		"HELO x\r\n",
		"\r\n\1\2\r\n",
		"USER me\r\n",
		"DESCRIBE rtsp://a.test/x RTSP/1.0\r\n",
		"\x30\x20\x02\x01\x01\x60\x1b", /* LDAP, with a length that is a blank */
		"AMQP\1\1\0\x0a",
	};
	struct peek said;

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++)
		assert_int_equal(read_text(all[i]), PEEK_OTHER);
	assert_int_equal(read_bytes(BYTES_LIT("\0\0\0\x08\x04\xd2\x16\x2f"), &said), PEEK_OTHER);
	assert_int_equal(read_bytes(BYTES_LIT("0032git-upload-pack /a.git\0host=a.test\0"), &said),
			 PEEK_OTHER);
}

/* A method has no limit with every server: what follows must be seen. */
static void a_long_method_is_waited_for(void **state)
{
	(void)state;
	assert_int_equal(read_text("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJ"), PEEK_MORE);
	assert_int_equal(read_text("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJ /"), PEEK_MORE);
}

/* Where the name that is said is none, the address must not decide instead of it: servers find a
 * site by less. */
static void a_host_that_is_no_name_is_an_address_or_nothing(void **state)
{
	static const char *const none[] = {
		"-x.evil.test", "x-.evil.test",   "x~.evil.test", "a..evil.test", ".evil.test",
		"evil.test..",  "x.evil.test.80", "2130706433",   "0177.0.0.1",   "1.2.3",
	};
	static const char *const addresses[] = { "1.2.3.4", "1.2.3.4:80", "[2001:db8::1]:80" };
	char text[128];
	struct peek said;

	(void)state;
	for (size_t i = 0; i < COUNT(none); i++) {
		snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", none[i]);
		if (read_text(text) != PEEK_BROKEN)
			fail_msg("%s", none[i]);
	}
	for (size_t i = 0; i < COUNT(addresses); i++) {
		snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", addresses[i]);
		assert_int_equal(read_bytes(bytes_str(text), &said), PEEK_HTTP);
		assert_string_equal(said.name, "");
	}
}

/* --- what it costs --------------------------------------------------------------------------- */

enum { LONG = 32000, ROUNDS = 5 };

static void put(struct buf *b, struct bytes add)
{
	struct err err;

	assert_int_equal(buf_add(b, add, &err), 0);
}

static void short_lines(struct buf *b, size_t n)
{
	put(b, BYTES_LIT("GET / HTTP/1.1\r\nHost: a.test\r\n"));
	while (b->len + 4 < n)
		put(b, BYTES_LIT("a:\r\n"));
}

static void one_word(struct buf *b, size_t n)
{
	while (b->len < n / 4) /* a first line may not be longer */
		put(b, BYTES_LIT("A"));
}

static void one_target(struct buf *b, size_t n)
{
	put(b, BYTES_LIT("GET "));
	while (b->len < n / 4)
		put(b, BYTES_LIT("/"));
}

static void tiny_records(struct buf *b, size_t n)
{
	static const uint8_t begin[] = { 1, 0, 0x20, 0 };

	for (size_t i = 0; b->len + 6 < n / 2; i++) {
		put(b, BYTES_LIT("\x16\x03\x01\0\1"));
		put(b, (struct bytes){ begin + i % COUNT(begin), 1 });
	}
}

static void one_record(struct buf *b, size_t n)
{
	put(b, BYTES_LIT("\x16\x03\x01\x3f\xff\1\0\x3f\xfb"));
	while (b->len < n / 2)
		put(b, BYTES_LIT("x"));
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Byte by byte; the least of some rounds, for what else the machine does counts, too. */
static uint64_t cost(void (*make)(struct buf *b, size_t n), size_t n)
{
	AUTO(buf_done) struct buf b = BUF_MAX(LONG);
	uint64_t best = UINT64_MAX;
	struct peek said;

	make(&b, n);
	for (int i = 0; i < ROUNDS; i++) {
		struct peek_place place = { 0 };
		uint64_t begin = cpu_ns(), took;

		for (size_t k = 1; k <= b.len; k++)
			assert_int_equal(peek_read(bytes_head(buf_view(&b), k), &place, &said),
					 PEEK_MORE);
		took = cpu_ns() - begin;
		best = took < best ? took : best;
	}
	return best;
}

static void eight_times_as_long_costs_eight_times_as_much(void **state)
{
	static const struct {
		const char *name;
		void (*make)(struct buf *b, size_t n);
	} rows[] = {
		{ "short lines", short_lines },     { "one word", one_word },
		{ "one target", one_target },       { "tiny records", tiny_records },
		{ "one large record", one_record },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		uint64_t few = cost(row->make, LONG / 8), many = cost(row->make, LONG);

		print_message("    %.1f times\n", (double)many / (double)few);
		assert_true(many <
			    few * 8 * 3); /* it would be 64 times, were all looked at again */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_says_its_host),
		cmocka_unit_test(what_only_lenient_servers_read_is_no_other_protocol),
		cmocka_unit_test(a_record_before_a_greeting_is_none_either),
		cmocka_unit_test(a_long_method_is_waited_for),
		cmocka_unit_test(a_host_that_is_no_name_is_an_address_or_nothing),
		cmocka_unit_test(other_protocols_are_told_at_once),
		cmocka_unit_test(eight_times_as_long_costs_eight_times_as_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
