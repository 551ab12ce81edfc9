/* context_steps.h - what a context does with its kernel, one execution after the other; for
 * context.c. */
#pragma once

#include "interp/context.h"
#include "interp/language.h"

#define CONTEXT_CLOSED    "Connection to the execution was closed before the execution was finished"
#define CONTEXT_RESTARTED "Context was restarted"

void context_steps_init(struct context *c);
void context_advance(struct context *c); /* begin with the next, if there is one and all is ready */
/* A message of its kernel. */
void context_hear(struct context *c, enum kernel_channel from, const struct kernel_message *m);
/* The kernel is closed. What runs in it ends with this error; what waits goes on waiting. */
void context_stop(struct context *c, const char *name, const char *value, const char *why);
bool context_step_warm(struct context *c); /* false: it cannot be asked */
void context_ready(struct context *c);     /* in context.c: it is there for executions */
void context_start(struct context *c);     /* in context.c: a new kernel. May free the context. */
