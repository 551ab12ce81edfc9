/* files_request.c - see files_request.h. */
#include "agent/files_request.h"

#include "agent/reply.h"
#include "wire/target.h"

enum { USERNAME_TEXT_MAX = 512 };

static bool find_user(struct agent *a, struct http_request *rq, struct bytes query,
		      struct account *ret)
{
	AUTO(buf_done) struct buf name = BUF_MAX(USERNAME_TEXT_MAX);
	struct err err;
	bool found;

	if (target_find_param(query, "username", &name, &found, &err) < 0) {
		reply_fail(rq, 400, "username: %s", err.msg);
		return false;
	}
	if (name.len == 0 && buf_add(&name, bytes_str(a->session.default_user), &err) < 0) {
		reply_fail(rq, 500, "%s", err.msg);
		return false;
	}
	if (agent_account(a, buf_view(&name), ret, &err) == 0)
		return true;
	reply_fail(rq, 401, "error looking up user '%.*s': user: unknown user %.*s", (int)name.len,
		   (const char *)name.ptr, (int)name.len, (const char *)name.ptr);
	return false;
}

bool files_request_read(struct agent *a, struct http_request *rq, struct files_request *ret)
{
	AUTO(buf_done) struct buf path = BUF_MAX(USER_PATH_MAX);
	struct target t;
	struct err err;

	if (target_split(http_request_head(rq)->target, &t, &err) < 0 ||
	    target_find_param(t.query, "path", &path, &ret->has_path, &err) < 0) {
		reply_fail(rq, 400, "path: %s", err.msg);
		return false;
	}
	if (!find_user(a, rq, t.query, &ret->who))
		return false;
	if (user_path(buf_view(&path), &ret->who, a->session.workdir, ret->path, &err) < 0) {
		reply_fail(rq, 400, "error resolving path '%.*s': %s", (int)path.len,
			   (const char *)path.ptr, err.msg);
		return false;
	}
	return true;
}
