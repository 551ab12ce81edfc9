/* json_write.c - see json_write.h. */
#include "interp/json_write.h"

struct sink {
	struct buf *out;
	struct err *err;
};

static int sink_add(const char *text, size_t n, void *sink)
{
	const struct sink *s = sink;

	return buf_add(s->out, (struct bytes){ (const uint8_t *)text, n }, s->err);
}

int json_write(const json_t *v, size_t flags, struct buf *out, struct err *err)
{
	struct sink s = { out, err };
	size_t before = out->len;

	err_set(err, ERR_EXHAUSTED, 0, "out of memory"); /* unless the buffer says another thing */
	if (v && json_dump_callback(v, sink_add, &s, flags) == 0)
		return 0;
	out->len = before;
	return -1;
}
