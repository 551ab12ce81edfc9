/* fuzz_recipe.c - promises of a build's recipe: what is taken is within its limits; a script has
 * what a client wrote as quoted text only; what a step leaves can be kept and read again.
 *
 * The input is a recipe, and behind a NUL what a script printed. */
#include "fuzz/must.h"
#include "node/build/step_key.h"
#include "node/build/step_script.h"

static void must_come_back(const struct build_context *c)
{
	AUTO(buf_done) struct buf out = BUF_MAX(16 * BUILD_CONTEXT_MAX);
	struct build_context back;
	struct err err = { 0 };

	MUST(build_context_put(c, &out, &err) == 0);
	if (out.len > BUILD_CONTEXT_MAX)
		return;
	MUST(build_context_parse(buf_view(&out), &back, &err) == 0);
	MUST(strcmp(back.user, c->user) == 0 && strcmp(back.workdir, c->workdir) == 0);
	MUST(json_equal(back.env, c->env));
	build_context_done(&back);
}

static void check_step(const struct recipe_step *s, struct bytes printed, struct build_context *c)
{
	AUTO(buf_done) struct buf script = BUF_MAX(STEP_SCRIPT_MAX);
	AUTO(buf_done) struct buf said = BUF_MAX(STEP_SCRIPT_MAX);
	struct err err = { 0 };

	MUST(s->kind < RECIPE_KINDS && s->n <= RECIPE_ARGS_MAX);
	MUST(s->kind != RECIPE_COPY || strlen(s->files) == SHA256_HEX);
	MUST(recipe_say(s, 100, &said, &err) == 0 && said.len <= 100);
	if (step_script(s, c, &script, &err) < 0)
		must_say_why(&err);
	if (step_leaves(s, printed, c, &err) < 0)
		must_say_why(&err);
	MUST(c->user[0] != '\0' && (c->workdir[0] == '\0' || c->workdir[0] == '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct recipe r;
	struct bytes rest = { data, size }, text = rest;
	char key[STEP_KEY_LENGTH + 1];
	struct build_context c;
	struct err err = { 0 };

	if (!bytes_cut(&rest, '\0', &text))
		rest = (struct bytes){ 0 };
	if (recipe_parse(text, &r, &err) < 0) {
		must_say_why(&err);
		return 0;
	}
	MUST(r.n <= RECIPE_STEPS_MAX &&
	     (r.image[0] != '\0') + (r.parent[0] != '\0') + r.archive == 1);
	MUST(!r.sealed || (r.sealed[0] && r.image[0]));
	MUST(build_context_init(&c, &err) == 0);
	step_key_first("team", "image", key);
	for (size_t i = 0; i < r.n; i++) {
		check_step(&r.steps[i], rest, &c);
		step_key_next(&r.steps[i], key);
	}
	MUST(strlen(key) == STEP_KEY_LENGTH);
	must_come_back(&c);
	build_context_done(&c);
	recipe_done(&r);
	return 0;
}
