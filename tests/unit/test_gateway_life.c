/* test_gateway_life.c - pause, resume, ends and their reasons, records, repeated creates, limits;
 * through the control plane.
 */
#include "tests/unit/gateway_mock.h"

static const char *member(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));

	return s ? s : "(none)";
}

static void pause_and_connect(void **state)
{
	struct mock *m = *state;

	mock_add(m, m->team[0], "{}");
	assert_int_equal(mock_ask(m, "POST", "/sandboxes/i0000/pause", m->key[0], ""), 204);
	assert_int_equal(m->last.verb, NODE_PAUSE);
	assert_int_equal(m->last.flags, 0);
	assert_int_equal(m->body_len, 0);
	mock_ask(m, "POST", "/sandboxes/i0000/pause", m->key[0], "{\"memory\":true}");
	mock_expect_error(m, 409);

	assert_int_equal(mock_ask(m, "GET", "/sandboxes/i0000", m->key[0], ""), 200);
	assert_string_equal(mock_text(m, "state"), "paused");
	assert_string_equal(mock_text(m, "startedAt"), "2023-11-14T22:13:20.000000Z");
	assert_string_equal(mock_text(m, "endAt"), "2023-11-14T22:13:21.000000Z");
	mock_ask(m, "POST", "/sandboxes/i0000/timeout", m->key[0], "{\"timeout\":5}");
	mock_expect_error(m, 409);

	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes/i0000/connect", m->key[0], "{}"), 201);
	assert_string_equal(mock_text(m, "sandboxID"), "i0000");
	assert_string_equal(mock_text(m, "envdAccessToken"), "secret");
	assert_int_equal(m->last.timeout_s, 300);
	assert_int_equal(
		mock_ask(m, "POST", "/sandboxes/i0000/connect", m->key[0], "{\"timeout\":20}"),
		200);
}

static void without_memory(void **state)
{
	struct mock *m = *state;

	mock_add(m, m->team[0], "{}");
	assert_int_equal(
		mock_ask(m, "POST", "/sandboxes/i0000/pause", m->key[0], "{\"memory\":false}"),
		204);
	assert_int_equal(m->last.flags, NODE_NO_MEMORY);
	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes/i0000/connect", m->key[0],
				  "{\"memory\":false,\"timeout\":7}"),
			 201);
	assert_int_equal(m->last.flags, NODE_NO_MEMORY);
	assert_int_equal(m->last.timeout_s, 7);
	m->refuse = ERR_MISMATCH; /* another QEMU saved its memory */
	mock_ask(m, "POST", "/sandboxes/i0000/connect", m->key[0], "{\"timeout\":7}");
	mock_expect_error(m, 412);
	assert_string_equal(mock_text(m, "reason"), "saved_elsewhere");
	m->refuse = ERR_BASE_LOST; /* what its memory differs from is not there */
	mock_ask(m, "POST", "/sandboxes/i0000/connect", m->key[0], "{\"timeout\":7}");
	mock_expect_error(m, 412);
	assert_string_equal(mock_text(m, "reason"), "base_lost");
	m->refuse = ERR_NONE;
	mock_ask(m, "POST", "/sandboxes/i0000/pause", m->key[0], "{\"memory\":\"no\"}");
	mock_expect_error(m, 400);
	mock_ask(m, "POST", "/sandboxes/i0000/pause", m->key[0], "[]");
	mock_expect_error(m, 400);
}

static void resume_the_old_way(void **state)
{
	struct mock *m = *state;

	mock_add(m, m->team[0], "{}");
	mock_ask(m, "POST", "/sandboxes/i0000/resume", m->key[0], "");
	mock_expect_error(m, 409);
	m->all[0].s.state = NODE_PAUSED;
	mock_ask(m, "POST", "/sandboxes/i0000/resume", m->key[0], "{\"autoPause\":1}");
	mock_expect_error(m, 400);
	assert_int_equal(m->all[0].s.state, NODE_PAUSED);
	assert_int_equal(
		mock_ask(m, "POST", "/sandboxes/i0000/resume", m->key[0], "{\"autoPause\":true}"),
		201);
	assert_int_equal(m->last.flags, NODE_AUTO_PAUSE);
	m->all[0].s.state = NODE_PAUSED;
	assert_int_equal(mock_ask(m, "POST", "/sandboxes/i0000/resume", m->key[0], ""), 201);
	assert_int_equal(m->last.verb, NODE_RESUME);
	assert_int_equal(m->last.timeout_s, 15);
	mock_ask(m, "POST", "/sandboxes/i0000/resume", m->key[1], "");
	mock_expect_error(m, 404);
}

static void create_says_how_it_ends(void **state)
{
	static const struct {
		const char *name;
		uint32_t flags;
		const char *on_timeout;
		bool resumes;
	} rows[] = {
		{ "", NODE_SECURE, "kill", false },
		{ ",\"autoPause\":true", NODE_SECURE | NODE_AUTO_PAUSE, "pause", false },
		{ ",\"memory\":true", NODE_SECURE, "kill", false },
		{ ",\"memory\":false", NODE_SECURE | NODE_BOOT, "kill", false },
		{ ",\"autoPause\":true,\"autoPauseMemory\":false",
		  NODE_SECURE | NODE_AUTO_PAUSE | NODE_NO_MEMORY, "pause", false },
		{ ",\"autoPause\":true,\"autoResume\":{\"enabled\":true}",
		  NODE_SECURE | NODE_AUTO_PAUSE | NODE_AUTO_RESUME, "pause", true },
	};
	struct mock *m = *state;

	FOR_ROWS(row, rows) {
		char text[256];
		const json_t *life;

		snprintf(text, sizeof(text), "{\"templateID\":\"base\"%s}", row->name);
		assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", m->key[0], text), 201);
		assert_int_equal(m->last.flags, row->flags);
		snprintf(text, sizeof(text), "/sandboxes/%s", mock_text(m, "sandboxID"));
		assert_int_equal(mock_ask(m, "GET", text, m->key[0], ""), 200);
		life = json_object_get(m->json, "lifecycle");
		assert_string_equal(member(life, "onTimeout"), row->on_timeout);
		assert_int_equal(json_is_true(json_object_get(life, "autoResume")), row->resumes);
	}
}

static void ends_have_reasons(void **state)
{
	static const char *const paths[] = { "", "/connect", "/pause", "/timeout", "/metrics" };
	struct mock *m = *state;

	mock_end(mock_add(m, m->team[0], "{}"), NODE_OOM_GUEST);
	for (size_t i = 0; i < COUNT(paths); i++) {
		bool get = i == 0 || i == 4;
		char path[64];

		snprintf(path, sizeof(path), "/sandboxes/i0000%s", paths[i]);
		mock_ask(m, get ? "GET" : "POST", path, m->key[0], get ? "" : "{\"timeout\":5}");
		mock_expect_error(m, 404);
		assert_string_equal(
			mock_text(m, "message"),
			"Sandbox \"i0000\" doesn't exist or you don't have access to it");
		assert_string_equal(mock_text(m, "reason"), "oom_guest");
		assert_string_equal(mock_text(m, "endedAt"), "2023-11-14T22:13:22.000000Z");
	}
	mock_ask(m, "GET", "/sandboxes/i0000", m->key[1], "");
	mock_expect_error(m, 404);
	assert_null(json_object_get(m->json, "reason"));
	m->all[0].s.reason = NODE_REASONS; /* of a node that knows more */
	mock_ask(m, "GET", "/sandboxes/i0000", m->key[0], "");
	mock_expect_error(m, 404);
	assert_null(json_object_get(m->json, "reason"));
}

static void operators_see_why(void **state)
{
	struct mock *m = *state;

	for (size_t i = 0; i < 8; i++)
		mock_end(mock_add(m, m->team[i % 2], "{}"), i == 7 ? NODE_LIFETIME : NODE_KILLED);
	mock_add(m, m->team[0], "{}");
	assert_int_equal(mock_ask(m, "GET", "/admin/ended", NULL, ""), 200);
	assert_int_equal(json_array_size(m->json), 8);
	assert_string_equal(member(json_array_get(m->json, 0), "sandboxID"), "i0007");
	assert_string_equal(member(json_array_get(m->json, 0), "reason"), "lifetime");
	assert_string_equal(member(json_array_get(m->json, 7), "teamID"), m->team[0]);
	assert_int_equal(mock_ask(m, "GET", "/admin/sandboxes/i0003/why", NULL, ""), 200);
	assert_string_equal(mock_text(m, "state"), "ended");
	assert_string_equal(mock_text(m, "sandboxID"), "i0003");
	assert_string_equal(mock_text(m, "reason"), "killed");
	assert_int_equal(mock_ask(m, "GET", "/admin/sandboxes/i0008/why", NULL, ""), 200);
	assert_string_equal(mock_text(m, "state"), "running");
	m->all[8].s.flags |= NODE_ABSENT;
	assert_int_equal(mock_ask(m, "GET", "/admin/sandboxes/i0008/why", NULL, ""), 200);
	assert_string_equal(mock_text(m, "stalled"), "vm_absent");
	assert_int_equal(mock_ask(m, "GET", "/sandboxes/i0008", m->key[0], ""), 200);
	assert_string_equal(mock_text(m, "state"), "running");
	assert_string_equal(mock_text(m, "stalled"), "vm_absent");
	assert_non_null(strstr(mock_text(m, "message"), "is kept"));
	assert_int_equal(mock_ask(m, "POST", "/admin/confirm-lost", NULL, ""), 200);
	assert_int_equal(m->last.verb, NODE_CONFIRM_LOST);
	assert_int_equal(json_integer_value(json_object_get(m->json, "sandboxes")), 1);
	assert_int_equal(mock_ask(m, "POST", "/confirm-lost", m->key[0], ""), 404);
	m->all[8].s.flags &= ~(uint32_t)NODE_ABSENT;
	assert_int_equal(mock_ask(m, "POST", "/admin/sandboxes/i0008/pause", NULL, ""), 204);
	assert_int_equal(mock_ask(m, "GET", "/admin/sandboxes/i0008/why", NULL, ""), 200);
	assert_string_equal(mock_text(m, "state"), "paused");
	assert_string_equal(mock_text(m, "pausedAt"), "2023-11-14T22:13:21.008000Z");
	assert_int_equal(mock_ask(m, "POST", "/admin/sandboxes/i0008/resume", NULL, ""), 201);
	assert_int_equal(m->last.timeout_s, 300);
	mock_ask(m, "GET", "/admin/sandboxes/i0042/why", NULL, "");
	assert_int_equal(m->status, 404);
}

static void metrics(void **state)
{
	static const struct {
		const char *name;
		uint64_t after_ns, until_ns;
		unsigned int status;
	} rows[] = {
		{ "", 0, 0, 200 },
		{ "?start=10", 9999999999, 0, 200 },
		{ "?start=10&end=20", 9999999999, 20999999999, 200 },
		{ "?start=0&end=0", 0, 999999999, 200 },
		{ "?start=20&end=10", 0, 0, 400 },
		{ "?start=-1", 0, 0, 400 },
		{ "?end=soon", 0, 0, 400 },
		{ "?end=99999999999", 0, 0, 400 },
	};
	struct mock *m = *state;

	mock_add(m, m->team[0], "{}");
	m->record = "[{\"timestampUnix\":1},{\"timestampUnix\":2}]";
	FOR_ROWS(row, rows) {
		char path[128];

		snprintf(path, sizeof(path), "/sandboxes/i0000/metrics%s", row->name);
		assert_int_equal(mock_ask(m, "GET", path, m->key[0], ""), row->status);
		if (row->status != 200)
			continue;
		assert_int_equal(json_array_size(m->json), 2);
		assert_int_equal(m->last.verb, NODE_METRICS);
		assert_true(m->last.after_ns == row->after_ns && m->last.until_ns == row->until_ns);
	}
	m->record = "{}";
	mock_ask(m, "GET", "/sandboxes/i0000/metrics", m->key[0], "");
	mock_expect_error(m, 500);
}

static void metrics_of_several(void **state)
{
	struct mock *m = *state;
	const json_t *all;

	mock_add(m, m->team[0], "{}");
	mock_add(m, m->team[1], "{}");
	mock_add(m, m->team[0], "{}");
	m->record = "[{\"timestampUnix\":1},{\"timestampUnix\":2}]";
	assert_int_equal(mock_ask(m, "GET", "/sandboxes/metrics?sandbox_ids=i0000,i0001%2Ci0002,zz",
				  m->key[0], ""),
			 200);
	all = json_object_get(m->json, "sandboxes");
	assert_int_equal(json_object_size(all), 2);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(all, "i0002"), "timestampUnix")),
		2);
	mock_ask(m, "GET", "/sandboxes/metrics", m->key[0], "");
	mock_expect_error(m, 400);
	mock_ask(m, "GET", "/sandboxes/metrics?sandbox_ids=a,UP", m->key[0], "");
	mock_expect_error(m, 400);
}

static void logs(void **state)
{
	struct mock *m = *state;
	const json_t *first;
	const char *line;

	mock_add(m, m->team[0], "{}");
	m->record = "[{\"timestamp\":\"2026-01-02T03:04:05.000000001Z\",\"level\":\"info\","
		    "\"message\":\"begun\",\"fields\":{\"event\":\"created\"}},"
		    "{\"timestamp\":\"2026-01-02T03:04:06Z\",\"level\":\"error\","
		    "\"message\":\"broken\",\"fields\":{}}]";
	assert_int_equal(mock_ask(m, "GET", "/sandboxes/i0000/logs?start=5&limit=2", m->key[0], ""),
			 200);
	assert_true(m->last.after_ns == 4999999 && m->last.count == 2 && m->last.flags == 0);
	assert_int_equal(json_array_size(json_object_get(m->json, "logs")), 2);
	assert_int_equal(json_array_size(json_object_get(m->json, "logEntries")), 2);
	first = json_array_get(json_object_get(m->json, "logs"), 0);
	assert_string_equal(member(first, "timestamp"), "2026-01-02T03:04:05.000000001Z");
	line = member(first, "line");
	assert_non_null(strstr(line, "\"level\":\"info\""));
	assert_non_null(strstr(line, "\"logger\":\"hotcell\""));
	assert_non_null(strstr(line, "\"event\":\"created\""));
	assert_non_null(strstr(line, "\"message\":\"begun\""));

	assert_int_equal(mock_ask(m, "GET",
				  "/v2/sandboxes/i0000/logs?level=warn&search=rok&limit=1&cursor=9",
				  m->key[0], ""),
			 200);
	assert_true(m->last.until_ns == 10000000 && m->last.flags == NODE_NEWEST);
	assert_int_equal(json_array_size(json_object_get(m->json, "logs")), 1);
	assert_string_equal(member(json_array_get(json_object_get(m->json, "logs"), 0), "message"),
			    "broken");
	assert_null(json_object_get(m->json, "logEntries"));
	/* none of them match: node is asked for more, but not for ever */
	assert_int_equal(mock_ask(m, "GET", "/v2/sandboxes/i0000/logs?search=never", m->key[0], ""),
			 200);
	assert_int_equal(json_array_size(json_object_get(m->json, "logs")), 0);
	mock_ask(m, "GET", "/v2/sandboxes/i0000/logs?direction=up", m->key[0], "");
	mock_expect_error(m, 400);
	mock_ask(m, "GET", "/v2/sandboxes/i0000/logs?limit=1001", m->key[0], "");
	mock_expect_error(m, 400);
}

static void creates_may_be_repeated(void **state)
{
	static const char body[] = "{\"templateID\":\"base\"}";
	struct mock *m = *state;
	char first[NODE_ID_MAX + 1], too_long[400] = "Idempotency-Key: ";

	m->header = "Idempotency-Key: one two";
	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", m->key[0], body), 201);
	memcpy(first, m->last.idempotency, sizeof(first));
	assert_int_equal(strlen(first), 48);
	m->header = "idempotency-key: one two";
	assert_int_equal(mock_ask(m, "POST", "/sandboxes", m->key[0], body), 201);
	assert_string_equal(m->last.idempotency, first);
	m->header = "Idempotency-Key: one two";
	assert_int_equal(mock_ask(m, "POST", "/sandboxes", m->key[1], body), 201);
	assert_string_not_equal(m->last.idempotency, first);
	assert_int_equal(mock_ask(m, "POST", "/sandboxes", m->key[0], body), 201);
	assert_string_equal(m->last.idempotency, "");
	memset(too_long + 17, 'x', 256);
	m->header = too_long;
	mock_ask(m, "POST", "/sandboxes", m->key[0], body);
	mock_expect_error(m, 400);
}

static void keys_have_limits(void **state)
{
	static const char body[] = "{\"templateID\":\"base\"}";
	struct mock *m = *state;
	const json_t *limits;
	char path[128], id[STORE_ID_SIZE];

	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", m->key[0], body), 201);
	assert_int_equal(m->last.limits.sandboxes, 0);
	assert_int_equal(mock_ask(m, "GET", "/api-keys", m->key[0], ""), 200);
	snprintf(id, sizeof(id), "%s", member(json_array_get(m->json, 0), "id"));
	assert_string_equal(m->last.key_id, id);
	snprintf(path, sizeof(path), "/admin/keys/%s/limits", id);
	assert_int_equal(
		mock_ask(m, "PATCH", path, NULL, "{\"sandboxes\":3,\"vcpus\":4,\"memoryMB\":512}"),
		200);
	assert_int_equal(
		mock_ask(m, "PATCH", path, NULL, "{\"diskMB\":9,\"vcpus\":null,\"paused\":7}"),
		200);
	limits = json_object_get(m->json, "limits");
	assert_int_equal(json_integer_value(json_object_get(limits, "sandboxes")), 3);
	assert_int_equal(json_integer_value(json_object_get(limits, "paused")), 7);
	assert_true(json_is_null(json_object_get(limits, "vcpus")));
	/* known to the very next create */
	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", m->key[0], body), 201);
	assert_int_equal(m->last.limits.sandboxes, 3);
	assert_int_equal(m->last.limits.vcpus, 0);
	assert_int_equal(m->last.limits.memory_mib, 512);
	assert_int_equal(m->last.limits.disk_mib, 9);
	assert_int_equal(m->last.limits.paused, 7);
	mock_ask(m, "POST", "/sandboxes/i0000/pause", m->key[0], "");
	assert_string_equal(m->last.key_id, id); /* a pause is asked for by it, too */
	assert_int_equal(m->last.limits.paused, 7);
	mock_ask(m, "PATCH", path, NULL, "{\"sandboxes\":-1}");
	assert_int_equal(m->status, 400);
	mock_ask(m, "PATCH", "/admin/keys/nobody/limits", NULL, "{}");
	assert_int_equal(m->status, 404);
}

/* No row of digits that nobody asked for. */
static void seconds_are_called_seconds(void **state)
{
	static const struct {
		const char *name, *path, *body, *told;
	} rows[] = {
		{ "create", "/sandboxes", "{\"templateID\":\"base\",\"timeout\":1.5}",
		  "timeout must be a whole number of seconds" },
		{ "timeout", "/sandboxes/i0000/timeout", "{\"timeout\":\"soon\"}",
		  "timeout must be a whole number of seconds" },
		{ "absent", "/sandboxes/i0000/timeout", "{}", "timeout is missing" },
		{ "refresh", "/sandboxes/i0000/refreshes", "{\"duration\":[]}",
		  "duration must be a whole number of seconds" },
		{ "connect", "/sandboxes/i0000/connect", "{\"timeout\":true}",
		  "timeout must be a whole number of seconds" },
		{ "fork", "/sandboxes/i0000/fork", "{\"timeout\":{}}",
		  "timeout must be a whole number of seconds" },
		{ "count", "/sandboxes/i0000/fork", "{\"count\":2.5}",
		  "count must be a whole number" },
	};
	struct mock *m = *state;

	mock_add(m, m->team[0], "{}");
	FOR_ROWS(row, rows) {
		mock_ask(m, "POST", row->path, m->key[0], row->body);
		mock_expect_error(m, 400);
		assert_string_equal(mock_text(m, "message"), row->told);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, mock_set_up, mock_tear_down)
	const struct CMUnitTest tests[] = {
		T(pause_and_connect),
		T(without_memory),
		T(resume_the_old_way),
		T(create_says_how_it_ends),
		T(ends_have_reasons),
		T(operators_see_why),
		T(metrics),
		T(metrics_of_several),
		T(logs),
		T(creates_may_be_repeated),
		T(keys_have_limits),
		T(seconds_are_called_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
