/* test_wire_port_pass.c - passes to guarded ports, and which ports are guarded. */
#include "tests/unit/check.h"

#include "wire/guarded_ports.h"
#include "wire/port_pass.h"

#define TOKEN BYTES_LIT("0123456789abcdefghijklmnopqrstuv")

static void make(char ret[static PORT_PASS_SIZE])
{
	port_pass_make(&(struct port_pass){ PASS_ADDRESS, 9222, 1000 }, "ione", TOKEN, ret);
}

static void a_pass_opens_what_it_is_for(void **state)
{
	char text[PORT_PASS_SIZE];
	struct port_pass p;

	(void)state;
	make(text);
	assert_int_equal(strlen(text), strlen("a9222.1000.") + 64);
	assert_null(strstr(text, "0123456789abcdefghijklmnopqrstuv"));
	assert_true(port_pass_right(bytes_str(text), "ione", TOKEN, 999, &p));
	assert_int_equal(p.kind, PASS_ADDRESS);
	assert_int_equal(p.port, 9222);
	assert_int_equal(p.expires_s, 1000);
	assert_true(port_pass_claims(bytes_str(text), 999, &p));
	assert_false(port_pass_claims(bytes_str(text), 1000, &p));
	assert_false(port_pass_claims(BYTES_LIT("x"), 999, &p));
	/* too late; another sandbox; another token; none */
	assert_false(port_pass_right(bytes_str(text), "ione", TOKEN, 1000, &p));
	assert_false(port_pass_right(bytes_str(text), "itwo", TOKEN, 999, &p));
	assert_false(port_pass_right(bytes_str(text), "ione", BYTES_LIT("other"), 999, &p));
	assert_false(port_pass_right(bytes_str(text), "ione", (struct bytes){ 0 }, 999, &p));
}

/* No byte of it can be another one. */
static void a_changed_pass_is_none(void **state)
{
	char text[PORT_PASS_SIZE];
	struct port_pass p;

	(void)state;
	make(text);
	for (size_t i = 0; text[i]; i++) {
		char was = text[i];

		text[i] = was == 'c' ? 'a' : was == '1' ? '2' : was == 'a' ? 'c' : '1';
		assert_false(port_pass_right(bytes_str(text), "ione", TOKEN, 1, &p));
		text[i] = was;
		assert_false(port_pass_right(bytes_head(bytes_str(text), i), "ione", TOKEN, 1, &p));
	}
}

static void whose_pass_has_no_key_is_refused(void **state)
{
	char text[PORT_PASS_SIZE];
	struct port_pass p;

	(void)state;
	port_pass_make(&(struct port_pass){ PASS_COOKIE, 1, UINT64_MAX }, "ione",
		       (struct bytes){ 0 }, text);
	assert_false(port_pass_right(bytes_str(text), "ione", (struct bytes){ 0 }, 1, &p));
	port_pass_make(&(struct port_pass){ PASS_COOKIE, 65535, UINT64_MAX }, "ione", TOKEN, text);
	assert_int_equal(strlen(text), PORT_PASS_SIZE - 1);
	assert_true(port_pass_right(bytes_str(text), "ione", TOKEN, 1, &p));
}

static void lists_of_ports(void **state)
{
	static const struct {
		const char *name;
		int n; /* -1: refused */
	} rows[] = {
		{ "", 0 },
		{ "9222", 1 },
		{ "9222/devtools, 6080/novnc,8000", 3 },
		{ "0", -1 },
		{ "65536", -1 },
		{ "9222/", -1 },
		{ "9222/cdp", -1 },
		{ "/devtools", -1 },
		{ "9222,9222/devtools", -1 },
		{ "9222,,1", -1 },
		{ "-1", -1 },
		{ "49982,49984", 2 },
		{ "49983", -1 },
		{ "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", 16 },
		{ "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", -1 },
	};
	struct guarded_ports g;
	struct err err;

	(void)state;
	FOR_ROWS(row, rows) {
		if (row->n < 0) {
			assert_int_equal(guarded_ports_parse(bytes_str(row->name), &g, &err), -1);
			assert_non_null(strstr(err.msg, GUARDED_PORTS_VARIABLE));
			continue;
		}
		assert_int_equal(guarded_ports_parse(bytes_str(row->name), &g, &err), 0);
		assert_int_equal(g.n, row->n);
	}
	assert_int_equal(guarded_ports_parse(bytes_str(rows[2].name), &g, &err), 0);
	assert_int_equal(guarded_ports_find(&g, 9222)->kind, GUARDED_DEVTOOLS);
	assert_int_equal(guarded_ports_find(&g, 6080)->kind, GUARDED_NOVNC);
	assert_int_equal(guarded_ports_find(&g, 8000)->kind, GUARDED_ANY);
	assert_null(guarded_ports_find(&g, 8001));
	assert_string_equal(guarded_kind_name(GUARDED_DEVTOOLS), "devtools");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pass_opens_what_it_is_for),
		cmocka_unit_test(a_changed_pass_is_none),
		cmocka_unit_test(whose_pass_has_no_key_is_refused),
		cmocka_unit_test(lists_of_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
