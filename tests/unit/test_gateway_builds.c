/* test_gateway_builds.c - bodies and queries about templates and builds, read and refused. */
#include "tests/unit/check.h"

#include "gateway/parse/build_query.h"
#include "gateway/parse/build_request.h"
#include "gateway/parse/template_request.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct row {
	const char *body;
	enum err_code code; /* 0: it is taken */
	const char *said;   /* in what node is given, or in the refusal */
};

/* What `parse` makes of each row. */
static void check_all(const struct row *rows, size_t n,
		      int (*parse)(struct bytes body, struct buf *out, struct err *err))
{
	for (size_t i = 0; i < n; i++) {
		AUTO(buf_done) struct buf out = BUF_MAX(64 * 1024);
		struct err err = { 0 };
		char text[8192];

		(void)!parse(bytes_str(rows[i].body), &out, &err);
		snprintf(text, sizeof(text), "%.*s", (int)out.len, (const char *)out.ptr);
		if (err.code != rows[i].code || !strstr(err.code ? err.msg : text, rows[i].said))
			fail_msg("%zu: %s: %d %s %s", i, rows[i].body, (int)err.code, err.msg,
				 text);
	}
}

static int build(struct bytes body, struct buf *out, struct err *err)
{
	struct build_request r;
	int rc;

	if (build_request_parse(body, "red", &r, err) < 0)
		return -1;
	assert_true(r.credentials.len == 0 || r.credentials.secret);
	rc = json_encode(r.text, out, err) | buf_add(out, BYTES_LIT(" "), err) |
	     buf_add(out, buf_view(&r.credentials), err);
	build_request_done(&r);
	return rc;
}

static void builds(void **state)
{
	static const struct row rows[] = {
		{ "{\"fromImage\":\"debian:stable\"}", 0, "\"fromImage\":\"debian:stable\"" },
		{ "{\"fromTemplate\":\"Red/Web:V1\"}", 0,
		  "\"fromTemplate\":\"web\",\"fromTag\":\"v1\"" },
		{ "{\"fromTemplate\":\"blue/web\"}", 0, "\"fromTemplate\":\"blue/web\"" },
		{ "{\"fromImage\":\"a\",\"steps\":[{\"type\":\"COPY\",\"args\":[\"a\",\"b\",\"\","
		  "\"\"],\"filesHash\":\"" HASH "\",\"forceUpload\":true,\"gzip\":false}]}",
		  0, "\"filesHash\":\"" HASH "\",\"force\":false" },
		{ "{\"fromImage\":\"a\",\"startCmd\":\"s\",\"readyCmd\":\"r\",\"force\":true}", 0,
		  "\"startCmd\":\"s\",\"readyCmd\":\"r\",\"force\":true" },
		{ "{\"fromImage\":\"a\",\"fromImageRegistry\":{\"type\":\"registry\","
		  "\"username\":\"u\",\"password\":\"p\"}}",
		  0,
		  "{\"fromImage\":\"a\",\"steps\":[],\"force\":false} "
		  "{\"username\":\"u\",\"password\":\"p\"}" },
		{ "{\"fromImage\":\"a\",\"registry\":{\"username\":\"u\"},\"sealed\":\"x\"}", 0,
		  "{\"fromImage\":\"a\",\"steps\":[],\"force\":false} " },
		{ "{\"fromImage\":\"a\",\"fromImageRegistry\":{\"type\":\"registry\","
		  "\"username\":\"u\"}}",
		  ERR_INVALID, "password is missing" },
		{ "{}", ERR_INVALID, "one of fromImage and fromTemplate" },
		{ "{\"fromImage\":\"a\",\"fromTemplate\":\"b\"}", ERR_INVALID, "not both" },
		{ "{\"fromImage\":\"a b\"}", ERR_INVALID, "fromImage" },
		{ "{\"fromImage\":\"--a\"}", ERR_INVALID, "fromImage" },
		{ "{\"fromImage\":\"a\",\"fromImageRegistry\":{\"type\":\"aws\"}}", ERR_INVALID,
		  "kind aws are not supported" },
		{ "{\"fromImage\":\"a\",\"fromImageRegistry\":{\"type\":\"gcp\"}}", ERR_INVALID,
		  "kind gcp are not supported" },
		{ "{\"fromImage\":\"a\",\"fromImageRegistry\":{\"type\":\"x\"}}", ERR_INVALID,
		  "must be 'registry'" },
		{ "{\"fromTemplate\":\"a\",\"fromImageRegistry\":{\"type\":\"registry\","
		  "\"username\":\"u\",\"password\":\"secret\"}}",
		  ERR_INVALID, "needs fromImage" },
		{ "{\"fromImage\":\"a\",\"steps\":[{\"type\":\"RUN\",\"args\":[]}]}", ERR_INVALID,
		  "step 1: RUN with 0 arguments" },
		{ "{\"fromImage\":\"a\",\"steps\":[{\"type\":\"USER\",\"args\":[\"u\"]},"
		  "{\"type\":\"ENV\",\"args\":[\"A\"]}]}",
		  ERR_INVALID, "step 2: ENV with 1 arguments" },
		{ "{\"fromImage\":\"a\",\"steps\":[{\"type\":\"COPY\",\"args\":[\"a\",\"b\"]}]}",
		  ERR_INVALID, "filesHash" },
		{ "{\"fromImage\":\"a\",\"steps\":[{\"type\":\"ADD\",\"args\":[\"a\"]}]}",
		  ERR_INVALID, "step 1: its type" },
		{ "[]", ERR_INVALID, "JSON object" },
		{ "{", ERR_INVALID, "" },
	};

	(void)state;
	check_all(rows, COUNT(rows), build);
}

/* A parser's words quote what they stumble over. */
static void a_refusal_quotes_nothing(void **state)
{
	static const char *const bodies[] = {
		"{\"fromImage\":\"a\",\"fromImageRegistry\":{\"password\":\"hidden\" \"hidden\"}}",
		"{\"fromImage\":\"a\",\"fromImageRegistry\":{\"password\":hidden}}",
		"{\"fromImage\":\"a\",\"fromImageRegistry\":{\"hidden\":1,\"hidden\":2}}",
		"{\"fromImage\":\"a\",\"fromImageRegistry\":{\"type\":\"hidden\"}}",
		"{\"fromImage\":\"a\",\"fromImageRegistry\":\"hidden\"}",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bodies); i++) {
		AUTO(buf_done) struct buf out = BUF_MAX(1024);
		struct err err = { 0 };

		assert_int_equal(build(bytes_str(bodies[i]), &out, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_null(strstr(err.msg, "hidden"));
	}
}

static void too_many_steps(void **state)
{
	AUTO(buf_done) struct buf body = BUF_MAX(BUILD_REQUEST_MAX), out = BUF_MAX(64 * 1024);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(buf_printf(&body, &err, "{\"fromImage\":\"a\",\"steps\":["), 0);
	for (int i = 0; i <= BUILD_STEPS_MAX; i++)
		assert_int_equal(buf_printf(&body, &err, "%s{\"type\":\"USER\",\"args\":[\"u\"]}",
					    i ? "," : ""),
				 0);
	assert_int_equal(buf_printf(&body, &err, "]}"), 0);
	assert_int_equal(build(buf_view(&body), &out, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.msg, "at most 256 steps"));
}

static int create(struct bytes body, struct buf *out, struct err *err)
{
	struct template_request r;
	int rc;

	if (template_create_parse(body, "red", &r, err) < 0)
		return -1;
	rc = buf_printf(out, err, "%s ", r.name) | json_encode(r.text, out, err);
	template_request_done(&r);
	return rc;
}

static void creates(void **state)
{
	static const struct row rows[] = {
		{ "{\"name\":\"Web\"}", 0, "web {\"namespace\":\"red\",\"tags\":[]}" },
		{ "{\"name\":\"red/web:V1\",\"tags\":[\"v2\",\"v1\"],\"cpuCount\":4}", 0,
		  "web {\"namespace\":\"red\",\"tags\":[\"v1\",\"v2\"],\"cpuCount\":4}" },
		{ "{\"alias\":\"web\",\"memoryMB\":512}", 0, "\"memoryMB\":512" },
		{ "{\"name\":\"blue/web\"}", ERR_DENIED, "not your team's" },
		{ "{\"name\":\"\"}", ERR_INVALID, "alias" },
		{ "{\"name\":\"a b\"}", ERR_INVALID, "invalid template reference" },
		{ "{\"name\":\"web\",\"tags\":[\"a b\"]}", ERR_INVALID, "invalid tag" },
		{ "{\"name\":\"web\",\"tags\":[\"00000000-0000-4000-8000-000000000000\"]}",
		  ERR_INVALID, "invalid tag" },
		{ "{\"name\":\"web\",\"cpuCount\":\"many\"}", ERR_INVALID, "cpuCount" },
	};

	(void)state;
	check_all(rows, COUNT(rows), create);
}

static int assign(struct bytes body, struct buf *out, struct err *err)
{
	struct template_request r;
	int rc;

	if (template_tags_parse(body, false, "red", &r, err) < 0)
		return -1;
	rc = buf_printf(out, err, "%s:%s ", r.name, r.tag) | json_encode(r.text, out, err);
	template_request_done(&r);
	return rc;
}

static void tags(void **state)
{
	static const struct row rows[] = {
		{ "{\"target\":\"web:v1\",\"tags\":[\"prod\"]}", 0,
		  "web:v1 {\"tags\":[\"prod\"]}" },
		{ "{\"target\":\"web\",\"tags\":[\"prod\"]}", 0, "web: " },
		{ "{\"target\":\"blue/web\",\"tags\":[\"prod\"]}", ERR_NOT_FOUND, "not found" },
		{ "{\"target\":\"web\",\"tags\":[]}", ERR_INVALID, "must not be empty" },
		{ "{\"tags\":[\"a\"]}", ERR_INVALID, "target" },
	};

	(void)state;
	check_all(rows, COUNT(rows), assign);
}

static void queries(void **state)
{
	struct build_query q;
	struct err err;

	(void)state;
	assert_int_equal(build_query_status(BYTES_LIT("logsOffset=7&limit=5&level=warn"), &q, &err),
			 0);
	assert_int_equal(q.offset, 7);
	assert_int_equal(q.limit, 5);
	assert_string_equal(q.level, "warn");
	assert_int_equal(build_query_status(BYTES_LIT(""), &q, &err), 0);
	assert_int_equal(q.limit, BUILD_QUERY_LINES_MAX);
	assert_int_equal(build_query_status(BYTES_LIT("limit=101"), &q, &err), -1);
	assert_int_equal(build_query_status(BYTES_LIT("level=loud"), &q, &err), -1);
	assert_int_equal(build_query_status(BYTES_LIT("logsOffset=-1"), &q, &err), -1);
	assert_int_equal(build_query_logs(BYTES_LIT("cursor=12&direction=backward"), &q, &err), 0);
	assert_true(q.newest);
	assert_int_equal(q.after_ms, 12);
	assert_int_equal(build_query_logs(BYTES_LIT("direction=up"), &q, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builds),  cmocka_unit_test(too_many_steps),
		cmocka_unit_test(creates), cmocka_unit_test(tags),
		cmocka_unit_test(queries), cmocka_unit_test(a_refusal_quotes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
