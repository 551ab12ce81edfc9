/* gunzip.c - zlib's inflate, fed in pieces. */
#include "agent/files/gunzip.h"

#include <errno.h>
#include <limits.h>
#include <zlib.h>

enum { GZIP_ONLY = 15 + 16 }; /* the largest window, and no other format than gzip */

struct gunzip {
	z_stream z;
	bool whole; /* a member just ended */
	uint8_t out[GUNZIP_PIECE_MAX];
};

int gunzip_open(struct gunzip **ret, struct err *err)
{
	struct gunzip *g = calloc(1, sizeof(*g));

	if (!g)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "open gzip");
	if (inflateInit2(&g->z, GZIP_ONLY) != Z_OK) {
		free(g);
		return err_set(err, ERR_EXHAUSTED, 0, "open gzip");
	}
	*ret = g;
	return 0;
}

void gunzip_close(struct gunzip *g)
{
	if (!g)
		return;
	(void)inflateEnd(&g->z);
	free(g);
}

/* One call of inflate: what it took off *in, and what came out. */
static int turn(struct gunzip *g, struct bytes *in, struct bytes *ret)
{
	uInt give = in->len < INT_MAX ? (uInt)in->len : INT_MAX;
	int rc;

	/* zlib does not write here, but an older one does not say so */
	memcpy(&g->z.next_in, &in->ptr, sizeof(in->ptr));
	g->z.avail_in = give;
	g->z.next_out = g->out;
	g->z.avail_out = sizeof(g->out);
	rc = inflate(&g->z, Z_NO_FLUSH);
	*in = bytes_tail(*in, give - g->z.avail_in);
	*ret = (struct bytes){ g->out, sizeof(g->out) - g->z.avail_out };
	g->z.next_in = NULL;
	return rc;
}

enum decode gunzip_next(struct gunzip *g, struct bytes *in, struct bytes *ret, struct err *err)
{
	for (;;) {
		int rc;

		if (g->whole && in->len == 0)
			return DECODE_MORE;
		if (g->whole && inflateReset(&g->z) != Z_OK)
			abort(); /* only of a stream that was never opened */
		g->whole = false;
		rc = turn(g, in, ret);
		g->whole = rc == Z_STREAM_END;
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
			err_set(err, rc == Z_MEM_ERROR ? ERR_EXHAUSTED : ERR_INVALID, 0,
				"the body is not gzip: %s", g->z.msg ? g->z.msg : "broken");
			return DECODE_BAD;
		}
		if (ret->len > 0)
			return DECODE_OK;
		if (rc == Z_BUF_ERROR || (in->len == 0 && !g->whole))
			return DECODE_MORE;
	}
}

bool gunzip_is_whole(const struct gunzip *g)
{
	return g->whole;
}
