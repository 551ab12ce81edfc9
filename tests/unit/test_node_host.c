/* test_node_host.c - what a sandbox was booted on: kept in its row, compared when it is loaded. */
#include "tests/unit/check.h"

#include <stdlib.h>

#include "node/files/host_text.h"

static const struct manifest_facts away = { .vmm_version = "QEMU emulator version 11",
					    .cpu_model = "qemu64",
					    .accel = "tcg",
					    .arguments = "-machine microvm -smp 1" };

static void every_mixture_comes_back(void **state)
{
	static const struct {
		const char *name, *text, *env;
		bool host;
		const char *all;
	} rows[] = {
		{ "nothing", NULL, NULL, false, NULL },
		{ "text", "{\"a\":1}", NULL, false, "{\"a\":1}" },
		{ "env", NULL, "{}", false, "\n{}" },
		{ "both", "{}", "{\"B\":\"2\"}", false, "{}\n{\"B\":\"2\"}" },
		{ "all", "{}", "{}", true,
		  "{}\n{}\nQEMU emulator version 11\nqemu64\ntcg\n-machine microvm -smp 1" },
		{ "host", NULL, NULL, true,
		  "\n\nQEMU emulator version 11\nqemu64\ntcg\n-machine microvm -smp 1" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char *all = NULL, *text = NULL, *env = NULL;
		struct manifest_facts *host = NULL;
		struct err err;

		assert_int_equal(
			host_text_join(row->text, row->env, row->host ? &away : NULL, &all, &err),
			0);
		assert_int_equal(all == NULL, row->all == NULL);
		if (all)
			assert_string_equal(all, row->all);
		assert_int_equal(host_text_split(all, &text, &env, &host, &err), 0);
		assert_int_equal(text == NULL, row->text == NULL);
		assert_int_equal(env == NULL, row->env == NULL);
		assert_int_equal(host != NULL, row->host);
		if (text)
			assert_string_equal(text, row->text);
		if (env)
			assert_string_equal(env, row->env);
		if (host)
			assert_memory_equal(host, &away, sizeof(away));
		free(all);
		free(text);
		free(env);
		free(host);
	}
}

static void lines_that_nobody_wrote(void **state)
{
	static const char *const rows[] = { "{}\n{}\none", "{}\n{}\none\ntwo",
					    "{}\n{}\none\ntwo\nthree" };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *text = NULL, *env = NULL;
		struct manifest_facts *host = NULL;
		struct err err;

		assert_int_equal(host_text_split(rows[i], &text, &env, &host, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		free(text);
		free(env);
		free(host);
	}
}

static void the_guest_is_not_the_host(void **state)
{
	struct manifest_facts f = { .kernel_version = "6.12", .vcpus = 2, .cpu_model = "another" };

	(void)state;
	host_copy(&f, &away);
	assert_string_equal(f.vmm_version, away.vmm_version);
	assert_string_equal(f.cpu_model, "qemu64");
	assert_string_equal(f.arguments, away.arguments);
	assert_string_equal(f.kernel_version, "6.12");
	assert_int_equal(f.vcpus, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_mixture_comes_back),
		cmocka_unit_test(lines_that_nobody_wrote),
		cmocka_unit_test(the_guest_is_not_the_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
