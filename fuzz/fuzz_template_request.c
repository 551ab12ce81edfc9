/* fuzz_template_request.c - promises of template_request.h, and of build_query.h: names and tags
 * are what node knows, numbers are within their limits. */
#include "fuzz/must.h"
#include "gateway/parse/build_query.h"
#include "gateway/parse/template_request.h"

static void must_be_names(const struct template_request *r, bool some)
{
	const json_t *tags = json_object_get(r->text, "tags"), *t;
	char again[NODE_ID_MAX + 1];
	size_t i;

	MUST(r->name[0] && !strchr(r->name, '/') && !strchr(r->name, ':'));
	MUST(json_array_size(tags) <= TEMPLATE_REQUEST_TAGS_MAX);
	MUST(!some || json_array_size(tags) > 0);
	json_array_foreach(tags, i, t)
	{
		MUST(template_tag_parse(json_bytes(t), again));
		MUST(strcmp(again, json_string_value(t)) == 0);
	}
}

static void must_parse(struct bytes in, int how)
{
	struct template_request r;
	struct err err = { 0 };
	int rc = how == 0 ? template_create_parse(in, "red", &r, &err)
			  : template_tags_parse(in, how == 1, "red", &r, &err);

	if (rc < 0) {
		must_say_why(&err);
		MUST(!r.text);
		return;
	}
	must_be_names(&r, how != 0);
	template_request_done(&r);
}

static void must_query(struct bytes in)
{
	struct build_query q;
	struct err err = { 0 };

	if (build_query_logs(in, &q, &err) < 0)
		must_say_why(&err);
	else
		MUST(q.limit <= BUILD_QUERY_LINES_MAX && q.after_ms < UINT64_MAX / 1000000);
	if (build_query_status(in, &q, &err) == 0)
		MUST(!q.newest && q.after_ms == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };

	for (int how = 0; how < 3; how++)
		must_parse(in, how);
	must_query(in);
	return 0;
}
