/* build_inside.h - what a build is made of; for the sources of build.h only. */
#pragma once

#include "vm/build.h"

/* What is run in the guest, in this order; any may be absent. */
enum build_command { BUILD_TRUST, BUILD_ASK_PACKAGES, BUILD_START, BUILD_READY, BUILD_COMMANDS };

struct build {
	struct build_user *user;
	struct machine *machine;
	struct machine_user machine_user;
	struct build_spec spec;
	const char *step_name; /* a literal */
	struct timer step, deadline, settle;
	struct qmp_call call;
	bool job_ended; /* told by an event, which may overtake the command's own answer */
	int socket;     /* -1: not here yet, or in use */
	bool commanded; /* it is for a command, not for the agent's health */
	struct agent_dial dial;
	struct agent_link agent;
	struct agent_exec exec;
	enum build_command command; /* that is run, or the next */
	struct template_watcher watcher;
	struct template_job *job;
	bool quitting;
};

struct build *build_of_call(struct qmp_call *c);

/* Each step has a deadline of its own, and a name for errors; what was reached has a time. */
void build_begin(struct build *b, const char *name, uint64_t ms);
void build_reached(struct build *b, const char *name);

/* These may fail the build: b is gone then, so each is the last thing its caller does. */
void build_ask(struct build *b, const char *command, json_t *arguments,
	       void (*on_done)(struct qmp_call *c, const json_t *ret, const struct err *err));

/* build_commands.c: what is left to be run, then build_freeze(). */
void build_commands(struct build *b);
void build_commands_socket(struct build *b); /* it is there */
/* build_save.c: from a healthy guest to a sealed template. */
void build_freeze(struct build *b);
