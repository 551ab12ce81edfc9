/* language.h - what differs from one language to the other: its names, its kernel, and how a
 * variable of the environment is set in a kernel that runs. */
#pragma once

#include "interp/kernel_spec.h"

/* "JS" is javascript, "ts" is typescript, nothing is python. False: too long. */
bool language_normalize(struct bytes name, char ret[static KERNEL_NAME_MAX + 1]);
const char *language_kernel(const char *language); /* typescript runs in javascript's */

/* Append code that sets each member of `env`, which has strings. Names that the language cannot
 * have are left out. A language that is not known gets nothing. */
int language_set_env(const char *language, const json_t *env, struct buf *out,
		     struct err *err) NODISCARD;
/* The same to undo it: what is in `before` gets that value again, the rest goes. */
int language_reset_env(const char *language, const json_t *env, const json_t *before,
		       struct buf *out, struct err *err) NODISCARD;

/* Code that goes once through what an execution needs, and leaves nothing that a user could see. */
const char *language_warm(const char *language);

/* Code for a kernel in which no code of the user's has run: from now on its random numbers are its
 * own, whatever it was copied from. "": none is needed. */
const char *language_own(const char *language);

bool language_newline_apart(const char *language); /* see event_of_message() */
