/* start_request.h - the message of process.Process/Start, read and checked. */
#pragma once

#include "agent/process/process_request.h"
#include "agent/strings.h"

struct start_request {
	json_t *json;          /* owns what is borrowed below */
	json_t *config;        /* its member "process" */
	struct strings argv;   /* cmd, then args */
	json_t *envs;          /* strings by name; NULL: none */
	struct bytes cwd, tag; /* cwd may be empty */
	bool has_tag, has_stdin, has_pty;
	struct pty_size pty;
};

int start_request_parse(struct bytes json, size_t max, struct start_request *ret,
			struct err *err) NODISCARD;
void start_request_done(struct start_request *r);

/* "cmd arg arg", for messages; cut to `size`. */
void start_request_text(const struct start_request *r, char *ret, size_t size);

/* ProcessConfig again, of the members that are known, as lists show it. */
int start_request_config(const struct start_request *r, struct buf *out, struct err *err) NODISCARD;

/* Every string of `vars` into the environment, in place of what is there. NULL: nothing. */
int env_add_all(struct strings *env, json_t *vars, struct err *err) NODISCARD;
