/* h2_past.c - see h2_past.h. */
#include "http/h2_past.h"

#include <nghttp2/nghttp2.h>

void h2_past_opened(struct h2_past *p, uint32_t id)
{
	if (id > p->last)
		p->last = id;
}

void h2_past_over(struct h2_past *p, uint32_t id, bool ours)
{
	p->over[p->next] = (struct h2_over){ id, ours };
	p->next = (p->next + 1) % H2_PAST_MAX;
}

static const struct h2_over *find(const struct h2_past *p, uint32_t id)
{
	for (size_t i = 0; i < H2_PAST_MAX; i++)
		if (p->over[i].id == id)
			return &p->over[i];
	return NULL;
}

/* Priorities are not taken (see h2_session.c), so nghttp2 does not look at them. */
static uint32_t check_priority(const struct h2_frame *f, struct bytes payload)
{
	uint32_t parent;

	if (f->stream == 0)
		return NGHTTP2_PROTOCOL_ERROR;
	if (payload.len < 4)
		return 0; /* the rest is still on its way, and nobody misses it */
	parent = ((uint32_t)payload.ptr[0] << 24 | (uint32_t)payload.ptr[1] << 16 |
		  (uint32_t)payload.ptr[2] << 8 | payload.ptr[3]) &
		 0x7fffffffU;
	return parent == f->stream ? NGHTTP2_PROTOCOL_ERROR : 0;
}

uint32_t h2_past_check(const struct h2_past *p, const struct h2_frame *f, bool open,
		       struct bytes payload)
{
	const struct h2_over *o;

	if (f->type == NGHTTP2_PRIORITY)
		return check_priority(f, payload);
	if ((f->type != NGHTTP2_DATA && f->type != NGHTTP2_HEADERS) || open ||
	    f->stream > p->last || f->stream % 2 == 0)
		return 0;
	o = find(p, f->stream);
	if (o)
		return o->ours ? 0 : NGHTTP2_STREAM_CLOSED;
	/* long over, or passed over when a later one was opened: a request may not begin there */
	return f->type == NGHTTP2_HEADERS ? NGHTTP2_PROTOCOL_ERROR : 0;
}
