/* fuzz_record_query.c - promises of the queries of metrics and logs: within limits, and what they
 * ask for can be. The first byte chooses which.
 */
#include "fuzz/must.h"
#include "gateway/parse/record_query.h"

static const struct {
	int (*parse)(struct bytes query, struct record_query *ret, struct err *err);
	bool is_logs;
} queries[] = {
	{ record_query_metrics, false },
	{ record_query_logs_v1, true },
	{ record_query_logs_v2, true },
};

static void check(const struct record_query *q, bool is_logs)
{
	static const char *const levels[] = { "debug", "info", "warn", "error" };

	MUST(memchr(q->search, 0, sizeof(q->search)));
	MUST(q->level < RECORD_LEVELS);
	MUST(!is_logs || (q->limit >= 1 && q->limit <= RECORD_LIMIT_MAX));
	MUST(!q->until_ns || q->after_ns < q->until_ns);
	for (size_t i = 0; i < COUNT(levels); i++) {
		AUTO(json_decrefp)
		json_t *entry = json_pack("{s:s, s:o*}", "level", levels[i], "message",
					  json_string(q->search));

		/* what was searched for is found in itself, if it is text at all */
		MUST(record_level_of(entry) == i);
		MUST(record_query_matches(q, entry) ==
		     (i >= q->level && (!q->search[0] || json_object_get(entry, "message"))));
	}
}

static void check_ids(struct bytes in)
{
	AUTO(buf_done) struct buf ids = BUF_MAX(RECORD_IDS_MAX * (NODE_ID_MAX + 1));
	struct err err = { 0 };

	if (record_query_ids(in, &ids, &err) == 0) {
		MUST(ids.len > 0 && ids.len <= ids.max);
		return;
	}
	must_say_why(&err);
	MUST(err.code == ERR_INVALID);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	struct record_query q;
	struct err err = { 0 };
	size_t which = size > 0 ? data[0] % (COUNT(queries) + 1) : 0;

	if (which == COUNT(queries)) {
		check_ids(bytes_tail(in, 1));
		return 0;
	}
	if (queries[which].parse(bytes_tail(in, 1), &q, &err) < 0) {
		must_say_why(&err);
		MUST(err.code == ERR_INVALID);
		return 0;
	}
	check(&q, queries[which].is_logs);
	return 0;
}
