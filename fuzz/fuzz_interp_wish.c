/* fuzz_interp_wish.c - promises about bodies of requests to the code interpreter: what is accepted
 * is in the body, a language is a name that a folder can have or none, variables are strings.
 */
#include "fuzz/must.h"
#include "interp/wish.h"

static void check(const struct wish *w)
{
	const char *name;
	json_t *value;
	char again[KERNEL_NAME_MAX + 1];

	MUST(memchr(w->language, 0, sizeof(w->language)));
	MUST(!memchr(w->code.ptr ? (const void *)w->code.ptr : "x", 0, w->code.len));
	/* a name that is normalized stays as it is */
	if (w->language[0]) {
		MUST(language_normalize(bytes_str(w->language), again));
		MUST(strcmp(again, w->language) == 0);
	} else {
		MUST(w->name.len > 0);
	}
	json_object_foreach(w->env, name, value)
	{
		MUST(json_is_string(value));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct detail wrong = { 0 };
	struct err err = { 0 };
	struct wish w;

	if (json_decode((struct bytes){ data, size }, size, 8, &body, &err) < 0) {
		must_say_why(&err);
		return 0;
	}
	if (wish_to_execute(body, &w, &wrong)) {
		MUST(json_is_string(json_object_get(body, "code")));
		check(&w);
	} else {
		MUST(wrong.type && wrong.message && wrong.field);
	}
	wrong = (struct detail){ 0 };
	if (wish_to_create(body, &w, &wrong)) {
		MUST(w.code.len == 0 && w.context.len == 0 && !w.env);
		check(&w);
	} else {
		MUST(wrong.type && wrong.message && wrong.field);
	}
	return 0;
}
