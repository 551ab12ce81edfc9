/* files_request.c - see files_request.h. */
#include "agent/files/files_request.h"

#include <assert.h>

#include "agent/access.h"
#include "agent/reply.h"
#include "base/clock.h"
#include "wire/files_query.h"
#include "wire/target.h"

static_assert((int)FILES_PATH_MAX == (int)USER_PATH_MAX, "a path that can be given can be kept");

/* A token in the head, or a signature in the query. The token, if there is one, must be right. */
static int check_access(const struct agent *a, const struct http1_head *h,
			const struct files_query *q, const char *operation, struct err *err)
{
	struct signed_url u;
	struct bytes token;

	if (access_client(&a->session, h))
		return 0;
	if (http1_find(h, "x-access-token", &token) > 0)
		return err_set(err, ERR_DENIED, 0,
			       "access token present in header but does not match");
	if (!q->has_signature)
		return err_set(err, ERR_DENIED, 0, "missing signature query parameter");
	if (files_query_signed(q, operation, &u, err) < 0)
		return -1;
	return signature_check(&u, bytes_str(a->session.access_token), buf_view(&q->signature),
			       (int64_t)(clock_wall_ns() / NSEC_PER_SEC), err);
}

static bool find_user(struct agent *a, struct http_request *rq, struct bytes name,
		      struct account *ret)
{
	struct err err;

	if (name.len == 0)
		name = bytes_str(a->session.default_user);
	if (agent_account(a, name, ret, &err) == 0)
		return true;
	reply_fail(rq, 401, "error looking up user '%.*s': user: unknown user %.*s", (int)name.len,
		   (const char *)name.ptr, (int)name.len, (const char *)name.ptr);
	return false;
}

bool files_request_read(struct agent *a, struct http_request *rq, const char *operation,
			struct files_request *ret)
{
	AUTO(files_query_done) struct files_query q = { 0 };
	const struct http1_head *h = http_request_head(rq);
	struct target t;
	struct err err;

	if (target_split(h->target, &t, &err) < 0 || files_query_parse(t.query, &q, &err) < 0) {
		reply_fail(rq, 400, "%s", err.msg);
		return false;
	}
	if (check_access(a, h, &q, operation, &err) < 0) {
		reply_fail(rq, err.code == ERR_DENIED ? 401 : 400, "%s", err.msg);
		return false;
	}
	if (!find_user(a, rq, buf_view(&q.user), &ret->who))
		return false;
	ret->has_path = q.has_path && q.path.len > 0;
	if (user_path(buf_view(&q.path), &ret->who, a->session.workdir, ret->path, &err) < 0) {
		reply_fail(rq, 400, "error resolving path '%.*s': %s", (int)q.path.len,
			   (const char *)q.path.ptr, err.msg);
		return false;
	}
	return true;
}
