/* session.h - what this sandbox is to its clients: its tokens, its environment, its defaults.
 *
 * It arrives with the identity message, and is kept in a file on tmpfs as well: a server that
 * is started again must not forget that it asks for a token.
 */
#pragma once

#include "wire/json.h"

enum {
	SESSION_TOKEN_MAX = 256,
	SESSION_ID_MAX = 128,
	SESSION_USER_MAX = 64,
	SESSION_WORKDIR_MAX = 1024,
	SESSION_ENV_MAX = 1024,         /* variables */
	SESSION_JSON_MAX = 1024 * 1024, /* of the message, in bytes */
	SESSION_JSON_DEPTH = 4,
};

struct session {
	char access_token[SESSION_TOKEN_MAX + 1];  /* empty: none asked for */
	char control_token[SESSION_TOKEN_MAX + 1]; /* empty: none asked for */
	char sandbox_id[SESSION_ID_MAX + 1];
	char template_id[SESSION_ID_MAX + 1];
	char default_user[SESSION_USER_MAX + 1];
	char workdir[SESSION_WORKDIR_MAX + 1]; /* empty: the user's home */
	json_t *env;                           /* what every process gets, strings by name */
};

/* A machine that has no identity yet. */
int session_init(struct session *s, const char *default_user, struct err *err) NODISCARD;
void session_done(struct session *s);

/* From the members sandboxId, templateId, env, accessToken, controlToken and, optional,
 * defaultUser and defaultWorkdir (which else stay as they are in `base`). */
int session_parse(const json_t *message, const struct session *base, struct session *ret,
		  struct err *err) NODISCARD;

/* What the file holds before there is a session; anything else that is none seals the sandbox. */
#define SESSION_NONE "none\n"

int session_save(const struct session *s, const char *path, struct err *err) NODISCARD;

/* Leaves *s alone when there is no such file. A file that cannot be understood seals it. */
int session_load(struct session *s, const char *path, struct err *err) NODISCARD;
