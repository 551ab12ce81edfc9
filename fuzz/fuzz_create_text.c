/* fuzz_create_text.c - promises about taking a create's text apart. */
#include "fuzz/must.h"
#include "node/life/create_text.h"
#include "node/protocol.h"

static void must_be_env(json_t *env)
{
	const char *name;
	json_t *value;

	MUST(json_is_object(env) && json_object_size(env) <= CREATE_ENV_MAX);
	/* clang-format off */
	json_object_foreach(env, name, value) {
		MUST(name[0] != '\0' && !strchr(name, '='));
		MUST(json_is_string(value));
	}
	/* clang-format on */
}

/* What is kept is bounded, has no environment, and is taken apart into itself and nothing. */
static void must_stay(const char *text)
{
	AUTO(json_decrefp) json_t *env = NULL;
	AUTO(auto_free) char *again = NULL;
	struct err err = { 0 };

	MUST(strlen(text) <= NODE_TEXT_MAX);
	MUST(create_text_split(bytes_str(text), NODE_TEXT_MAX, &env, &again, &err) == 0);
	MUST(json_object_size(env) == 0);
	MUST(strcmp(text, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(json_decrefp) json_t *env = NULL;
	AUTO(auto_free) char *text = NULL;
	struct err err = { 0 };

	if (create_text_split((struct bytes){ data, size }, NODE_TEXT_MAX, &env, &text, &err) < 0) {
		must_say_why(&err);
		MUST(!env && !text);
		return 0;
	}
	must_be_env(env);
	must_stay(text);
	return 0;
}
