/* build_query.c - numbers and words of a query for lines of a log. */
#include "gateway/parse/build_query.h"

#include "wire/target.h"

enum { PARAM_MAX = 64 };
#define OFFSET_MAX    1000000000ull
#define CURSOR_MAX_MS (UINT64_MAX / 1000000 - 1) /* in nanoseconds it still fits */

static int get_number(struct bytes query, const char *name, uint64_t max, uint64_t *ret,
		      struct err *err)
{
	AUTO(buf_done) struct buf v = BUF_MAX(PARAM_MAX);

	if (target_param(query, name, &v, err) < 0)
		return -1;
	if (v.len > 0 && (!bytes_to_u64(buf_view(&v), ret) || *ret > max))
		return err_set(err, ERR_INVALID, 0, "%s is not valid", name);
	return 0;
}

static int get_level(struct bytes query, struct build_query *ret, struct err *err)
{
	static const char *const levels[] = { "debug", "info", "warn", "error" };
	AUTO(buf_done) struct buf v = BUF_MAX(PARAM_MAX);

	if (target_param(query, "level", &v, err) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(levels) && v.len > 0; i++)
		if (bytes_eq(buf_view(&v), bytes_str(levels[i])))
			(void)bytes_to_str(buf_view(&v), ret->level, sizeof(ret->level));
	if (v.len > 0 && !ret->level[0])
		return err_set(err, ERR_INVALID, 0, "level must be debug, info, warn or error");
	return 0;
}

static int get_direction(struct bytes query, struct build_query *ret, struct err *err)
{
	AUTO(buf_done) struct buf v = BUF_MAX(PARAM_MAX);

	if (target_param(query, "direction", &v, err) < 0)
		return -1;
	ret->newest = bytes_eq(buf_view(&v), BYTES_LIT("backward"));
	if (v.len > 0 && !ret->newest && !bytes_eq(buf_view(&v), BYTES_LIT("forward")))
		return err_set(err, ERR_INVALID, 0, "direction must be forward or backward");
	return 0;
}

/* What a query cannot say is the client's fault, whatever failed. */
static int of_client(int rc, struct err *err)
{
	if (rc < 0)
		err->code = ERR_INVALID;
	return rc;
}

static int both(struct bytes query, struct build_query *ret, struct err *err)
{
	uint64_t limit = BUILD_QUERY_LINES_MAX;

	*ret = (struct build_query){ 0 };
	if (get_number(query, "logsOffset", OFFSET_MAX, &ret->offset, err) < 0 ||
	    get_number(query, "limit", BUILD_QUERY_LINES_MAX, &limit, err) < 0 ||
	    get_level(query, ret, err) < 0)
		return -1;
	ret->limit = (uint32_t)limit;
	return 0;
}

int build_query_status(struct bytes query, struct build_query *ret, struct err *err)
{
	return of_client(both(query, ret, err), err);
}

int build_query_logs(struct bytes query, struct build_query *ret, struct err *err)
{
	int rc = both(query, ret, err);

	if (rc == 0)
		rc = get_number(query, "cursor", CURSOR_MAX_MS, &ret->after_ms, err);
	if (rc == 0)
		rc = get_direction(query, ret, err);
	return of_client(rc, err);
}
