/* test_wire_tls_hello.c - greetings: whole, in pieces, in several records, and broken ones. */
#include "tests/unit/check.h"

#include "wire/tls_hello.h"

struct hello {
	uint8_t bytes[4096];
	size_t len;
};

static void put(struct hello *h, size_t octets, size_t value)
{
	while (octets-- > 0)
		h->bytes[h->len++] = (uint8_t)(value >> (8 * octets));
}

static void put_text(struct hello *h, const char *text)
{
	memcpy(h->bytes + h->len, text, strlen(text));
	h->len += strlen(text);
}

static void set(struct hello *h, size_t at, size_t octets)
{
	size_t value = h->len - at - octets, end = h->len;

	h->len = at;
	put(h, octets, value);
	h->len = end;
}

static void put_name(struct hello *h, const char *name)
{
	put(h, 2, 0); /* server_name */
	put(h, 2, strlen(name) + 5);
	put(h, 2, strlen(name) + 3);
	put(h, 1, 0);
	put(h, 2, strlen(name));
	put_text(h, name);
}

/* A greeting to up to two names; `more` adds extensions. */
static struct hello greet(const char *name, const char *second, void (*more)(struct hello *))
{
	struct hello h = { .len = 0 };
	size_t extensions;

	put(&h, 1, 22);
	put(&h, 2, 0x0301);
	put(&h, 2, 0);
	put(&h, 1, 1);
	put(&h, 3, 0);
	put(&h, 2, 0x0303);
	for (int i = 0; i < 32; i++)
		put(&h, 1, (size_t)i);
	put(&h, 1, 0); /* session */
	put(&h, 2, 2); /* ciphers */
	put(&h, 2, 0x1301);
	put(&h, 1, 1); /* compressions */
	put(&h, 1, 0);
	extensions = h.len;
	put(&h, 2, 0);
	if (name)
		put_name(&h, name);
	if (second)
		put_name(&h, second);
	if (more)
		more(&h);
	set(&h, extensions, 2);
	set(&h, 6, 3);
	set(&h, 3, 2);
	return h;
}

static struct bytes all(const struct hello *h)
{
	return (struct bytes){ h->bytes, h->len };
}

static void with_ech(struct hello *h)
{
	put(h, 2, 0xfe0d);
	put(h, 2, 3);
	put_text(h, "abc");
}

static void with_h2(struct hello *h)
{
	put(h, 2, 16);
	put(h, 2, 14);
	put(h, 2, 12);
	put(h, 1, 2);
	put_text(h, "h2");
	put(h, 1, 8);
	put_text(h, "http/1.1");
}

static void a_name_is_read_when_it_is_whole(void **state)
{
	struct hello h = greet("API.Example.com", NULL, with_h2);
	struct tls_hello got;

	(void)state;
	for (size_t n = 0; n < h.len; n++)
		assert_int_equal(tls_hello_read(bytes_head(all(&h), n), &got), TLS_HELLO_MORE);
	assert_int_equal(tls_hello_read(all(&h), &got), TLS_HELLO_WHOLE);
	assert_string_equal(got.name, "api.example.com");
	assert_true(got.http2);
	assert_false(got.encrypted);
}

static void in_records_of_one_byte(void **state)
{
	struct hello h = greet("example.com", NULL, with_ech), split = { .len = 0 };
	struct tls_hello got;

	(void)state;
	for (size_t i = 5; i < h.len; i++) {
		put(&split, 1, 22);
		put(&split, 2, 0x0303);
		put(&split, 2, 1);
		put(&split, 1, h.bytes[i]);
	}
	for (size_t n = 0; n < split.len; n++)
		assert_int_equal(tls_hello_read(bytes_head(all(&split), n), &got), TLS_HELLO_MORE);
	assert_int_equal(tls_hello_read(all(&split), &got), TLS_HELLO_WHOLE);
	assert_string_equal(got.name, "example.com");
	assert_true(got.encrypted);
}

static void early_data_may_follow(void **state)
{
	struct hello h = greet("example.com", NULL, NULL);
	struct tls_hello got;

	(void)state;
	put(&h, 1, 20);
	put(&h, 2, 0x0303);
	put(&h, 2, 1);
	put(&h, 1, 1);
	assert_int_equal(tls_hello_read(all(&h), &got), TLS_HELLO_WHOLE);
}

static void none_is_none(void **state)
{
	struct hello h = greet(NULL, NULL, NULL);
	struct tls_hello got;

	(void)state;
	assert_int_equal(tls_hello_read(all(&h), &got), TLS_HELLO_WHOLE);
	assert_string_equal(got.name, "");
}

static void two_names_or_an_address_are_broken(void **state)
{
	struct hello two = greet("a.com", "b.com", NULL), ip = greet("10.0.0.1", NULL, NULL);
	struct hello nul = greet("a.com", NULL, NULL);
	struct tls_hello got;

	(void)state;
	nul.bytes[nul.len - 4] = '\0';
	assert_int_equal(tls_hello_read(all(&two), &got), TLS_HELLO_BROKEN);
	assert_int_equal(tls_hello_read(all(&ip), &got), TLS_HELLO_BROKEN);
	assert_int_equal(tls_hello_read(all(&nul), &got), TLS_HELLO_BROKEN);
}

static void something_else_is_no_greeting(void **state)
{
	struct tls_hello got;

	(void)state;
	assert_int_equal(tls_hello_read(BYTES_LIT("G"), &got), TLS_HELLO_OTHER);
	assert_int_equal(tls_hello_read(BYTES_LIT("\x80\x2e\x01"), &got), TLS_HELLO_OTHER);
	assert_int_equal(tls_hello_read(BYTES_LIT("\x16G"), &got), TLS_HELLO_BROKEN);
	assert_int_equal(tls_hello_read(BYTES_LIT("\x16\x03\x01\x00\x00"), &got), TLS_HELLO_BROKEN);
	assert_int_equal(tls_hello_read(BYTES_LIT("\x16\x03\x01\x00\x04\x02"), &got),
			 TLS_HELLO_BROKEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_read_when_it_is_whole),
		cmocka_unit_test(in_records_of_one_byte),
		cmocka_unit_test(early_data_may_follow),
		cmocka_unit_test(none_is_none),
		cmocka_unit_test(two_names_or_an_address_are_broken),
		cmocka_unit_test(something_else_is_no_greeting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
