/* step_script.h - what a shell in the guest is told to do for an instruction.
 *
 * What a client wrote goes into a script as quoted text only; the command of a RUN is the script.
 * Pure.
 */
#pragma once

#include "node/build/build_context.h"
#include "node/build/recipe.h"

enum { STEP_SCRIPT_MAX = 512 * 1024 };

/* Where a COPY finds what was uploaded; the folder goes with the script. */
#define STEP_COPY_DIR     "/tmp/.hotcell-copy"
#define STEP_COPY_ARCHIVE STEP_COPY_DIR "/archive"

/* As whom: a RUN as its own user, all others as root. */
struct bytes step_user(const struct recipe_step *s, const struct build_context *c);
int step_script(const struct recipe_step *s, const struct build_context *c, struct buf *out,
		struct err *err) NODISCARD;
/* What the step leaves, by what its script printed. */
int step_leaves(const struct recipe_step *s, struct bytes printed, struct build_context *c,
		struct err *err) NODISCARD;

/* In single quotes, whatever it is. */
int shell_quote(struct bytes text, struct buf *out, struct err *err) NODISCARD;
