/* session.c - from JSON, to JSON. */
#include "agent/session.h"

#include <errno.h>

#include "agent/machine/files_small.h"
#include "base/log.h"
#include "base/random.h"

enum { SEALED_TOKEN_BYTES = 32 };

int session_init(struct session *s, const char *default_user, struct err *err)
{
	*s = (struct session){ 0 };
	if (!bytes_to_str(bytes_str(default_user), s->default_user, sizeof(s->default_user)))
		return err_set(err, ERR_INVALID, 0, "default user '%s'", default_user);
	s->env = json_pack("{s:s}", "E2B_SANDBOX", "true");
	return s->env ? 0 : err_set(err, ERR_EXHAUSTED, ENOMEM, "make an environment");
}

void session_done(struct session *s)
{
	explicit_bzero(s->access_token, sizeof(s->access_token));
	explicit_bzero(s->control_token, sizeof(s->control_token));
	json_decref(s->env);
	s->env = NULL;
}

/* Something that can stand in a header field: no blanks, no control characters. */
static bool is_token(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++)
		if (b.ptr[i] <= ' ' || b.ptr[i] >= 127)
			return false;
	return true;
}

static bool is_id(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++) {
		uint8_t c = b.ptr[i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		      c == '-' || c == '_'))
			return false;
	}
	return b.len > 0;
}

static int take_id(const json_t *message, const char *name, char *ret, size_t size, struct err *err)
{
	struct bytes b;

	if (json_want_string(message, name, &b, err) < 0)
		return -1;
	if (!is_id(b) || !bytes_to_str(b, ret, size))
		return err_set(err, ERR_INVALID, 0, "%s is not an id", name);
	return 0;
}

static int take_tokens(const json_t *message, struct session *ret, struct err *err)
{
	struct bytes access, control;

	if (json_want_string(message, "accessToken", &access, err) < 0 ||
	    json_want_string(message, "controlToken", &control, err) < 0)
		return -1;
	if (!is_token(access) ||
	    !bytes_to_str(access, ret->access_token, sizeof(ret->access_token)))
		return err_set(err, ERR_INVALID, 0, "accessToken is not a token");
	/* without one anybody in the guest could ask to be somebody else */
	if (control.len == 0 || !is_token(control) ||
	    !bytes_to_str(control, ret->control_token, sizeof(ret->control_token)))
		return err_set(err, ERR_INVALID, 0, "controlToken is not a token");
	return 0;
}

static int take_defaults(const json_t *message, const struct session *base, struct session *ret,
			 struct err *err)
{
	struct bytes user = bytes_str(base->default_user), workdir = bytes_str(base->workdir);

	if (json_may_string(message, "defaultUser", &user, err) < 0 ||
	    json_may_string(message, "defaultWorkdir", &workdir, err) < 0)
		return -1;
	if (user.len == 0 || !bytes_to_str(user, ret->default_user, sizeof(ret->default_user)))
		return err_set(err, ERR_INVALID, 0, "defaultUser is not a user name");
	if (!bytes_to_str(workdir, ret->workdir, sizeof(ret->workdir)))
		return err_set(err, ERR_INVALID, 0, "defaultWorkdir is too long");
	return 0;
}

static int check_env(json_t *env, struct err *err)
{
	const char *name;
	json_t *value;

	if (json_object_size(env) > SESSION_ENV_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d variables in env",
			       SESSION_ENV_MAX);
	json_object_foreach(env, name,
			    value) if (name[0] == '\0' || strchr(name, '=') ||
				       !json_is_string(value)) return err_set(err, ERR_INVALID, 0,
									      "env: variable '%s'",
									      name);
	return 0;
}

/* What the client asked for first, so that it cannot hide what the sandbox is. */
static int take_env(const json_t *message, struct session *ret, struct err *err)
{
	json_t *env;

	if (json_want_object(message, "env", &env, err) < 0 || check_env(env, err) < 0)
		return -1;
	ret->env = json_copy(env);
	if (!ret->env || json_object_set_new(ret->env, "E2B_SANDBOX", json_string("true")) < 0 ||
	    json_object_set_new(ret->env, "E2B_SANDBOX_ID", json_string(ret->sandbox_id)) < 0 ||
	    json_object_set_new(ret->env, "E2B_TEMPLATE_ID", json_string(ret->template_id)) < 0)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "make an environment");
	return 0;
}

int session_parse(const json_t *message, const struct session *base, struct session *ret,
		  struct err *err)
{
	AUTO(session_done) struct session s = { 0 };

	if (take_id(message, "sandboxId", s.sandbox_id, sizeof(s.sandbox_id), err) < 0 ||
	    take_id(message, "templateId", s.template_id, sizeof(s.template_id), err) < 0 ||
	    take_tokens(message, &s, err) < 0 || take_defaults(message, base, &s, err) < 0 ||
	    take_env(message, &s, err) < 0)
		return -1;
	*ret = s;
	s.env = NULL;
	return 0;
}

/* A session that no client can have a token for: what is left when the file is broken. */
static int session_sealed(struct session *ret, struct err *err)
{
	if (session_init(ret, "user", err) < 0)
		return -1;
	random_hex(ret->access_token, SEALED_TOKEN_BYTES);
	random_hex(ret->control_token, SEALED_TOKEN_BYTES);
	return 0;
}

int session_save(const struct session *s, const char *path, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(2 * SESSION_JSON_MAX);
	AUTO(json_decrefp)
	json_t *v = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:O}", "accessToken", s->access_token,
			      "controlToken", s->control_token, "sandboxId", s->sandbox_id,
			      "templateId", s->template_id, "defaultUser", s->default_user,
			      "defaultWorkdir", s->workdir, "env", s->env);

	if (!v)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "make the session's text");
	if (json_encode(v, &text, err) < 0)
		return -1;
	/* in place: a text that was cut off, by the end of the agent, is no session and seals it */
	return file_settle(path, buf_view(&text), 0600, err);
}

static int load(const struct session *base, struct bytes text, struct session *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	if (json_decode(text, 2 * SESSION_JSON_MAX, SESSION_JSON_DEPTH, &v, err) < 0)
		return -1;
	return session_parse(v, base, ret, err);
}

int session_load(struct session *s, const char *path, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(2 * SESSION_JSON_MAX);
	struct session loaded;
	struct err why = { 0 };

	if (file_read(path, &text, &why) < 0 && why.code == ERR_NOT_FOUND)
		return 0;
	if (bytes_eq(buf_view(&text), bytes_str(SESSION_NONE)))
		return 0;
	if (why.code != ERR_NONE || load(s, buf_view(&text), &loaded, &why) < 0) {
		log_error("sealed, for the session was lost: %s", why.msg);
		if (session_sealed(&loaded, err) < 0)
			return -1;
	}
	session_done(s);
	*s = loaded;
	return 0;
}
