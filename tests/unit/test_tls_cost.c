/* test_tls_cost.c - what a client offers: nothing whose price the other side may set. */
#include "tests/unit/test_net_layers.h"

#include <sys/socket.h>

#include "tls/tls_stream.h"

enum {
	HELLO_MAX = 4096,
	RECORD_HEAD = 5,
	BEFORE_SESSION = 4 + 2 + 32, /* handshake, version, random */
	GROUPS = 10,                 /* the extension */
	FFDHE_FIRST = 0x100,         /* of RFC 7919: exponents in fields of up to 8192 bits */
	FFDHE_LAST = 0x1ff,
};

/* All of TLS 1.2 that agree by finite fields, of parameters that the server chooses. */
static const uint16_t finite_fields[] = { 0x0016, 0x0033, 0x0039, 0x0045, 0x0067, 0x006b, 0x0088,
					  0x009a, 0x009e, 0x009f, 0x00be, 0x00c4, 0xc052, 0xc053,
					  0xc07c, 0xc07d, 0xc09e, 0xc09f, 0xc0a2, 0xc0a3, 0xccaa };

static unsigned int take(struct bytes *b, size_t n)
{
	unsigned int v = 0;

	assert_true(b->len >= n);
	for (size_t i = 0; i < n; i++)
		v = v << 8 | b->ptr[i];
	*b = bytes_tail(*b, n);
	return v;
}

/* What a length of `n` bytes stands before. */
static struct bytes part(struct bytes *b, size_t n)
{
	size_t len = take(b, n);
	struct bytes p = bytes_head(*b, len);

	assert_int_equal(p.len, len);
	*b = bytes_tail(*b, len);
	return p;
}

static bool is_finite(unsigned int cipher)
{
	for (size_t i = 0; i < COUNT(finite_fields); i++)
		if (finite_fields[i] == cipher)
			return true;
	return false;
}

static void check(struct bytes hello)
{
	struct bytes ciphers, all, body;
	size_t groups = 0;

	hello = bytes_tail(hello, RECORD_HEAD + BEFORE_SESSION);
	(void)part(&hello, 1);
	ciphers = part(&hello, 2);
	assert_true(ciphers.len > 0);
	while (ciphers.len > 0)
		assert_false(is_finite(take(&ciphers, 2)));
	(void)part(&hello, 1);
	all = part(&hello, 2);
	while (all.len > 0) {
		unsigned int kind = take(&all, 2);

		body = part(&all, 2);
		if (kind != GROUPS)
			continue;
		for (body = part(&body, 2); body.len > 0; groups++)
			assert_not_in_range(take(&body, 2), FFDHE_FIRST, FFDHE_LAST);
	}
	assert_true(groups > 0);
}

static void greet(const struct tls_trust *trust, const char *name)
{
	struct loop *l = test_loop();
	struct tls_context *c;
	uint8_t hello[HELLO_MAX];
	struct stream *s;
	struct err err = { 0 };
	ssize_t n = 0;
	int fd[2];

	tcp_pair(fd);
	assert_int_equal(tls_client_open(trust, &c, &err), 0);
	assert_int_equal(tls_connect(c, test_stream(l, fd[0]), name, NULL, &s, &err), 0);
	while (n <= 0) {
		assert_true(loop_turn(l));
		n = recv(fd[1], hello, sizeof(hello), MSG_DONTWAIT);
	}
	check((struct bytes){ hello, (size_t)n });
	stream_abort(s);
	close(fd[1]);
	loop_free(l);
	tls_context_free(c);
}

/* A guest that is spoken to by the gateway, in a thread that serves everybody. */
static void nobody_may_choose_how_long_a_handshake_takes(void **state)
{
	(void)state;
	greet(&(struct tls_trust){ .unverified = true }, NULL);
	greet(&(struct tls_trust){ .roots = "" }, "a.example");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_may_choose_how_long_a_handshake_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
