/* test_node_record.c - metrics over time and events of a life: all there, bounded, in order. */
#include "tests/unit/check.h"

#include "base/clock.h"
#include "node/record/events.h"
#include "node/record/history.h"
#include "node/record/metrics.h"
#include "wire/json.h"
#include "wire/rfc3339.h"

enum { DAY = 24 * 3600, T0 = 1700000040 }; /* a full minute */

static struct history_point point(uint32_t time_s, uint32_t cpu)
{
	return (struct history_point){ .time_s = time_s,
				       .cpu_percent = cpu,
				       .memory_kib = 1000,
				       .cache_kib = 10,
				       .disk_kib = time_s };
}

static void fill(struct history *h, uint32_t seconds)
{
	for (uint32_t t = 0; t < seconds; t += HISTORY_FINE_S) {
		struct history_point p = point(T0 + t, t % 60 < 30 ? 0 : 100);

		history_add(h, &p);
	}
}

static size_t bytes_of(const struct history *h)
{
	return sizeof(*h) + (h->fine.cap + h->coarse.cap) * sizeof(struct history_point);
}

static void a_few_points_come_back(void **state)
{
	struct history h = { 0 };
	struct history_point got[100];

	(void)state;
	assert_int_equal(history_get(&h, 0, UINT32_MAX, got, COUNT(got)), 0);
	fill(&h, 100);
	assert_int_equal(history_get(&h, 0, UINT32_MAX, got, COUNT(got)), 20);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(got[i].time_s, T0 + i * HISTORY_FINE_S);
	assert_int_equal(history_get(&h, T0 + 10, T0 + 20, got, COUNT(got)), 3);
	assert_int_equal(got[0].time_s, T0 + 10);
	assert_int_equal(history_get(&h, T0 + 1000, UINT32_MAX, got, COUNT(got)), 0);
	history_done(&h);
}

static void a_day_is_thin_and_an_hour_is_dense(void **state)
{
	static struct history_point got[HISTORY_FINE_MAX + HISTORY_COARSE_MAX];
	struct history h = { 0 };
	size_t n;

	(void)state;
	fill(&h, 2 * DAY);
	assert_true(bytes_of(&h) <= 64 * 1024);
	print_message("    %zu bytes\n", bytes_of(&h));
	n = history_get(&h, 0, UINT32_MAX, got, COUNT(got));
	assert_in_range(n, HISTORY_FINE_MAX + HISTORY_COARSE_MAX - 62,
			HISTORY_FINE_MAX + HISTORY_COARSE_MAX);
	assert_int_equal(got[n - 1].time_s, T0 + 2 * DAY - HISTORY_FINE_S);
	assert_in_range(got[0].time_s, T0 + DAY - 120, T0 + DAY + 120);
	for (size_t i = 1; i < n; i++) {
		uint32_t step = got[i].time_s - got[i - 1].time_s;

		assert_in_range(step, 1, HISTORY_COARSE_S);
		if (i > n - HISTORY_FINE_MAX)
			assert_int_equal(step, HISTORY_FINE_S);
	}
	assert_int_equal(got[0].cpu_percent, 50); /* the mean of its minute */
	history_done(&h);
}

static void a_long_answer_is_thinned(void **state)
{
	struct history_point got[10];
	struct history h = { 0 };
	uint64_t sum = 0;
	size_t n;

	(void)state;
	fill(&h, 3600);
	n = history_get(&h, 0, UINT32_MAX, got, COUNT(got));
	assert_int_equal(n, COUNT(got));
	for (size_t i = 0; i < n; i++)
		sum += got[i].cpu_percent;
	assert_int_equal(sum / n, 50);
	assert_int_equal(got[n - 1].time_s, T0 + 3600 - HISTORY_FINE_S);
	history_done(&h);
}

static void percent_is_of_all_processors(void **state)
{
	const struct node_sandbox info = { .vcpus = 2, .memory_mib = 512 };
	const struct vm_usage before = { .cpu_ns = 1000 };
	static const struct {
		const char *name;
		uint64_t cpu_ns, ns;
		bool ok;
		uint32_t percent;
	} rows[] = {
		{ "one of two", 1000 + 5 * NSEC_PER_SEC, 5 * NSEC_PER_SEC, true, 5000 },
		{ "both and QEMU", 1000 + 11 * NSEC_PER_SEC, 5 * NSEC_PER_SEC, true, 10000 },
		{ "idle", 1000, 5 * NSEC_PER_SEC, true, 0 },
		{ "another VM", 999, 5 * NSEC_PER_SEC, false, 0 },
		{ "no time", 2000, 0, false, 0 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct vm_usage now = { .cpu_ns = row->cpu_ns,
					.memory_bytes = 1ull << 40,
					.cache_bytes = 4096 };
		struct history_point p = { 0 };

		assert_int_equal(metrics_point(&before, &now, row->ns, &info, &p), row->ok);
		assert_int_equal(p.cpu_percent, row->percent);
		if (!row->ok)
			continue;
		assert_int_equal(p.memory_kib, 512 * 1024); /* never more than it has */
		assert_int_equal(p.cache_kib, 4);
	}
}

static void the_newest_point(void **state)
{
	struct history h = { 0 };
	struct history_point p = { 0 };

	(void)state;
	assert_false(history_latest(&h, &p));
	for (uint32_t i = 1; i <= 2 * HISTORY_FINE_MAX; i++)
		history_add(&h, &(struct history_point){ .time_s = i * 5, .disk_kib = i });
	assert_true(history_latest(&h, &p));
	assert_int_equal(p.disk_kib, 2 * HISTORY_FINE_MAX);
	history_done(&h);
}

static void a_point_is_json(void **state)
{
	const struct node_sandbox info = { .vcpus = UINT32_MAX,
					   .memory_mib = UINT32_MAX,
					   .disk_mib = UINT32_MAX };
	const struct history_point p = { .time_s = UINT32_MAX,
					 .cpu_percent = 107,
					 .memory_kib = UINT32_MAX,
					 .cache_kib = UINT32_MAX,
					 .disk_kib = UINT32_MAX };
	AUTO(buf_done) struct buf out = BUF_MAX(METRICS_POINT_TEXT - 1); /* and a comma */
	AUTO(json_decrefp) json_t *v = NULL;
	struct err err;

	(void)state;
	assert_int_equal(metrics_put(&p, &info, &out, &err), 0);
	assert_int_equal(json_decode(buf_view(&out), 1000, 2, &v, &err), 0);
	assert_true(json_real_value(json_object_get(v, "cpuUsedPct")) > 1.069);
	assert_true(json_real_value(json_object_get(v, "cpuUsedPct")) < 1.071);
	assert_int_equal(json_integer_value(json_object_get(v, "timestampUnix")), UINT32_MAX);
	assert_string_equal(json_string_value(json_object_get(v, "timestamp")),
			    "2106-02-07T06:28:15Z");
	assert_int_equal(json_integer_value(json_object_get(v, "memUsed")), UINT32_MAX * 1024ull);
	assert_int_equal(json_object_size(v), 9);
}

/* --- events ------------------------------------------------------------------------------- */

static json_t *ask(const struct events *e, const struct node_request *rq)
{
	AUTO(buf_done) struct buf out = BUF_MAX(EVENTS_TEXT_MAX);
	json_t *v = NULL;
	struct err err;

	if (events_put(e, rq, &out, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(json_decode(buf_view(&out), EVENTS_TEXT_MAX, 4, &v, &err), 0);
	return v;
}

static const char *message(const json_t *all, size_t i)
{
	return json_string_value(json_object_get(json_array_get(all, i), "message"));
}

static uint64_t ns_of(const json_t *all, size_t i)
{
	uint64_t ns = 0;
	struct err err;

	assert_int_equal(
		rfc3339_parse(json_bytes(json_object_get(json_array_get(all, i), "timestamp")), &ns,
			      &err),
		0);
	return ns;
}

static void the_last_events_are_kept_in_order(void **state)
{
	struct events e = { 0 };
	const json_t *first;
	json_t *v;

	(void)state;
	v = ask(&e, &(struct node_request){ 0 });
	assert_int_equal(json_array_size(v), 0);
	json_decref(v);
	for (unsigned int i = 0; i < EVENTS_MAX + 10; i++)
		events_add(&e, i % 2 ? EVENT_WARN : EVENT_INFO, "timeout", "number %u", i);
	v = ask(&e, &(struct node_request){ 0 });
	assert_int_equal(json_array_size(v), EVENTS_MAX);
	assert_string_equal(message(v, 0), "number 10");
	for (size_t i = 1; i < EVENTS_MAX; i++)
		assert_true(ns_of(v, i) > ns_of(v, i - 1));
	first = json_array_get(v, 0);
	assert_string_equal(json_string_value(json_object_get(first, "level")), "info");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(first, "fields"), "event")),
		"timeout");
	json_decref(v);
	events_done(&e);
}

static void events_are_read_on_in_both_directions(void **state)
{
	struct events e = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 10; i++)
		events_add(&e, EVENT_INFO, "timeout", "%u", i);
	for (int newest = 0; newest < 2; newest++) {
		struct node_request rq = { .count = 3, .flags = newest ? NODE_NEWEST : 0 };
		unsigned int seen = 0;

		for (;;) {
			json_t *v = ask(&e, &rq);
			size_t n = json_array_size(v);

			for (size_t i = 0; i < n; i++, seen++) {
				char want[8];

				snprintf(want, sizeof(want), "%u", newest ? 9 - seen : seen);
				assert_string_equal(message(v, i), want);
				*(newest ? &rq.until_ns : &rq.after_ns) = ns_of(v, i);
			}
			json_decref(v);
			if (n == 0)
				break;
		}
		assert_int_equal(seen, 10);
	}
	events_done(&e);
}

static void long_and_strange_messages_are_text(void **state)
{
	struct events e = { 0 };
	char text[4 * EVENT_MESSAGE_MAX];
	json_t *v;

	(void)state;
	memset(text, '"', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (unsigned int i = 0; i < EVENTS_MAX; i++)
		events_add(&e, EVENT_ERROR, "disk_full", "\xff\n%s", text);
	v = ask(&e, &(struct node_request){ 0 }); /* all fit, escaped */
	assert_int_equal(json_array_size(v), EVENTS_MAX);
	assert_int_equal(strlen(message(v, 0)), EVENT_MESSAGE_MAX - 1);
	json_decref(v);
	events_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_few_points_come_back),
		cmocka_unit_test(a_day_is_thin_and_an_hour_is_dense),
		cmocka_unit_test(a_long_answer_is_thinned),
		cmocka_unit_test(percent_is_of_all_processors),
		cmocka_unit_test(the_newest_point),
		cmocka_unit_test(a_point_is_json),
		cmocka_unit_test(the_last_events_are_kept_in_order),
		cmocka_unit_test(events_are_read_on_in_both_directions),
		cmocka_unit_test(long_and_strange_messages_are_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
