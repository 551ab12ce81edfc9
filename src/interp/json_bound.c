/* json_bound.c - see json_bound.h. */
#include "interp/json_bound.h"

#include <malloc.h>

static size_t taken, most = SIZE_MAX;

static void *bounded_malloc(size_t n)
{
	void *p = taken > most || n > most - taken ? NULL : malloc(n);

	taken += malloc_usable_size(p);
	return p;
}

static void bounded_free(void *p)
{
	taken -= malloc_usable_size(p);
	free(p);
}

void json_bound_init(void)
{
	json_set_alloc_funcs(bounded_malloc, bounded_free);
}

json_t *json_bound_load(struct bytes in, size_t flags, json_error_t *why)
{
	json_t *v;

	most = taken + JSON_BOUND_MAX;
	v = json_loadb(in.len ? (const char *)in.ptr : "", in.len, flags, why);
	most = SIZE_MAX;
	return v;
}
