/* limits_json.c - limits from and to JSON. */
#include "gateway/api/limits_json.h"

static json_t *limit_json(uint32_t n)
{
	return n ? json_integer(n) : json_null();
}

json_t *limits_json(const struct store_limits *l)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "sandboxes", limit_json(l->sandboxes),
			 "vcpus", limit_json(l->vcpus), "memoryMB", limit_json(l->memory_mib),
			 "diskMB", limit_json(l->disk_mib), "paused", limit_json(l->paused));
}

static int take_limit(const json_t *body, const char *name, uint32_t *ret, struct err *err)
{
	int64_t n = *ret;

	if (json_is_null(json_object_get(body, name)))
		n = 0;
	else if (json_may_int(body, name, 0, UINT32_MAX, &n, err) < 0)
		return -1;
	*ret = (uint32_t)n;
	return 0;
}

int limits_read(const json_t *body, struct store_limits *l, struct err *err)
{
	if (take_limit(body, "sandboxes", &l->sandboxes, err) < 0 ||
	    take_limit(body, "vcpus", &l->vcpus, err) < 0 ||
	    take_limit(body, "memoryMB", &l->memory_mib, err) < 0 ||
	    take_limit(body, "diskMB", &l->disk_mib, err) < 0)
		return -1;
	return take_limit(body, "paused", &l->paused, err);
}
