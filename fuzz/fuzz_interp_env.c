/* fuzz_interp_env.c - promises about variables as code: whatever a value is, it stays a value.
 *
 * The input is an object of strings. In Python and JavaScript it is one literal, which is read here
 * as the languages read it; in the shell every value is between quotes.
 */
#include "fuzz/must.h"
#include "interp/language.h"
#include "wire/json.h"

enum { CODE_MAX = 1 << 22 };

static bool is_possible(const char *name)
{
	return *name && !strchr(name, '=');
}

/* The literal between the words of ours: a JSON string, and in it JSON. */
static void must_be_literal(struct bytes code, struct bytes before, struct bytes after,
			    const json_t *env)
{
	AUTO(json_decrefp) json_t *literal = NULL;
	AUTO(json_decrefp) json_t *told = NULL;
	size_t possible = 0;
	const char *name;
	json_t *value;

	MUST(bytes_starts(code, before) && code.len > before.len + after.len);
	code = bytes_tail(code, before.len);
	MUST(bytes_eq(bytes_tail(code, code.len - after.len), after));
	code.len -= after.len;
	for (size_t i = 0; i < code.len; i++)
		MUST(code.ptr[i] >= ' ' && code.ptr[i] < 128);
	literal = json_loadb((const char *)code.ptr, code.len, JSON_DECODE_ANY, NULL);
	MUST(json_is_string(literal));
	told = json_loadb(json_string_value(literal), json_string_length(literal), 0, NULL);
	MUST(json_is_object(told));
	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		if (!is_possible(name))
			continue;
		MUST(json_equal(json_object_get(told, name), value));
		possible++;
	}
	MUST(json_object_size(told) == possible);
}

/* One word of a shell at the front, all of it in quotes, without them; and the newline behind it.
 */
static void shell_word(struct bytes *code, struct buf *ret)
{
	const struct bytes quote = BYTES_LIT("'\\''");
	struct err err;

	MUST(code->len > 0 && code->ptr[0] == '\'');
	*code = bytes_tail(*code, 1);
	while (code->len > 0 && (code->ptr[0] != '\'' || bytes_starts(*code, quote))) {
		bool one = code->ptr[0] == '\'';

		MUST(buf_add(ret, bytes_head(*code, 1), &err) == 0);
		*code = bytes_tail(*code, one ? quote.len : 1);
	}
	MUST(bytes_starts(*code, BYTES_LIT("'\n")));
	*code = bytes_tail(*code, 2);
}

static void must_be_shell(struct bytes code, const json_t *env)
{
	const struct bytes export = BYTES_LIT("export ");

	while (code.len > 0) {
		AUTO(buf_done) struct buf value = BUF_MAX(CODE_MAX);
		struct bytes name;
		char word[256];

		MUST(bytes_starts(code, export));
		code = bytes_tail(code, export.len);
		MUST(bytes_cut(&code, '=', &name));
		for (size_t i = 0; i < name.len; i++)
			MUST(strchr("abcdefghijklmnopqrstuvwxyz0123456789_",
				    byte_lower(name.ptr[i])));
		shell_word(&code, &value);
		if (bytes_to_str(name, word, sizeof(word)))
			MUST(bytes_eq(buf_view(&value), json_bytes(json_object_get(env, word))));
	}
}

static void check(const char *language, const json_t *env)
{
	AUTO(buf_done) struct buf code = BUF_MAX(CODE_MAX);
	AUTO(buf_done) struct buf undo = BUF_MAX(CODE_MAX);
	struct err err = { 0 };

	if (language_set_env(language, env, &code, &err) < 0) {
		must_say_why(&err);
		return;
	}
	if (code.len > 0 && strcmp(language, "python") == 0)
		must_be_literal(
			buf_view(&code),
			BYTES_LIT("__import__('os').environ.update(__import__('json').loads("),
			BYTES_LIT("))\n"), env);
	else if (code.len > 0 && strcmp(language, "typescript") == 0)
		must_be_literal(buf_view(&code),
				BYTES_LIT("Object.assign(process.env, JSON.parse("),
				BYTES_LIT("))\n"), env);
	else if (strcmp(language, "bash") == 0)
		must_be_shell(buf_view(&code), env);
	/* what was there before is there again, by the same way */
	MUST(language_reset_env(language, env, env, &undo, &err) == 0);
	MUST(bytes_eq(buf_view(&undo), buf_view(&code)));
	MUST(language_reset_env(language, env, NULL, &undo, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const languages[] = { "python", "typescript", "bash", "r", "java", "x" };
	AUTO(json_decrefp) json_t *env = NULL;
	struct err err;
	const char *name;
	json_t *value;
	void *next;

	if (json_decode((struct bytes){ data, size }, size, 2, &env, &err) < 0 ||
	    !json_is_object(env))
		return 0;
	json_object_foreach_safe(env, next, name, value)
	{
		if (!json_is_string(value))
			json_object_del(env, name);
	}
	for (size_t i = 0; i < COUNT(languages); i++)
		check(languages[i], env);
	return 0;
}
