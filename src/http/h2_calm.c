/* h2_calm.c - see h2_calm.h. */
#include "http/h2_calm.h"

/* --- frames ---------------------------------------------------------------------------------- */

static void parse(const uint8_t h[static H2_FRAME_HEAD], struct h2_frame *ret)
{
	*ret = (struct h2_frame){
		.len = (uint32_t)h[0] << 16 | (uint32_t)h[1] << 8 | h[2],
		.type = h[3],
		.flags = h[4],
		.stream =
			((uint32_t)h[5] << 24 | (uint32_t)h[6] << 16 | (uint32_t)h[7] << 8 | h[8]) &
			0x7fffffffU,
	};
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static struct bytes take(struct bytes *in, size_t n)
{
	struct bytes front = bytes_head(*in, n);

	*in = bytes_tail(*in, n);
	return front;
}

bool h2_cut_next(struct h2_cut *k, struct bytes *in, struct bytes *ret, struct h2_frame *ret_frame)
{
	bool whole = false;
	size_t n = 0;

	if (k->preface < H2_PREFACE_LEN) {
		n = least(H2_PREFACE_LEN - k->preface, in->len);
		k->preface += n;
		*ret = take(in, n);
		return false;
	}
	if (k->left == 0) {
		n = least(H2_FRAME_HEAD - k->have, in->len);
		memcpy(k->head + k->have, in->ptr, n);
		k->have += n;
		whole = k->have == H2_FRAME_HEAD;
	}
	if (whole) {
		parse(k->head, ret_frame);
		k->have = 0;
		k->left = ret_frame->len;
	}
	if (k->left > 0) {
		size_t more = least(k->left, in->len - n);

		k->left -= (uint32_t)more;
		n += more;
	}
	*ret = take(in, n);
	return whole;
}

bool h2_cut_at_edge(const struct h2_cut *k)
{
	return k->preface == H2_PREFACE_LEN && k->have == 0 && k->left == 0;
}

/* --- purses ---------------------------------------------------------------------------------- */

static void purse_init(struct h2_purse *p, int64_t max, int64_t per_s, uint64_t now_ms)
{
	*p = (struct h2_purse){ max, max, per_s, now_ms };
}

static void fill(struct h2_purse *p, int64_t n)
{
	p->left = p->left + n < p->max ? p->left + n : p->max;
}

static bool spend(struct h2_purse *p, uint64_t now_ms)
{
	uint64_t s = (now_ms - p->at_ms) / 1000;

	if (s > 0) {
		p->at_ms += s * 1000;
		fill(p, s < (uint64_t)p->max ? (int64_t)s * p->per_s : p->max);
	}
	return p->left-- > 0;
}

void h2_calm_init(struct h2_calm *c, uint64_t now_ms)
{
	*c = (struct h2_calm){ 0 };
	purse_init(&c->frames, H2_CALM_MAX, H2_CALM_PER_S, now_ms);
	purse_init(&c->resets, H2_PROVOKED_MAX, H2_PROVOKED_PER_S, now_ms);
}

/* Those that are not have limits of their own. */
bool h2_calm_is_idle(const struct h2_frame *f)
{
	enum { DATA = 0, HEADERS = 1, CONTINUATION = 9 };

	if (f->len > 0 && (f->type == DATA || f->type == HEADERS || f->type == CONTINUATION))
		return false;
	return f->type != DATA || !(f->flags & 1); /* the end of a stream is of use */
}

bool h2_calm_frame(struct h2_calm *c, const struct h2_frame *f, uint64_t now_ms)
{
	return !h2_calm_is_idle(f) || spend(&c->frames, now_ms);
}

bool h2_calm_nothing(struct h2_calm *c, uint64_t now_ms)
{
	return spend(&c->frames, now_ms);
}

bool h2_calm_reset(struct h2_calm *c, uint64_t now_ms)
{
	return spend(&c->resets, now_ms);
}

void h2_calm_earn(struct h2_calm *c, int64_t n)
{
	fill(&c->frames, n);
}

void h2_calm_moved(struct h2_calm *c, size_t bytes)
{
	c->bytes += bytes;
	fill(&c->frames, (int64_t)(c->bytes / H2_CALM_BYTES));
	c->bytes %= H2_CALM_BYTES;
}
