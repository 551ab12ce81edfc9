/* build_context.c - what instructions leave for those that follow. */
#include "node/build/build_context.h"

#include <errno.h>
#include <stdlib.h>

#include "base/own.h"
#include "wire/guarded_ports.h"

static int no_memory(struct err *err)
{
	return err_set(err, ERR_EXHAUSTED, ENOMEM, "what a build's steps leave");
}

int build_context_init(struct build_context *c, struct err *err)
{
	*c = (struct build_context){ .user = BUILD_USER, .env = json_object() };
	return c->env ? 0 : no_memory(err);
}

void build_context_done(struct build_context *c)
{
	json_decref(c->env);
	free(c->start);
	free(c->ready);
	*c = (struct build_context){ 0 };
}

/* What is kept is JSON. */
static bool is_utf8(struct bytes text)
{
	AUTO(json_decrefp)
	json_t *v = json_stringn(text.len > 0 ? (const char *)text.ptr : "", text.len);

	return v;
}

/* --- changes ------------------------------------------------------------------------------ */

int build_context_set_user(struct build_context *c, struct bytes user, struct err *err)
{
	for (size_t i = 0; i < user.len; i++) /* it goes into lines of /etc/passwd and shells */
		if (user.ptr[i] <= ' ' || user.ptr[i] == ':' || user.ptr[i] == 127)
			return err_set(err, ERR_INVALID, 0,
				       "a user's name has a character that "
				       "none may have");
	if (user.len == 0 || user.ptr[0] == '-' || !is_utf8(user) ||
	    !bytes_to_str(user, c->user, sizeof(c->user)))
		return err_set(err, ERR_INVALID, 0, "a user's name has 1 to %d characters",
			       BUILD_USER_MAX);
	return 0;
}

int build_context_set_workdir(struct build_context *c, struct bytes path, struct err *err)
{
	if (path.len > 0 && path.ptr[0] != '/')
		return err_set(err, ERR_INVALID, 0, "a working directory that is not absolute");
	if (!is_utf8(path) || !bytes_to_str(path, c->workdir, sizeof(c->workdir)))
		return err_set(err, ERR_INVALID, 0,
			       "a working directory of more than %d bytes, or not in UTF-8",
			       BUILD_WORKDIR_MAX);
	return 0;
}

/* What is wrong with it is told to who builds, not to who creates. */
static int check_ours(struct bytes name, struct bytes value, struct err *err)
{
	struct guarded_ports ports;

	if (bytes_eq(name, BYTES_LIT(GUARDED_PORTS_VARIABLE)))
		return guarded_ports_parse(value, &ports, err);
	if (bytes_eq(name, BYTES_LIT(REFUSAL_PAGES_VARIABLE)) && value.len > 0 &&
	    !bytes_eq(value, BYTES_LIT("yes")) && !bytes_eq(value, BYTES_LIT("no")))
		return err_set(err, ERR_INVALID, 0, REFUSAL_PAGES_VARIABLE ": yes or no");
	return 0;
}

bool build_context_shows_pages(const struct build_context *c)
{
	const char *value = json_string_value(json_object_get(c->env, REFUSAL_PAGES_VARIABLE));

	return value && strcmp(value, "yes") == 0;
}

int build_context_set_env(struct build_context *c, struct bytes name, struct bytes value,
			  struct err *err)
{
	char text[256];

	if (check_ours(name, value, err) < 0)
		return -1;
	if (!bytes_to_str(name, text, sizeof(text)))
		return err_set(err, ERR_INVALID, 0, "the name of a variable is longer than %zu",
			       sizeof(text) - 1);
	if (json_object_set_new(c->env, text, json_text(value)) < 0)
		return no_memory(err);
	if (json_object_size(c->env) > BUILD_ENV_MAX)
		return err_set(err, ERR_INVALID, 0, "more than %d variables", BUILD_ENV_MAX);
	return 0;
}

static int set_command(char **to, struct bytes command, struct err *err)
{
	char *text;

	if (command.len > BUILD_COMMAND_MAX)
		return err_set(err, ERR_INVALID, 0, "a command of more than %d bytes",
			       BUILD_COMMAND_MAX);
	free(TAKE(*to));
	if (command.len == 0)
		return 0;
	text = strndup((const char *)command.ptr, command.len);
	if (!text)
		return no_memory(err);
	*to = text;
	return 0;
}

int build_context_set_commands(struct build_context *c, struct bytes start, struct bytes ready,
			       struct err *err)
{
	if (start.len == 0 && ready.len == 0)
		return 0;
	if (set_command(&c->start, start, err) < 0)
		return -1;
	return set_command(&c->ready, ready, err);
}

/* --- as text ------------------------------------------------------------------------------ */

static int take_env(struct build_context *c, json_t *env, struct err *err)
{
	const char *name;
	json_t *value;

	/* clang-format off */
	json_object_foreach(env, name, value) {
		if (!json_is_string(value))
			return err_set(err, ERR_INVALID, 0, "a variable that is no string");
		if (build_context_set_env(c, bytes_str(name), json_bytes(value), err) < 0)
			return -1;
	}
	/* clang-format on */
	return 0;
}

static int take_all(const json_t *text, struct build_context *c, struct err *err)
{
	struct bytes user, workdir = { 0 }, start = { 0 }, ready = { 0 };
	json_t *env = NULL;

	if (!json_is_object(text))
		return err_set(err, ERR_INVALID, 0, "what a step left is an object");
	if (json_want_string(text, "user", &user, err) < 0 ||
	    json_may_string(text, "workdir", &workdir, err) < 0 ||
	    json_may_string(text, "start", &start, err) < 0 ||
	    json_may_string(text, "ready", &ready, err) < 0 ||
	    json_may_object(text, "env", &env, err) < 0)
		return -1;
	if (build_context_set_user(c, user, err) < 0 ||
	    build_context_set_workdir(c, workdir, err) < 0 ||
	    build_context_set_commands(c, start, ready, err) < 0)
		return -1;
	return take_env(c, env, err);
}

int build_context_parse(struct bytes in, struct build_context *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *text = NULL;

	if (build_context_init(ret, err) < 0)
		return -1;
	if (json_decode(in, BUILD_CONTEXT_MAX, 4, &text, err) < 0 || take_all(text, ret, err) < 0) {
		build_context_done(ret);
		return -1;
	}
	return 0;
}

int build_context_put(const struct build_context *c, struct buf *out, struct err *err)
{
	AUTO(json_decrefp)
	json_t *text =
		json_pack("{s:s, s:s, s:O}", "user", c->user, "workdir", c->workdir, "env", c->env);

	if (!text)
		return no_memory(err);
	if ((c->start && json_object_set_new(text, "start", json_text(bytes_str(c->start))) < 0) ||
	    (c->ready && json_object_set_new(text, "ready", json_text(bytes_str(c->ready))) < 0))
		return no_memory(err);
	return json_encode(text, out, err);
}
