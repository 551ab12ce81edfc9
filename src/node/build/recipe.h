/* recipe.h - what a build is made of, out of what a gateway passed on. Pure; fuzzed.
 *
 *	{"fromImage", "sealed" or "fromTemplate" or "fromArchive":true,
 *	 "steps":[{"type","args":[],"force","filesHash"}],
 *	 "startCmd", "readyCmd", "force"}
 *
 * Members of steps that only clients need are passed over.
 */
#pragma once

#include "wire/json.h"
#include "wire/sha256.h"

enum {
	RECIPE_BYTES_MAX = 1024 * 1024 + 64 * 1024, /* of the JSON */
	RECIPE_DEPTH = 8,
	RECIPE_STEPS_MAX = 256,
	RECIPE_ARGS_MAX = 256, /* of one step */
	RECIPE_FROM_MAX = 511, /* an image's reference, or a template's */
};

enum recipe_kind { RECIPE_RUN, RECIPE_COPY, RECIPE_ENV, RECIPE_WORKDIR, RECIPE_USER, RECIPE_KINDS };

struct recipe_step {
	enum recipe_kind kind;
	bool force;                 /* it is run, whatever was found of it */
	char files[SHA256_HEX + 1]; /* of a COPY: which upload */
	size_t n;                   /* its arguments */
	const json_t *args;         /* strings without a NUL; borrowed from the recipe */
};

struct recipe {
	json_t *text; /* owned: the rest borrows from it */
	char image[RECIPE_FROM_MAX + 1], parent[RECIPE_FROM_MAX + 1]; /* one of them at most */
	bool archive;              /* neither: what an operator imports */
	const char *sealed;        /* credentials for the image's registry, base64; NULL: none */
	struct bytes start, ready; /* commands; or none */
	bool force;                /* of every step */
	size_t n;
	struct recipe_step steps[RECIPE_STEPS_MAX];
};

/* The message of a refusal is for whoever asked for the build. */
int recipe_take(json_t *text, struct recipe *ret, struct err *err) NODISCARD;
int recipe_parse(struct bytes in, struct recipe *ret, struct err *err) NODISCARD;
void recipe_done(struct recipe *r);

const char *recipe_kind_name(enum recipe_kind kind);            /* "RUN" */
struct bytes recipe_arg(const struct recipe_step *s, size_t i); /* none beyond the last */
/* "RUN pip install x", cut off after `max` bytes; for logs. */
int recipe_say(const struct recipe_step *s, size_t max, struct buf *out, struct err *err) NODISCARD;
