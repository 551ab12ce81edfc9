/* devtools_urls.c - see devtools_urls.h. */
#include "gateway/parse/devtools_urls.h"

#include "base/own.h"

/* "ws" and then these, before a mark. */
static const char *const joints[] = { "://", "=" };

enum fits { FITS_NOT, FITS_SO_FAR, FITS };

static enum fits fits_text(struct bytes *in, struct bytes text)
{
	size_t n = in->len < text.len ? in->len : text.len;

	if (memcmp(in->ptr, text.ptr, n) != 0)
		return FITS_NOT;
	if (n < text.len)
		return FITS_SO_FAR;
	*in = bytes_tail(*in, n);
	return FITS;
}

/* What begins at `in`, which is not empty: with which joint, and how long. */
static enum fits fits_url(const struct devtools_urls *u, struct bytes in, const char **ret_joint,
			  size_t *ret_len)
{
	enum fits best = FITS_NOT;

	for (size_t i = 0; i < COUNT(joints); i++) {
		struct bytes rest = in;
		enum fits f = fits_text(&rest, BYTES_LIT("ws"));

		if (f == FITS)
			f = rest.len ? fits_text(&rest, bytes_str(joints[i])) : FITS_SO_FAR;
		if (f == FITS)
			f = rest.len ? fits_text(&rest, bytes_str(u->mark)) : FITS_SO_FAR;
		if (f == FITS) {
			*ret_joint = joints[i];
			*ret_len = in.len - rest.len;
			return FITS;
		}
		best = f > best ? f : best;
	}
	return best;
}

static int put_url(const struct devtools_urls *u, const char *joint, struct buf *out,
		   struct err *err)
{
	return buf_printf(out, err, "%s%s%s", u->secure ? "wss" : "ws", joint, u->host);
}

/* Up to where something may begin: *in is the rest. */
static int pass_plain(struct bytes *in, struct buf *out, struct err *err)
{
	const uint8_t *at = in->len ? memchr(in->ptr, 'w', in->len) : NULL;
	size_t n = at ? (size_t)(at - in->ptr) : in->len;
	int rc = buf_add(out, bytes_head(*in, n), err);

	*in = bytes_tail(*in, n);
	return rc;
}

static int pass_all(struct devtools_urls *u, struct bytes in, struct buf *out, struct err *err)
{
	const char *joint;
	size_t len;

	u->n_held = 0;
	for (;;) {
		if (pass_plain(&in, out, err) < 0)
			return -1;
		if (in.len == 0)
			return 0;
		switch (fits_url(u, in, &joint, &len)) {
		case FITS:
			if (put_url(u, joint, out, err) < 0)
				return -1;
			in = bytes_tail(in, len);
			break;
		case FITS_SO_FAR: /* shorter than one, so there is room */
			memcpy(u->held, in.ptr, in.len);
			u->n_held = in.len;
			return 0;
		case FITS_NOT:
			if (buf_add(out, bytes_head(in, 1), err) < 0)
				return -1;
			in = bytes_tail(in, 1);
		}
	}
}

int devtools_urls_pass(struct devtools_urls *u, struct bytes piece, struct buf *out,
		       struct err *err)
{
	AUTO(buf_done) struct buf both = BUF_MAX(sizeof(u->held) + piece.len);

	if (u->n_read > DEVTOOLS_TEXT_MAX)
		return devtools_urls_end(u, out, err) < 0 ? -1 : buf_add(out, piece, err);
	u->n_read += piece.len;
	if (u->n_held == 0)
		return pass_all(u, piece, out, err);
	if (buf_add(&both, (struct bytes){ u->held, u->n_held }, err) < 0 ||
	    buf_add(&both, piece, err) < 0)
		return -1;
	return pass_all(u, buf_view(&both), out, err);
}

int devtools_urls_end(struct devtools_urls *u, struct buf *out, struct err *err)
{
	struct bytes held = { u->held, u->n_held };

	u->n_held = 0;
	return buf_add(out, held, err);
}
