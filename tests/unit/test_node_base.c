/* test_node_base.c - whom the guests of `base` trust, and where they fetch packages. */
#include "tests/unit/check.h"

#include <ftw.h>
#include <sys/stat.h>

#include "node/node.h"
#include "node/template/base_packages.h"
#include "node/template/base_trust.h"

#define PEM(x) "-----BEGIN CERTIFICATE-----\n" x "\n-----END CERTIFICATE-----\n"

static struct scene {
	struct node node;
	char dir[64], file[96];
} s;

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int scene_start(void **state)
{
	(void)state;
	snprintf(s.dir, sizeof(s.dir), "/tmp/hotcell-trust-XXXXXX");
	assert_non_null(mkdtemp(s.dir));
	snprintf(s.file, sizeof(s.file), "%s/extra", s.dir);
	snprintf(s.node.set[SET_DATA_DIR].text, CONFIG_VALUE_MAX, "%s", s.dir);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static int scene_end(void **state)
{
	(void)state;
	base_trust_close(&s.node);
	nftw(s.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	s = (struct scene){ 0 };
	return 0;
}

static void must_trust(const char *pem)
{
	struct bytes text;
	struct err err;

	if (base_trust_text(&s.node, &text, &err) < 0)
		fail_msg("%s", err.msg);
	if (!bytes_eq(text, bytes_str(pem)))
		fail_msg("'%.*s'", (int)text.len, (const char *)text.ptr);
}

static void nobody_is_trusted_unless_told(void **state)
{
	(void)state;
	base_trust_open(&s.node);
	assert_true(base_trust_ready(&s.node));
	must_trust("");
	write_file(s.file, ""); /* as installed, for an operator to fill */
	snprintf(s.node.set[SET_EXTRA_CA].text, CONFIG_VALUE_MAX, "%s", s.file);
	base_trust_open(&s.node);
	must_trust("");
}

static void the_injectors_authority_is_awaited_once_and_kept(void **state)
{
	(void)state;
	write_file(s.file, PEM("extra"));
	snprintf(s.node.set[SET_EXTRA_CA].text, CONFIG_VALUE_MAX, "%s", s.file);
	s.node.base.trust.awaited = true;
	base_trust_open(&s.node);
	assert_false(base_trust_ready(&s.node));
	base_trust_learn(&s.node, BYTES_LIT("no certificate"));
	assert_false(base_trust_ready(&s.node));
	base_trust_learn(&s.node, BYTES_LIT(PEM("own")));
	assert_true(base_trust_ready(&s.node));
	must_trust(PEM("own") "\n" PEM("extra"));
	base_trust_close(&s.node);
	s.node.base.trust = (struct base_trust){ .awaited = true };
	base_trust_open(&s.node); /* the next node, without an injector */
	assert_true(base_trust_ready(&s.node));
	must_trust(PEM("own") "\n" PEM("extra"));
}

static void another_authority_makes_a_ready_template_old(void **state)
{
	static const struct {
		enum base_state before, after;
		bool stale;
	} rows[] = {
		{ BASE_READY, BASE_UNKNOWN, false },    { BASE_FAILED, BASE_UNKNOWN, false },
		{ BASE_CHECKING, BASE_CHECKING, true }, { BASE_BUILDING, BASE_BUILDING, true },
		{ BASE_WARMING, BASE_WARMING, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		base_trust_learn(&s.node, BYTES_LIT(PEM("one")));
		s.node.base.state = rows[i].before;
		s.node.base.stale = false;
		base_trust_learn(&s.node, BYTES_LIT(PEM("one"))); /* the same again */
		assert_int_equal(s.node.base.state, rows[i].before);
		assert_false(s.node.base.stale);
		base_trust_learn(&s.node, BYTES_LIT(PEM("two")));
		assert_int_equal(s.node.base.state, rows[i].after);
		assert_int_equal(s.node.base.stale, rows[i].stale);
	}
}

static void a_file_that_cannot_be_used_is_told(void **state)
{
	static const char *const wrong[] = { NULL, "words", PEM("x") "PRIVATE KEY" };

	(void)state;
	snprintf(s.node.set[SET_EXTRA_CA].text, CONFIG_VALUE_MAX, "%s", s.file);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct bytes text;
		struct err err;

		if (wrong[i])
			write_file(s.file, wrong[i]);
		s.node.base.trust = (struct base_trust){ 0 };
		base_trust_open(&s.node);
		assert_int_equal(base_trust_text(&s.node, &text, &err), -1);
		assert_non_null(strstr(err.msg, "extra_ca: "));
		assert_non_null(strstr(err.msg, s.file));
	}
}

static void write_template(const char *name, const char *created, const char *packages)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX);
	struct manifest m = { .made_with = { .vmm_version = "1",
					     .cpu_model = "x",
					     .accel = "tcg",
					     .arguments = "-m 1",
					     .kernel_version = "6",
					     .vcpus = 1,
					     .memory_mib = 64 } };
	char path[256];
	struct err err;

	snprintf(m.template_id, sizeof(m.template_id), "%s", name);
	snprintf(m.created, sizeof(m.created), "%s", created);
	snprintf(m.packages, sizeof(m.packages), "%s", packages);
	assert_int_equal(manifest_put(&m, &text, &err), 0);
	assert_int_equal(buf_add(&text, BYTES_LIT("\0"), &err), 0);
	snprintf(path, sizeof(path), "%s/templates/%s", s.dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/templates/%s/manifest", s.dir, name);
	write_file(path, (const char *)text.ptr);
}

static void must_fetch_from(const char *json)
{
	AUTO(json_decrefp) json_t *got = base_packages(&s.node);
	AUTO(json_decrefp) json_t *wanted = json_loads(json, 0, NULL);

	assert_non_null(wanted);
	assert_true(json_equal(got, wanted));
}

static void packages_come_from_where_the_newest_template_says(void **state)
{
	char path[96];

	(void)state;
	snprintf(s.node.set[SET_STATE_DIR].text, CONFIG_VALUE_MAX, "%s", s.dir);
	base_packages_open(&s.node); /* there is not even a folder */
	must_fetch_from("[]");
	snprintf(path, sizeof(path), "%s/templates", s.dir);
	assert_int_equal(mkdir(path, 0700), 0);
	write_template("base-1", "2026-11-15T01:02:03Z", "old.example");
	write_template("base-2", "2026-11-16T01:02:03Z", "a.example 192.0.2.1");
	write_template("base-3", "2026-11-14T01:02:03Z", "older.example");
	write_template(".build-base-4", "2026-11-17T01:02:03Z", "unfinished.example");
	snprintf(path, sizeof(path), "%s/templates/base-5", s.dir); /* without a manifest */
	assert_int_equal(mkdir(path, 0700), 0);
	base_packages_open(&s.node);
	must_fetch_from("[\"a.example\", \"192.0.2.1\"]");
	base_packages_learn(&s.node, &(struct manifest){ 0 });
	must_fetch_from("[]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_is_trusted_unless_told, scene_start,
						scene_end),
		cmocka_unit_test_setup_teardown(the_injectors_authority_is_awaited_once_and_kept,
						scene_start, scene_end),
		cmocka_unit_test_setup_teardown(another_authority_makes_a_ready_template_old,
						scene_start, scene_end),
		cmocka_unit_test_setup_teardown(packages_come_from_where_the_newest_template_says,
						scene_start, scene_end),
		cmocka_unit_test_setup_teardown(a_file_that_cannot_be_used_is_told, scene_start,
						scene_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
