/* test_wire_exposition.c - figures as Prometheus reads them. */
#include "tests/unit/check.h"

#include "wire/exposition.h"

static const struct figure counter = { "things_total", EXPOSITION_COUNTER, "a,b", "What it is." };
static const struct figure times = { "took_seconds", EXPOSITION_HISTOGRAM, "", "How long." };

static void a_counter_with_labels(void **state)
{
	struct buf out = BUF_MAX(4096);
	struct exposition e = { .out = &out };

	(void)state;
	exposition_family(&e, &counter);
	exposition_value(&e, LABELS({ "a", "x" }, { "b", "a \"quoted\"\\\n" }), 7);
	exposition_value(&e, NO_LABELS, UINT64_MAX);
	exposition_millionths(&e, NO_LABELS, 1500000);
	assert_false(e.failed);
	assert_true(bytes_eq(buf_view(&out),
			     BYTES_LIT("# HELP things_total What it is.\n"
				       "# TYPE things_total counter\n"
				       "things_total{a=\"x\",b=\"a \\\"quoted\\\"\\\\\\n\"} 7\n"
				       "things_total 18446744073709551615\n"
				       "things_total 1.500000\n")));
	buf_done(&out);
}

/* Buckets hold all that took at most as long, the last of them all. */
static void a_histogram(void **state)
{
	struct buf out = BUF_MAX(4096);
	struct exposition e = { .out = &out };
	struct latency l = { 0 };
	char text[4096];

	(void)state;
	latency_add(&l, 5000);
	latency_add(&l, 5001);
	latency_add(&l, 600ull * 1000 * 1000);
	exposition_family(&e, &times);
	exposition_latency(&e, NO_LABELS, &l);
	assert_true(bytes_to_str(buf_view(&out), text, sizeof(text)));
	assert_non_null(strstr(text, "\ntook_seconds_bucket{le=\"0.005\"} 1\n"));
	assert_non_null(strstr(text, "\ntook_seconds_bucket{le=\"0.01\"} 2\n"));
	assert_non_null(strstr(text, "\ntook_seconds_bucket{le=\"120\"} 2\n"));
	assert_non_null(strstr(text, "\ntook_seconds_bucket{le=\"+Inf\"} 3\n"));
	assert_non_null(strstr(text, "\ntook_seconds_sum 600.010001\n"));
	assert_non_null(strstr(text, "\ntook_seconds_count 3\n"));
	buf_done(&out);
}

static void what_does_not_fit_is_a_failure(void **state)
{
	struct buf out = BUF_MAX(40);
	struct exposition e = { .out = &out };

	(void)state;
	exposition_family(&e, &counter);
	exposition_value(&e, NO_LABELS, 1);
	assert_true(e.failed);
	assert_true(out.len <= 40);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_counter_with_labels),
		cmocka_unit_test(a_histogram),
		cmocka_unit_test(what_does_not_fit_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
