/* test_egress_peek.c - what first bytes say of whom a guest means: whatever some server would read
 * as a request or a greeting must not be taken for a protocol without names. */
#include "tests/unit/check.h"

#include "egress/peek.h"

static enum peek_kind read_text(const char *text)
{
	struct peek said;

	return peek_read(bytes_str(text), &said);
}

static void a_request_says_its_host(void **state)
{
	struct peek said;

	(void)state;
	assert_int_equal(peek_read(BYTES_LIT("GET / HTTP/1.1\r\nHost: A.test:81\r\n\r\n"), &said),
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
	assert_int_equal(peek_read(BYTES_LIT("\0\0\0\x08\x04\xd2\x16\x2f"), &said), PEEK_OTHER);
	assert_int_equal(peek_read(BYTES_LIT("0032git-upload-pack /a.git\0host=a.test\0"), &said),
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
		assert_int_equal(peek_read(bytes_str(text), &said), PEEK_HTTP);
		assert_string_equal(said.name, "");
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
