/* http_rewrite.c - see http_rewrite.h. */
#include "http/http_rewrite.h"

#include "wire/http1_encode.h"
#include "wire/http1_field.h"

static uint8_t folded(uint8_t c)
{
	if (c >= 'A' && c <= 'Z')
		return (uint8_t)(c - 'A' + 'a');
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
}

bool http_rewrite_same(struct bytes a, struct bytes b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (folded(a.ptr[i]) != folded(b.ptr[i]))
			return false;
	return true;
}

static bool is_one_of(const char *const *names, size_t n, struct bytes name)
{
	for (size_t i = 0; i < n; i++)
		if (http_rewrite_same(bytes_str(names[i]), name))
			return true;
	return false;
}

bool http_rewrite_may_set(struct bytes name)
{
	static const char *const never[] = {
		"host",    "connection", "content-length", "transfer-encoding", "te",
		"trailer", "upgrade",    "keep-alive",     "proxy-connection",  "expect",
	};

	return !is_one_of(never, COUNT(never), name);
}

static bool is_left_out(const struct http_rewrite *r, struct bytes name)
{
	static const char *const upgrade[] = { "upgrade", "http2-settings" };

	for (size_t i = 0; i < r->n_add; i++)
		if (http_rewrite_same(r->add[i].name, name))
			return true;
	return http_rewrite_same(name, BYTES_LIT("connection")) ||
	       (r->no_upgrade && is_one_of(upgrade, COUNT(upgrade), name));
}

/* Written anew: it could name a field that is added, and the next hop would take that out. */
static int put_connection(const struct http_rewrite *r, const struct http1_head *h, struct buf *out,
			  struct err *err)
{
	struct bytes value;

	if (http1_find(h, "connection", &value) == 0)
		return 0;
	value = http1_keep_alive(h) ? BYTES_LIT("keep-alive") : BYTES_LIT("close");
	if (!r->no_upgrade && http1_upgrade(h).len > 0)
		value = BYTES_LIT("Upgrade");
	return http1_put_field(out, BYTES_LIT("Connection"), value, err);
}

static int put_fields(const struct http_rewrite *r, const struct http1_head *h, struct buf *out,
		      struct err *err)
{
	for (size_t i = 0; i < h->n_fields; i++)
		if (!is_left_out(r, h->fields[i].name) &&
		    http1_put_field(out, h->fields[i].name, h->fields[i].value, err) < 0)
			return -1;
	if (put_connection(r, h, out, err) < 0)
		return -1;
	for (size_t i = 0; i < r->n_add; i++)
		if (http1_put_field(out, r->add[i].name, r->add[i].value, err) < 0)
			return -1;
	return 0;
}

int http_rewrite_head(const struct http_rewrite *r, struct bytes head, const struct http1_head *h,
		      struct buf *out, struct err *err)
{
	struct bytes line;

	if (!bytes_cut(&head, '\n', &line))
		return err_set(err, ERR_INVALID, 0, "a head without a line");
	if (buf_add(out, line, err) < 0 || buf_add(out, BYTES_LIT("\n"), err) < 0 ||
	    put_fields(r, h, out, err) < 0)
		return -1;
	return http1_put_end(out, err);
}
