/* build_context.h - what instructions of a build leave for those that follow, and for sandboxes
 * made of its template: a user, a folder, an environment, and what runs.
 *
 *	{"user", "workdir", "env":{}, "start", "ready"}
 *
 * Kept as JSON beside each step and each template's snapshot. Pure.
 */
#pragma once

#include "wire/json.h"

enum {
	BUILD_USER_MAX = 63,
	BUILD_WORKDIR_MAX = 1023,
	BUILD_CONTEXT_MAX = 64 * 1024, /* as JSON */
	BUILD_COMMAND_MAX = 16 * 1024, /* start or ready */
	BUILD_ENV_MAX = 512,           /* variables */
};

#define BUILD_USER "user" /* of an image, before a USER */

/* "yes": sandboxes of the template show what their network refuses as pages (egress/policy.h). */
#define REFUSAL_PAGES_VARIABLE "HOTCELL_REFUSAL_PAGES"

struct build_context {
	char user[BUILD_USER_MAX + 1];
	char workdir[BUILD_WORKDIR_MAX + 1]; /* absolute; "": the user's home */
	json_t *env;                         /* an object of strings */
	char *start, *ready;                 /* NULL: none */
};

int build_context_init(struct build_context *c, struct err *err) NODISCARD; /* of an image */
int build_context_parse(struct bytes in, struct build_context *ret, struct err *err) NODISCARD;
int build_context_put(const struct build_context *c, struct buf *out, struct err *err) NODISCARD;
int build_context_set_user(struct build_context *c, struct bytes user, struct err *err) NODISCARD;
int build_context_set_workdir(struct build_context *c, struct bytes path,
			      struct err *err) NODISCARD;
int build_context_set_env(struct build_context *c, struct bytes name, struct bytes value,
			  struct err *err) NODISCARD;
bool build_context_shows_pages(const struct build_context *c); /* the variable above */
/* Either may be empty; both empty: those of the parent stay. */
int build_context_set_commands(struct build_context *c, struct bytes start, struct bytes ready,
			       struct err *err) NODISCARD;
void build_context_done(struct build_context *c);
