/* start_request.c - see start_request.h. Unknown members are ignored, as proto3 wants it. */
#include "agent/process/start_request.h"

static int take_args(const json_t *config, struct start_request *ret, struct err *err)
{
	struct bytes cmd = { 0 };
	json_t *args = NULL, *arg;
	size_t i;

	if (json_may_string(config, "cmd", &cmd, err) < 0 ||
	    json_may_array(config, "args", &args, err) < 0)
		return -1;
	if (cmd.len == 0)
		return err_set(err, ERR_INVALID, 0, "cmd is empty");
	if (strings_add(&ret->argv, cmd, err) < 0)
		return -1;
	json_array_foreach(args, i, arg)
	{
		if (!json_is_string(arg))
			return err_set(err, ERR_INVALID, 0, "args[%zu] must be a string", i);
		if (strings_add(&ret->argv, json_bytes(arg), err) < 0)
			return -1;
	}
	return 0;
}

static int take_options(const json_t *v, struct start_request *ret, struct err *err)
{
	ret->has_stdin = true; /* for clients older than the member */
	if (json_may_bool(v, "stdin", &ret->has_stdin, err) < 0 ||
	    pty_parse(v, &ret->has_pty, &ret->pty, err) < 0 ||
	    json_may_string(v, "tag", &ret->tag, err) < 0)
		return -1;
	ret->has_tag = ret->tag.ptr != NULL;
	if (ret->tag.len > PROCESS_TAG_MAX)
		return err_set(err, ERR_INVALID, 0, "tag: longer than %d bytes", PROCESS_TAG_MAX);
	return 0;
}

int start_request_parse(struct bytes json, size_t max, struct start_request *ret, struct err *err)
{
	*ret = (struct start_request){ 0 };
	if (json_decode(json, max, PROCESS_JSON_DEPTH, &ret->json, err) < 0)
		return -1;
	if (json_want_object(ret->json, "process", &ret->config, err) < 0 ||
	    take_args(ret->config, ret, err) < 0 ||
	    json_may_object(ret->config, "envs", &ret->envs, err) < 0 ||
	    json_may_string(ret->config, "cwd", &ret->cwd, err) < 0 ||
	    take_options(ret->json, ret, err) < 0) {
		start_request_done(ret);
		return -1;
	}
	return 0;
}

void start_request_done(struct start_request *r)
{
	strings_done(&r->argv);
	json_decref(r->json);
	*r = (struct start_request){ 0 };
}

void start_request_text(const struct start_request *r, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < r->argv.n && n < size; i++) {
		int more = snprintf(ret + n, size - n, "%s%s", i > 0 ? " " : "", r->argv.v[i]);

		n += more > 0 ? (size_t)more : 0;
	}
}

int env_add_all(struct strings *env, json_t *vars, struct err *err)
{
	const char *name;
	json_t *value;

	json_object_foreach(vars, name, value)
	{
		if (!json_is_string(value))
			return err_set(err, ERR_INVALID, 0, "envs: %s must be a string", name);
		if (strings_set_env(env, bytes_str(name), json_bytes(value), err) < 0)
			return -1;
	}
	return 0;
}

int start_request_config(const struct start_request *r, struct buf *out, struct err *err)
{
	static const char *const names[] = { "cmd", "args", "envs", "cwd" };
	AUTO(json_decrefp) json_t *known = json_object();

	for (size_t i = 0; i < COUNT(names); i++) {
		json_t *v = json_object_get(r->config, names[i]);
		bool empty = json_is_null(v) || (json_is_array(v) && json_array_size(v) == 0) ||
			     (json_is_object(v) && json_object_size(v) == 0);

		if (v && !empty && json_object_set(known, names[i], v) < 0)
			return err_set(err, ERR_EXHAUSTED, 0, "out of memory");
	}
	return json_encode(known, out, err);
}
