/* json_write.c - see json_write.h. */
#include "interp/json_write.h"

struct sink {
	struct buf *out;
	struct err *err;
	bool full; /* jansson does not look at what became of the names of members */
};

static int sink_add(const char *text, size_t n, void *sink)
{
	struct sink *s = sink;

	s->full =
		s->full || buf_add(s->out, (struct bytes){ (const uint8_t *)text, n }, s->err) < 0;
	return s->full ? -1 : 0;
}

int json_write(const json_t *v, size_t flags, struct buf *out, struct err *err)
{
	struct sink s = { .out = out, .err = err };
	size_t before = out->len;

	err_set(err, ERR_EXHAUSTED, 0, "out of memory"); /* unless the buffer says another thing */
	if (v && json_dump_callback(v, sink_add, &s, flags) == 0 && !s.full)
		return 0;
	out->len = before;
	return -1;
}
