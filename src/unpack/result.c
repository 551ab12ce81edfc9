/* result.c - JSON by hand: four kinds of lines, and text that was hostile before it came here. */
/* #syscalls: write */
#include "unpack/result.h"

#include <errno.h>

#include "unpack/limits.h"

enum { LINE_MAX_BYTES = 64 * 1024 };

/* ASCII as it is, control characters escaped, everything else a question mark. */
static int add_text(struct buf *b, const char *text, struct err *err)
{
	if (buf_add(b, BYTES_LIT("\""), err) < 0)
		return -1;
	for (; *text; text++) {
		uint8_t c = (uint8_t)*text;
		int rc;

		if (c == '"' || c == '\\')
			rc = buf_printf(b, err, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			rc = buf_printf(b, err, "\\u%04x", c);
		else
			rc = buf_printf(b, err, "%c", c < 0x80 ? c : '?');
		if (rc < 0)
			return -1;
	}
	return buf_add(b, BYTES_LIT("\""), err);
}

static int send_line(int fd, const struct buf *b, struct err *err)
{
	struct bytes left = buf_view(b);

	while (left.len > 0) {
		ssize_t n = write(fd, left.ptr, left.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, ERR_UNAVAILABLE, errno, "tell what was done");
		left = bytes_tail(left, (size_t)n);
	}
	return 0;
}

int result_layer_done(struct image *im, struct err *err)
{
	AUTO(buf_done) struct buf b = BUF_MAX(LINE_MAX_BYTES);

	im->told = im->counts.bytes;
	if (im->tell < 0)
		return 0;
	if (buf_printf(
		    &b, err,
		    "{\"progress\":{\"layer\":%u,\"layers\":%u,\"entries\":%lu,\"bytes\":%lu}}\n",
		    im->tree.layer, im->n_layers, im->n_entries, im->counts.bytes) < 0)
		return -1;
	return send_line(im->tell, &b, err);
}

int result_progress(struct image *im, struct err *err)
{
	return im->counts.bytes - im->told < UNPACK_PROGRESS_STEP ? 0 : result_layer_done(im, err);
}

static int add_counts(struct buf *b, const struct counts *c, struct err *err)
{
	return buf_printf(b, err,
			  "\"files\":%lu,\"folders\":%lu,\"symlinks\":%lu,\"hardLinks\":%lu,"
			  "\"fifos\":%lu,\"bytes\":%lu,\"whiteouts\":%lu,\"skippedDevices\":%lu,"
			  "\"skippedXattrs\":%lu",
			  c->files, c->folders, c->symlinks, c->hard_links, c->fifos, c->bytes,
			  c->whiteouts, c->devices, c->xattrs);
}

static int add_furnished(struct buf *b, const struct furnished *f, struct err *err)
{
	if (buf_printf(b, err, ",\"loader\":") < 0 || add_text(b, f->loader, err) < 0 ||
	    buf_printf(b, err, ",\"added\":[") < 0)
		return -1;
	for (size_t i = 0; i < f->n_added; i++)
		if (buf_printf(b, err, i > 0 ? "," : "%s", "") < 0 ||
		    add_text(b, f->added[i], err) < 0)
			return -1;
	return buf_printf(b, err, "]");
}

int result_ok(int fd, const struct image *im, const struct furnished *f, struct err *err)
{
	AUTO(buf_done) struct buf b = BUF_MAX(LINE_MAX_BYTES);

	if (buf_printf(&b, err, "{\"ok\":{") < 0 || add_counts(&b, &im->counts, err) < 0 ||
	    add_furnished(&b, f, err) < 0 || buf_printf(&b, err, "}}\n") < 0)
		return -1;
	return send_line(fd, &b, err);
}

void result_error(int fd, const struct err *why, unsigned int layer, const char *path)
{
	AUTO(buf_done) struct buf b = BUF_MAX(LINE_MAX_BYTES);
	struct err err = { 0 };
	int rc = buf_printf(&b, &err,
			    "{\"error\":{\"code\":\"%s\",\"message\":", err_name(why->code));

	if (rc == 0)
		rc = add_text(&b, why->msg, &err);
	if (rc == 0 && layer > 0)
		rc = buf_printf(&b, &err, ",\"layer\":%u", layer);
	if (rc == 0 && path[0])
		rc = buf_printf(&b, &err, ",\"path\":") < 0 ? -1 : add_text(&b, path, &err);
	if (rc == 0)
		rc = buf_printf(&b, &err, "}}\n");
	if (rc == 0)
		(void)!send_line(fd, &b, &err);
}
