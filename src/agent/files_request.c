/* files_request.c - see files_request.h. */
#include "agent/files_request.h"

#include "agent/access.h"
#include "agent/reply.h"
#include "agent/signature.h"
#include "base/clock.h"
#include "wire/target.h"

enum { USERNAME_TEXT_MAX = 512, NUMBER_TEXT_MAX = 32, SIGNATURE_GIVEN_MAX = 256 };

struct query { /* decoded */
	struct buf path, user, signature, expiration;
	bool has_path, has_user, has_signature, has_expiration;
};

static void query_done(struct query *q)
{
	buf_done(&q->path);
	buf_done(&q->user);
	buf_done(&q->signature);
	buf_done(&q->expiration);
}

static int query_parse(struct bytes query, struct query *ret, struct err *err)
{
	const struct {
		const char *name;
		struct buf *value;
		bool *has;
	} rows[] = {
		{ "path", &ret->path, &ret->has_path },
		{ "username", &ret->user, &ret->has_user },
		{ "signature", &ret->signature, &ret->has_signature },
		{ "signature_expiration", &ret->expiration, &ret->has_expiration },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		if (target_find_param(query, rows[i].name, rows[i].value, rows[i].has, err) < 0)
			return err_wrap(err, "%s", rows[i].name);
	return 0;
}

/* A token in the head, or a signature in the query. The token, if there is one, must be right. */
static int check_access(const struct agent *a, const struct http1_head *h, const struct query *q,
			const char *operation, struct err *err)
{
	struct signed_url u = { buf_view(&q->path), bytes_str(operation), buf_view(&q->user),
				q->has_expiration, 0 };
	struct bytes token;
	uint64_t seconds = 0;

	if (access_client(&a->session, h))
		return 0;
	if (http1_find(h, "x-access-token", &token) > 0)
		return err_set(err, ERR_DENIED, 0,
			       "access token present in header but does not match");
	if (!q->has_signature)
		return err_set(err, ERR_DENIED, 0, "missing signature query parameter");
	if (q->has_expiration &&
	    (!bytes_to_u64(buf_view(&q->expiration), &seconds) || seconds > INT64_MAX))
		return err_set(err, ERR_INVALID, 0, "signature_expiration is not a number");
	u.expiration = (int64_t)seconds;
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
	AUTO(query_done)
	struct query q = {
		.path = BUF_MAX(USER_PATH_MAX),
		.user = BUF_MAX(USERNAME_TEXT_MAX),
		.signature = BUF_MAX(SIGNATURE_GIVEN_MAX),
		.expiration = BUF_MAX(NUMBER_TEXT_MAX),
	};
	const struct http1_head *h = http_request_head(rq);
	struct target t;
	struct err err;

	if (target_split(h->target, &t, &err) < 0 || query_parse(t.query, &q, &err) < 0) {
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
