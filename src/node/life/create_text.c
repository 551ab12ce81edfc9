/* create_text.c - environment on one side, what is to be remembered on the other. */
#include "node/life/create_text.h"

#include <errno.h>
#include <stdlib.h>

static int check_env(json_t *env, struct err *err)
{
	const char *name;
	json_t *value;

	if (!json_is_object(env))
		return err_set(err, ERR_INVALID, 0, "envVars must be an object");
	if (json_object_size(env) > CREATE_ENV_MAX)
		return err_set(err, ERR_INVALID, 0, "envVars has more than %d members",
			       CREATE_ENV_MAX);
	/* clang-format off */
	json_object_foreach(env, name, value) {
		if (name[0] == '\0' || strchr(name, '='))
			return err_set(err, ERR_INVALID, 0, "envVars: '%.64s' is not a name", name);
		if (!json_is_string(value))
			return err_set(err, ERR_INVALID, 0, "envVars: %.64s is not a string", name);
	}
	/* clang-format on */
	return 0;
}

static int take_env(json_t *all, json_t **ret, struct err *err)
{
	json_t *env = json_object_get(all, "envVars");

	if (!env || json_is_null(env)) {
		*ret = json_object();
	} else if (check_env(env, err) < 0) {
		return -1;
	} else {
		*ret = json_incref(env);
	}
	json_object_del(all, "envVars");
	return *ret ? 0 : err_set(err, ERR_EXHAUSTED, ENOMEM, "make an environment");
}

int create_text_put(const json_t *all, size_t max, char **ret, struct err *err)
{
	struct buf out = BUF_MAX(max + 1);

	if (json_encode(all, &out, err) < 0 ||
	    buf_add(&out, (struct bytes){ (const uint8_t *)"", 1 }, err) < 0) {
		buf_done(&out);
		return -1;
	}
	*ret = (char *)out.ptr;
	return 0;
}

int create_text_split(struct bytes in, size_t max, json_t **ret_env, char **ret_text,
		      struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;
	AUTO(json_decrefp) json_t *env = NULL;

	if (in.len == 0)
		in = BYTES_LIT("{}");
	if (json_decode(in, max, CREATE_TEXT_DEPTH, &all, err) < 0)
		return err_wrap(err, "the text of a create");
	if (!json_is_object(all))
		return err_set(err, ERR_INVALID, 0, "the text of a create must be an object");
	/* escapes may make the text longer than it came; what is kept is bounded all the same */
	if (take_env(all, &env, err) < 0 || create_text_put(all, max, ret_text, err) < 0)
		return -1;
	*ret_env = TAKE(env);
	return 0;
}

/* Takes the value. */
static int set_member(char **text, const char *name, json_t *value, size_t max, struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;
	char *next = NULL;

	if (json_decode(bytes_str(*text ? *text : "{}"), max, CREATE_TEXT_DEPTH, &all, err) < 0) {
		json_decref(value);
		return err_wrap(err, "the text of a create");
	}
	if (json_object_set_new(all, name, value) < 0)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "the text of a create");
	if (create_text_put(all, max, &next, err) < 0)
		return -1;
	free(*text);
	*text = next;
	return 0;
}

int create_text_guard(char **text, const char *ports, size_t max, struct err *err)
{
	return set_member(text, "guardedPorts", json_text(bytes_str(ports)), max, err);
}

int create_text_show_pages(char **text, size_t max, struct err *err)
{
	return set_member(text, "refusalPages", json_true(), max, err);
}

int create_text_sizes(struct bytes in, size_t max, uint32_t *ret_vcpus, uint32_t *ret_memory_mib,
		      struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;
	json_t *sizes = NULL;
	int64_t vcpus, mib;

	*ret_vcpus = *ret_memory_mib = 0;
	if (in.len == 0)
		return 0;
	if (json_decode(in, max, CREATE_TEXT_DEPTH, &all, err) < 0 ||
	    json_may_object(all, "sizes", &sizes, err) < 0)
		return err_wrap(err, "the text of a create");
	if (!sizes)
		return 0;
	if (json_want_int(sizes, "vcpus", 1, CREATE_VCPUS_MAX, &vcpus, err) < 0 ||
	    json_want_int(sizes, "memoryMib", CREATE_MEMORY_MIN_MIB, CREATE_MEMORY_MAX_MIB, &mib,
			  err) < 0)
		return err_wrap(err, "sizes");
	*ret_vcpus = (uint32_t)vcpus;
	*ret_memory_mib = (uint32_t)mib;
	return 0;
}
