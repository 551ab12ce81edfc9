/* record_query.c - the queries of metrics and logs. */
#include "gateway/parse/record_query.h"

#include "base/clock.h"
#include "wire/target.h"

enum { PARAM_MAX = 64, NSEC_PER_MS = 1000000 };

#define SECONDS_MAX 7258118400ull /* the year 2200 */

static const char *const levels[RECORD_LEVELS] = {
	[RECORD_DEBUG] = "debug",
	[RECORD_INFO] = "info",
	[RECORD_WARN] = "warn",
	[RECORD_ERROR] = "error",
};

/* A number; *ret keeps what it held when it is not there. */
static int get_number(struct bytes query, const char *name, uint64_t most, uint64_t *ret,
		      struct err *err)
{
	AUTO(buf_done) struct buf v = BUF_MAX(PARAM_MAX);

	if (target_param(query, name, &v, err) < 0)
		return -1;
	if (v.len > 0 && (!bytes_to_u64(buf_view(&v), ret) || *ret > most))
		return err_set(err, ERR_INVALID, 0, "%s must be a number from 0 to %llu", name,
			       (unsigned long long)most);
	return 0;
}

static int get_limit(struct bytes query, struct record_query *ret, struct err *err)
{
	uint64_t limit = RECORD_LIMIT_MAX;

	if (get_number(query, "limit", RECORD_LIMIT_MAX, &limit, err) < 0)
		return -1;
	if (limit == 0)
		return err_set(err, ERR_INVALID, 0, "limit must be between 1 and %d",
			       RECORD_LIMIT_MAX);
	ret->limit = (uint32_t)limit;
	return 0;
}

static int of_client(int rc, struct err *err) /* whose fault it always is */
{
	if (rc < 0)
		err->code = ERR_INVALID;
	return rc;
}

static int metrics(struct bytes query, struct record_query *ret, struct err *err)
{
	uint64_t start = 0, end = UINT64_MAX; /* not given */

	if (get_number(query, "start", SECONDS_MAX, &start, err) < 0 ||
	    get_number(query, "end", SECONDS_MAX, &end, err) < 0)
		return -1;
	if (start > end)
		return err_set(err, ERR_INVALID, 0, "start must not be after end");
	ret->after_ns = start > 0 ? start * NSEC_PER_SEC - 1 : 0;
	ret->until_ns = end < UINT64_MAX ? (end + 1) * NSEC_PER_SEC - 1 : 0;
	return 0;
}

int record_query_metrics(struct bytes query, struct record_query *ret, struct err *err)
{
	*ret = (struct record_query){ 0 };
	return of_client(metrics(query, ret, err), err);
}

static int logs_v1(struct bytes query, struct record_query *ret, struct err *err)
{
	uint64_t start = 0;

	if (get_number(query, "start", SECONDS_MAX * 1000, &start, err) < 0)
		return -1;
	ret->after_ns = start > 0 ? start * NSEC_PER_MS - 1 : 0;
	return get_limit(query, ret, err);
}

int record_query_logs_v1(struct bytes query, struct record_query *ret, struct err *err)
{
	*ret = (struct record_query){ 0 };
	return of_client(logs_v1(query, ret, err), err);
}

static int get_direction(struct bytes query, struct record_query *ret, struct err *err)
{
	AUTO(buf_done) struct buf v = BUF_MAX(PARAM_MAX);

	if (target_param(query, "direction", &v, err) < 0)
		return -1;
	ret->newest = !bytes_eq(buf_view(&v), BYTES_LIT("forward"));
	if (ret->newest && v.len > 0 && !bytes_eq(buf_view(&v), BYTES_LIT("backward")))
		return err_set(err, ERR_INVALID, 0, "direction must be forward or backward");
	return 0;
}

static int get_level(struct bytes query, struct record_query *ret, struct err *err)
{
	AUTO(buf_done) struct buf v = BUF_MAX(PARAM_MAX);

	if (target_param(query, "level", &v, err) < 0)
		return -1;
	if (v.len == 0)
		return 0;
	for (size_t i = 0; i < RECORD_LEVELS; i++)
		if (bytes_eq(buf_view(&v), bytes_str(levels[i]))) {
			ret->level = (enum record_level)i;
			return 0;
		}
	return err_set(err, ERR_INVALID, 0, "level must be debug, info, warn or error");
}

static int get_search(struct bytes query, struct record_query *ret, struct err *err)
{
	AUTO(buf_done) struct buf v = BUF_MAX(RECORD_SEARCH_MAX);

	if (target_param(query, "search", &v, err) < 0 ||
	    !bytes_to_str(buf_view(&v), ret->search, sizeof(ret->search)))
		return err_set(err, ERR_INVALID, 0, "search must be at most %d bytes",
			       RECORD_SEARCH_MAX);
	return 0;
}

static int logs_v2(struct bytes query, struct record_query *ret, struct err *err)
{
	uint64_t cursor = UINT64_MAX; /* not given */
	bool given;

	if (get_number(query, "cursor", SECONDS_MAX * 1000, &cursor, err) < 0 ||
	    get_direction(query, ret, err) < 0 || get_limit(query, ret, err) < 0 ||
	    get_level(query, ret, err) < 0)
		return -1;
	given = cursor < UINT64_MAX;
	/* of the millisecond named all is given: a page may end inside one */
	if (given && ret->newest)
		ret->until_ns = (cursor + 1) * NSEC_PER_MS;
	else if (given && cursor > 0)
		ret->after_ns = cursor * NSEC_PER_MS - 1;
	return get_search(query, ret, err);
}

int record_query_logs_v2(struct bytes query, struct record_query *ret, struct err *err)
{
	*ret = (struct record_query){ 0 };
	return of_client(logs_v2(query, ret, err), err);
}

int record_query_ids(struct bytes query, struct buf *out, struct err *err)
{
	bool found = false;

	if (target_find_param(query, "sandbox_ids", out, &found, err) < 0)
		return of_client(-1, err);
	if (out->len == 0)
		return err_set(err, ERR_INVALID, 0, "sandbox_ids is missing");
	return 0;
}

enum record_level record_level_of(const json_t *entry)
{
	const char *name = json_string_value(json_object_get(entry, "level"));

	for (size_t i = 0; name && i < RECORD_LEVELS; i++)
		if (strcmp(name, levels[i]) == 0)
			return (enum record_level)i;
	return RECORD_INFO;
}

bool record_query_matches(const struct record_query *q, const json_t *entry)
{
	const char *message = json_string_value(json_object_get(entry, "message"));

	return record_level_of(entry) >= q->level &&
	       (!q->search[0] || (message && strstr(message, q->search)));
}
