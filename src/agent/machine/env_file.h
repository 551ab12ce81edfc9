/* env_file.h - /etc/environment: what the image wants every process to have, as PAM reads it. */
#pragma once

#include "agent/strings.h"

enum { ENV_FILE_MAX = 64 * 1024 };

/* Adds NAME=value of each line; comments, `export ` and quotes around a value are left out, and so
 * is a line that is none of these: a broken file is no reason to start nothing. */
int env_file_parse(struct bytes text, struct strings *env, struct err *err) NODISCARD;

/* The same of a file, which may be missing, too large or no file at all: then nothing is added. */
int env_file_add(const char *path, struct strings *env, struct err *err) NODISCARD;
