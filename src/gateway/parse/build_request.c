/* build_request.c - the grammar of a build: where it begins, its steps, its commands. */
#include "gateway/parse/build_request.h"

#include "images/protocol.h"

enum { DEPTH_MAX = 8 };

static int no_memory(struct err *err)
{
	return err_set(err, ERR_EXHAUSTED, 0, "no memory");
}

static int set_text(json_t *to, const char *name, struct bytes text, struct err *err)
{
	return json_object_set_new(to, name, json_text(text)) < 0 ? no_memory(err) : 0;
}

bool build_hash_ok(struct bytes hash)
{
	for (size_t i = 0; i < hash.len; i++)
		if (!memchr("0123456789abcdef", hash.ptr[i], 16))
			return false;
	return hash.len == BUILD_HASH_LENGTH;
}

/* --- where it begins ------------------------------------------------------------------------ */

static int take_credential(const json_t *from, const char *name, json_t *to, struct err *err)
{
	struct bytes text;

	if (json_want_string(from, name, &text, err) < 0)
		return -1;
	if (text.len > BUILD_CREDENTIAL_MAX)
		return err_set(err, ERR_INVALID, 0, "%s has more than %d bytes", name,
			       BUILD_CREDENTIAL_MAX);
	return set_text(to, name, text, err);
}

static int refuse_kind(struct bytes type, struct err *err)
{
	if (bytes_eq(type, BYTES_LIT("aws")) || bytes_eq(type, BYTES_LIT("gcp")))
		return err_set(err, ERR_INVALID, 0, IMAGES_KIND_REFUSED,
			       bytes_eq(type, BYTES_LIT("aws")) ? "aws" : "gcp");
	return err_set(err, ERR_INVALID, 0, "fromImageRegistry.type must be 'registry'");
}

/* As they are sealed: images/protocol.h. */
static int take_credentials(const json_t *from, struct buf *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *made = json_object();

	if (!made)
		return no_memory(err);
	if (take_credential(from, "username", made, err) < 0 ||
	    take_credential(from, "password", made, err) < 0)
		return -1;
	*ret = BUF_SECRET(BUILD_CREDENTIALS_MAX);
	return json_encode(made, ret, err);
}

static int take_registry(const json_t *body, struct build_request *ret, struct err *err)
{
	json_t *from = NULL;
	struct bytes type;

	if (json_may_object(body, "fromImageRegistry", &from, err) < 0)
		return -1;
	if (!from)
		return 0;
	if (json_want_string(from, "type", &type, err) < 0)
		return -1;
	if (!bytes_eq(type, BYTES_LIT("registry")))
		return refuse_kind(type, err);
	if (!json_object_get(ret->text, "fromImage"))
		return err_set(err, ERR_INVALID, 0, "fromImageRegistry needs fromImage");
	return take_credentials(from, &ret->credentials, err);
}

static bool image_ok(struct bytes image)
{
	for (size_t i = 0; i < image.len; i++)
		if (image.ptr[i] <= ' ' || image.ptr[i] > '~')
			return false;
	return image.len > 0 && image.len <= BUILD_IMAGE_MAX && image.ptr[0] != '-';
}

static int take_template(struct bytes from, const char *slug, json_t *to, struct err *err)
{
	struct template_ref ref;
	char name[NODE_ID_MAX + 1];

	if (template_ref_parse(from, &ref, err) < 0 || template_ref_name(&ref, slug, name, err) < 0)
		return -1;
	if (set_text(to, "fromTemplate", bytes_str(name), err) < 0)
		return -1;
	return set_text(to, "fromTag", bytes_str(ref.tag), err);
}

static int take_beginning(const json_t *body, const char *slug, json_t *to, struct err *err)
{
	struct bytes image = { 0 }, template = { 0 };

	if (json_may_string(body, "fromImage", &image, err) < 0 ||
	    json_may_string(body, "fromTemplate", &template, err) < 0)
		return -1;
	if ((image.len == 0) == (template.len == 0))
		return err_set(err, ERR_INVALID, 0,
			       "one of fromImage and fromTemplate must be given, and not both");
	if (template.len > 0)
		return take_template(template, slug, to, err);
	if (!image_ok(image))
		return err_set(err, ERR_INVALID, 0, "fromImage is not an image's name");
	return set_text(to, "fromImage", image, err);
}

/* --- steps ---------------------------------------------------------------------------------- */

static const struct step_kind {
	const char *type;
	size_t min, max; /* of its arguments */
	bool even, files;
} kinds[] = {
	{ "RUN", 1, 2, false, false },
	{ "COPY", 2, 4, false, true },
	{ "ENV", 2, BUILD_STEP_ARGS_MAX, true, false },
	{ "WORKDIR", 1, 1, false, false },
	{ "USER", 1, 1, false, false },
};

static const struct step_kind *kind_of(struct bytes type)
{
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (bytes_eq(type, bytes_str(kinds[i].type)))
			return &kinds[i];
	return NULL;
}

static int take_args(const json_t *step, const struct step_kind *k, json_t *to, struct err *err)
{
	json_t *args = NULL, *made = json_array(), *a;
	size_t i, n;

	if (json_object_set_new(to, "args", made) < 0)
		return no_memory(err);
	if (json_may_array(step, "args", &args, err) < 0)
		return -1;
	n = json_array_size(args);
	if (n < k->min || n > k->max || (k->even && n % 2 != 0))
		return err_set(err, ERR_INVALID, 0, "%s with %zu arguments", k->type, n);
	json_array_foreach(args, i, a)
	{
		if (!json_is_string(a))
			return err_set(err, ERR_INVALID, 0, "an argument of %s is no text",
				       k->type);
		if (json_string_length(a) > BUILD_ARG_MAX)
			return err_set(err, ERR_INVALID, 0,
				       "an argument of %s has more than %d KiB: COPY a file",
				       k->type, BUILD_ARG_MAX / 1024);
		if (json_array_append(made, a) < 0)
			return no_memory(err);
	}
	return json_string_length(json_array_get(made, 0)) > 0
		       ? 0
		       : err_set(err, ERR_INVALID, 0, "the first argument of %s is empty", k->type);
}

static int take_hash(const json_t *step, const struct step_kind *k, json_t *to, struct err *err)
{
	struct bytes hash = { 0 };

	if (!k->files)
		return 0;
	if (json_want_string(step, "filesHash", &hash, err) < 0)
		return -1;
	if (!build_hash_ok(hash))
		return err_set(err, ERR_INVALID, 0, "filesHash must be %d hexadecimal digits",
			       BUILD_HASH_LENGTH);
	return set_text(to, "filesHash", hash, err);
}

static int take_step(const json_t *step, json_t *to, struct err *err)
{
	const struct step_kind *k;
	struct bytes type;
	bool force = false;

	if (!json_is_object(step))
		return err_set(err, ERR_INVALID, 0, "it is no object");
	if (json_want_string(step, "type", &type, err) < 0 ||
	    json_may_bool(step, "force", &force, err) < 0)
		return -1;
	k = kind_of(type);
	if (!k)
		return err_set(err, ERR_INVALID, 0,
			       "its type is none of RUN, COPY, ENV, WORKDIR and USER");
	if (set_text(to, "type", type, err) < 0 || take_args(step, k, to, err) < 0 ||
	    take_hash(step, k, to, err) < 0)
		return -1;
	return json_object_set_new(to, "force", json_boolean(force)) < 0 ? no_memory(err) : 0;
}

static int take_steps(const json_t *body, json_t *to, struct err *err)
{
	json_t *steps = NULL, *all = json_array(), *step;
	size_t i;

	if (json_object_set_new(to, "steps", all) < 0)
		return no_memory(err);
	if (json_may_array(body, "steps", &steps, err) < 0)
		return -1;
	if (json_array_size(steps) > BUILD_STEPS_MAX)
		return err_set(err, ERR_INVALID, 0, "a build has at most %d steps",
			       BUILD_STEPS_MAX);
	json_array_foreach(steps, i, step)
	{
		json_t *made = json_object();

		if (json_array_append_new(all, made) < 0)
			return no_memory(err);
		if (take_step(step, made, err) < 0)
			return err_wrap(err, "step %zu", i + 1);
	}
	return 0;
}

/* --- all of it ------------------------------------------------------------------------------ */

static int take_command(const json_t *body, const char *name, json_t *to, struct err *err)
{
	struct bytes text = { 0 };

	if (json_may_string(body, name, &text, err) < 0)
		return -1;
	return text.len > 0 ? set_text(to, name, text, err) : 0;
}

static int parse(const json_t *body, const char *slug, struct build_request *ret, struct err *err)
{
	json_t *to = ret->text;
	bool force = false;

	if (!json_is_object(body))
		return err_set(err, ERR_INVALID, 0, "the body must be a JSON object");
	if (take_beginning(body, slug, to, err) < 0 || take_registry(body, ret, err) < 0 ||
	    take_steps(body, to, err) < 0 || take_command(body, "startCmd", to, err) < 0 ||
	    take_command(body, "readyCmd", to, err) < 0 ||
	    json_may_bool(body, "force", &force, err) < 0)
		return -1;
	return json_object_set_new(to, "force", json_boolean(force)) < 0 ? no_memory(err) : 0;
}

int build_request_parse(struct bytes body, const char *slug, struct build_request *ret,
			struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	*ret = (struct build_request){ 0 };
	if (json_decode(body, BUILD_REQUEST_MAX, DEPTH_MAX, &v, err) < 0) {
		if (err->code == ERR_INVALID) /* its own words may quote the text */
			return err_set(err, ERR_INVALID, 0, "the body is not valid JSON");
		err->code = ERR_INVALID;
		return -1;
	}
	ret->text = json_object();
	if (!ret->text)
		return no_memory(err);
	if (parse(v, slug, ret, err) == 0)
		return 0;
	build_request_done(ret);
	return -1;
}

void build_request_done(struct build_request *r)
{
	json_decref(TAKE(r->text));
	buf_done(&r->credentials);
}
