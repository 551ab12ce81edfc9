/* fs_call.h - one unary call of filesystem.Filesystem: who asks, and how it is answered.
 *
 * A method answers at once, or (FS_AGAIN) works on in small steps between which others are served.
 */
#pragma once

#include "agent/filesystem/account_names.h"
#include "agent/agent.h"
#include "agent/rpc/rpc_unary.h"
#include "agent/user_path.h"

enum { FS_JSON_DEPTH = 4, FS_ANSWER_MAX = 32 * 1024 * 1024 };
enum { FS_FAILED = -1, FS_DONE = 0, FS_AGAIN = 1 };

struct fs_call {
	struct rpc_unary unary;
	struct agent *agent;
	const struct fs_method *method;
	struct account who;
	struct account_names names;
	struct timer turn;
	struct buf answer;      /* being written */
	struct rpc_fault fault; /* of FS_FAILED */
	void *work;             /* of a method that takes several steps */
};

struct fs_method {
	size_t work_size; /* of `work`, which begins all zero */
	int (*start)(struct fs_call *c, const json_t *message);
	int (*step)(struct fs_call *c); /* after FS_AGAIN, until it says otherwise */
	void (*release)(void *work);    /* whatever happened */
};

void fs_call_run(struct agent *a, struct http_request *rq, const struct fs_method *m);

/* A member of the message, resolved for the user, tidied. False: *ret says why not. */
bool fs_path(const struct agent *a, const struct account *who, const json_t *message,
	     const char *member, char path[static USER_PATH_MAX], struct rpc_fault *ret);

void fs_names(const struct agent *a, struct account_names *ret); /* as they are now */

/* FS_FAILED, with the code that belongs to the error of the system. */
int fs_fail(struct fs_call *c, int sys, const char *what, const char *path);
int fs_refuse(struct fs_call *c, enum connect_code code, const char *what, const char *path);

/* The answer of several methods: {"entry":{...}} */
int fs_answer_entry(struct fs_call *c, const char *path);
