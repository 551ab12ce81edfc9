/* recipe.c - JSON in, a checked list of steps out. */
#include "node/build/recipe.h"

#include <errno.h>

static const struct {
	const char *name;
	size_t min, max; /* of its arguments */
} kinds[RECIPE_KINDS] = {
	[RECIPE_RUN] = { "RUN", 1, 2 },
	[RECIPE_COPY] = { "COPY", 2, 4 },
	[RECIPE_ENV] = { "ENV", 2, RECIPE_ARGS_MAX },
	[RECIPE_WORKDIR] = { "WORKDIR", 1, 1 },
	[RECIPE_USER] = { "USER", 1, 2 },
};

const char *recipe_kind_name(enum recipe_kind kind)
{
	return kinds[kind].name;
}

struct bytes recipe_arg(const struct recipe_step *s, size_t i)
{
	return i < s->n ? json_bytes(json_array_get(s->args, i)) : (struct bytes){ 0 };
}

int recipe_say(const struct recipe_step *s, size_t max, struct buf *out, struct err *err)
{
	size_t end = out->len + max;

	if (buf_add(out, bytes_str(kinds[s->kind].name), err) < 0)
		return -1;
	for (size_t i = 0; i < s->n && out->len < end; i++)
		if (buf_add(out, BYTES_LIT(" "), err) < 0 ||
		    buf_add(out, bytes_head(recipe_arg(s, i), end - out->len), err) < 0)
			return -1;
	return 0;
}

/* --- one step ----------------------------------------------------------------------------- */

static int take_kind(const json_t *step, size_t number, struct recipe_step *ret, struct err *err)
{
	struct bytes type;

	if (json_want_string(step, "type", &type, err) < 0)
		return -1;
	for (size_t i = 0; i < RECIPE_KINDS; i++)
		if (bytes_eq_nocase(type, bytes_str(kinds[i].name))) {
			ret->kind = (enum recipe_kind)i;
			return 0;
		}
	return err_set(err, ERR_INVALID, 0, "step %zu: there is no instruction '%.*s'", number,
		       (int)bytes_head(type, 32).len, type.ptr);
}

static int take_args(json_t *step, size_t number, struct recipe_step *ret, struct err *err)
{
	const char *name = kinds[ret->kind].name;
	json_t *args = NULL, *arg;
	size_t i;

	if (json_may_array(step, "args", &args, err) < 0)
		return -1;
	ret->args = args;
	ret->n = json_array_size(args);
	if (ret->n < kinds[ret->kind].min || ret->n > kinds[ret->kind].max)
		return err_set(err, ERR_INVALID, 0, "step %zu: %s has %zu arguments", number, name,
			       ret->n);
	if (ret->kind == RECIPE_ENV && ret->n % 2 != 0)
		return err_set(err, ERR_INVALID, 0,
			       "step %zu: ENV requires both a key and value arguments", number);
	/* clang-format off */
	json_array_foreach(args, i, arg) {
		if (!json_is_string(arg))
			return err_set(err, ERR_INVALID, 0,
				       "step %zu: argument %zu of %s is no string", number, i + 1,
				       name);
	}
	/* clang-format on */
	return 0;
}

static bool is_hash(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++)
		if (!(b.ptr[i] >= '0' && b.ptr[i] <= '9') && !(b.ptr[i] >= 'a' && b.ptr[i] <= 'f'))
			return false;
	return b.len == SHA256_HEX;
}

static int take_files(const json_t *step, size_t number, struct recipe_step *ret, struct err *err)
{
	struct bytes hash = { 0 };

	if (json_may_string(step, "filesHash", &hash, err) < 0)
		return -1;
	if (ret->kind != RECIPE_COPY)
		return 0;
	if (hash.len == 0)
		return err_set(err, ERR_INVALID, 0, "step %zu: COPY requires files hash to be set",
			       number);
	if (!is_hash(hash) || !bytes_to_str(hash, ret->files, sizeof(ret->files)))
		return err_set(err, ERR_INVALID, 0, "step %zu: filesHash is no SHA-256", number);
	return 0;
}

/* Names that a shell can have, as far as those of an environment go. */
static bool is_variable(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++) {
		uint8_t c = b.ptr[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

		if (!letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return b.len > 0;
}

static int check_variables(const struct recipe_step *s, size_t number, struct err *err)
{
	for (size_t i = 0; s->kind == RECIPE_ENV && i < s->n; i += 2)
		if (!is_variable(recipe_arg(s, i)))
			return err_set(err, ERR_INVALID, 0,
				       "step %zu: '%.*s' is no name of a variable", number,
				       (int)bytes_head(recipe_arg(s, i), 64).len,
				       recipe_arg(s, i).ptr);
	return 0;
}

static int take_step(json_t *step, size_t number, struct recipe_step *ret, struct err *err)
{
	*ret = (struct recipe_step){ 0 };
	if (!json_is_object(step))
		return err_set(err, ERR_INVALID, 0, "step %zu is no object", number);
	if (take_kind(step, number, ret, err) < 0 || take_args(step, number, ret, err) < 0 ||
	    take_files(step, number, ret, err) < 0 ||
	    json_may_bool(step, "force", &ret->force, err) < 0)
		return -1;
	return check_variables(ret, number, err);
}

/* --- all of it ---------------------------------------------------------------------------- */

static int take_from(const json_t *text, const char *name, char *ret, size_t size, struct err *err)
{
	struct bytes from = { 0 };

	if (json_may_string(text, name, &from, err) < 0)
		return -1;
	if (!bytes_to_str(from, ret, size))
		return err_set(err, ERR_INVALID, 0, "%s is longer than %zu characters", name,
			       size - 1);
	return 0;
}

/* What only the images daemon can open. In clear nobody here wants to have it. */
static int take_sealed(const json_t *text, struct recipe *ret, struct err *err)
{
	struct bytes sealed = { 0 };

	if (json_object_get(text, "registry"))
		return err_set(err, ERR_INVALID, 0, "credentials of a registry are not sealed");
	if (json_may_string(text, "sealed", &sealed, err) < 0)
		return -1;
	if (sealed.len == 0)
		return 0;
	if (!ret->image[0])
		return err_set(err, ERR_INVALID, 0, "credentials without an image");
	ret->sealed = json_string_value(json_object_get(text, "sealed"));
	return 0;
}

static int take_steps(const json_t *text, struct recipe *ret, struct err *err)
{
	json_t *steps = NULL, *step;
	size_t i;

	if (json_may_array(text, "steps", &steps, err) < 0)
		return -1;
	ret->n = json_array_size(steps);
	if (ret->n > RECIPE_STEPS_MAX)
		return err_set(err, ERR_INVALID, 0, "more than %d steps", RECIPE_STEPS_MAX);
	/* clang-format off */
	json_array_foreach(steps, i, step) {
		if (take_step(step, i + 1, &ret->steps[i], err) < 0)
			return -1;
	}
	/* clang-format on */
	return 0;
}

static int take_all(struct recipe *r, struct err *err)
{
	if (!json_is_object(r->text))
		return err_set(err, ERR_INVALID, 0, "a build is an object");
	if (take_from(r->text, "fromImage", r->image, sizeof(r->image), err) < 0 ||
	    take_from(r->text, "fromTemplate", r->parent, sizeof(r->parent), err) < 0 ||
	    json_may_bool(r->text, "fromArchive", &r->archive, err) < 0 ||
	    json_may_string(r->text, "startCmd", &r->start, err) < 0 ||
	    json_may_string(r->text, "readyCmd", &r->ready, err) < 0 ||
	    json_may_bool(r->text, "force", &r->force, err) < 0)
		return -1;
	if ((r->image[0] != '\0') + (r->parent[0] != '\0') + r->archive != 1)
		return err_set(err, ERR_INVALID, 0,
			       "a build begins with fromImage or with fromTemplate: one of them");
	return take_sealed(r->text, r, err) < 0 ? -1 : take_steps(r->text, r, err);
}

int recipe_take(json_t *text, struct recipe *ret, struct err *err)
{
	*ret = (struct recipe){ .text = json_incref(text) };
	if (take_all(ret, err) == 0)
		return 0;
	recipe_done(ret);
	return -1;
}

int recipe_parse(struct bytes in, struct recipe *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *text = NULL;

	if (json_decode(in, RECIPE_BYTES_MAX, RECIPE_DEPTH, &text, err) < 0)
		return -1;
	return recipe_take(text, ret, err);
}

void recipe_done(struct recipe *r)
{
	json_decref(r->text);
	*r = (struct recipe){ 0 };
}
