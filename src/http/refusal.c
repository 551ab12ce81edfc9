/* refusal.c - see refusal.h. */
#include "http/refusal.h"

#include "wire/http1_encode.h"
#include "wire/http1_field.h"

#define PAGE_STYLE                                                    \
	"<style>:root{color-scheme:light dark}body{font:1.1rem/1.5 "  \
	"sans-serif;max-width:40rem;margin:15vh auto;padding:0 1rem;" \
	"overflow-wrap:anywhere}dt{font-weight:bold}dd{margin:0 0 1rem}</style>\n"

/* --- which ---------------------------------------------------------------------------------- */

static bool lists_html(struct bytes accept)
{
	struct bytes one, type;

	while (bytes_next(&accept, ',', &one)) {
		type = one;
		if (!bytes_cut(&one, ';', &type))
			type = one;
		if (bytes_eq_nocase(bytes_trim(type), BYTES_LIT("text/html")))
			return true;
	}
	return false;
}

enum refusal_form refusal_form(struct bytes first)
{
	struct http1_head h;
	struct bytes accept;
	size_t scanned = 0, used;
	struct err err;

	if (http1_head_end(first, &scanned, &used, &err) != DECODE_OK ||
	    http1_parse_request(bytes_head(first, used), &h, &err) < 0)
		return REFUSAL_LINES;
	return http1_find(&h, "accept", &accept) == 1 && lists_html(accept) ? REFUSAL_PAGE
									    : REFUSAL_LINES;
}

/* --- the page ------------------------------------------------------------------------------- */

/* Nothing of it is markup, and nothing but printable ASCII passes. */
static int put_text(struct buf *out, const char *text, struct err *err)
{
	for (; *text; text++) {
		char c = *text >= ' ' && *text < 127 ? *text : '?';
		const char *as = c == '&'    ? "&amp;"
				 : c == '<'  ? "&lt;"
				 : c == '>'  ? "&gt;"
				 : c == '"'  ? "&quot;"
				 : c == '\'' ? "&#39;"
					     : NULL;

		if (buf_add(out, as ? bytes_str(as) : (struct bytes){ (uint8_t *)&c, 1 }, err) < 0)
			return -1;
	}
	return 0;
}

static int put_part(struct buf *out, const char *before, const char *text, const char *after,
		    struct err *err)
{
	return buf_add(out, bytes_str(before), err) < 0 || put_text(out, text, err) < 0
		       ? -1
		       : buf_add(out, bytes_str(after), err);
}

static int put_head(struct buf *out, const struct refusal *r, struct err *err)
{
	const char *what = r->status == 502 ? "Not reached: " : "Refused: ";
	const char *host = r->host[0] ? r->host : "this request";

	if (buf_printf(out, err,
		       "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
		       "<meta name=\"viewport\" content=\"width=device-width\">\n<title>%s",
		       what) < 0 ||
	    put_part(out, "", host, "</title>\n" PAGE_STYLE "<h1>", err) < 0)
		return -1;
	return put_part(out, what, host, "</h1>\n", err);
}

static int put_page(struct buf *out, const struct refusal *r, struct err *err)
{
	static const char refused[] = "<p>This sandbox may not reach it.</p>\n",
			  failed[] =
				  "<p>This sandbox may reach it, but that came to nothing.</p>\n";

	if (put_head(out, r, err) < 0 ||
	    put_part(out, r->status == 502 ? failed : refused, "", "<dl>\n", err) < 0 ||
	    put_part(out, "<dt>Why</dt><dd>", r->why, "</dd>\n", err) < 0 ||
	    (r->fix && put_part(out, "<dt>Fix</dt><dd>", r->fix, "</dd>\n", err) < 0))
		return -1;
	if (r->host[0] && put_part(out, "<dt>More, inside the sandbox</dt><dd><code>hotcell-why ",
				   r->host, "</code></dd>\n", err) < 0)
		return -1;
	return buf_printf(out, err, "</dl>\n<p><small>Hotcell, status %u</small></p>\n</html>\n",
			  r->status);
}

/* --- both ----------------------------------------------------------------------------------- */

static int put_lines(struct buf *out, const struct refusal *r, struct err *err)
{
	return buf_printf(out, err, "hotcell: %s: %s\n%s%s%s",
			  r->status == 502 ? "not reached" : "not allowed", r->why,
			  r->fix ? "hotcell: fix: " : "", r->fix ? r->fix : "", r->fix ? "\n" : "");
}

int refusal_put(struct buf *out, const struct refusal *r, enum refusal_form form, struct err *err)
{
	static const char of_page[] = "text/html; charset=utf-8\r\ncache-control: no-store\r\n"
				      "content-security-policy: default-src 'none'; style-src "
				      "'unsafe-inline'\r\nx-content-type-options: nosniff";
	AUTO(buf_done) struct buf body = BUF_MAX(REFUSAL_MAX);
	bool page = form == REFUSAL_PAGE;

	if ((page ? put_page(&body, r, err) : put_lines(&body, r, err)) < 0)
		return -1;
	if (buf_printf(out, err,
		       "HTTP/1.1 %u %s\r\ncontent-type: %s\r\ncontent-length: %zu\r\n"
		       "connection: close\r\n\r\n",
		       r->status, http1_reason(r->status),
		       page ? of_page : "text/plain; charset=utf-8", body.len) < 0)
		return -1;
	return buf_add(out, buf_view(&body), err);
}
