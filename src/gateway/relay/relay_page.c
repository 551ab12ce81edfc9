/* relay_page.c - why a sandbox cannot be seen, for people.
 *
 * Only for a browser that was led to the address: scripts of a page have the same User-Agent and
 * want to read JSON.
 */
#include "gateway/relay/relay_page.h"

#include "wire/http1_field.h"

static bool contains(struct bytes in, const char *word) /* in any case; the word is small */
{
	struct bytes w = bytes_str(word);

	for (; in.len >= w.len; in = bytes_tail(in, 1))
		if (byte_lower(in.ptr[0]) == w.ptr[0] && bytes_eq_nocase(bytes_head(in, w.len), w))
			return true;
	return false;
}

static bool has(const struct http1_head *head, const char *name, struct bytes *ret)
{
	*ret = (struct bytes){ 0 };
	return http1_find(head, name, ret) > 0 && ret->len > 0;
}

/* Browsers say it themselves, and scripts cannot. */
static bool is_by_script(const struct http1_head *head)
{
	static const char *const modes[] = { "cors", "no-cors", "same-origin", "websocket" };
	struct bytes value;

	if (has(head, "sec-fetch-mode", &value)) {
		for (size_t i = 0; i < COUNT(modes); i++)
			if (bytes_eq_nocase(value, bytes_str(modes[i])))
				return true;
		if (bytes_eq_nocase(value, BYTES_LIT("navigate")))
			return false;
	}
	return has(head, "x-requested-with", &value);
}

bool relay_wants_page(const struct http1_head *head)
{
	static const char *const browsers[] = { "mozilla", "chrome", "safari", "firefox",
						"edge",    "opera",  "msie" };
	struct bytes value;

	if (has(head, "accept", &value) && contains(value, "application/json") &&
	    !contains(value, "text/html"))
		return false;
	if (is_by_script(head) || !has(head, "user-agent", &value))
		return false;
	for (size_t i = 0; i < COUNT(browsers); i++)
		if (contains(value, browsers[i]))
			return true;
	return false;
}

/* Nothing in it comes from the client but an identifier of [a-z0-9] and a number. */
int relay_page(const struct dispatch *to, const struct relay_page_text *text, struct buf *ret,
	       struct err *err)
{
	if (buf_printf(ret, err,
		       "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
		       "<meta name=\"viewport\" content=\"width=device-width\">\n"
		       "<title>%s</title>\n"
		       "<style>:root{color-scheme:light dark}body{font:1.1rem/1.5 sans-serif;"
		       "max-width:40rem;margin:15vh auto;padding:0 1rem}</style>\n"
		       "<h1>%s</h1>\n<p>%s</p>\n",
		       text->title, text->title, text->message) < 0)
		return -1;
	if (text->way && buf_printf(ret, err, "<p><a href=\"%s\">Open the sandbox's page</a></p>\n",
				    text->way) < 0)
		return -1;
	return buf_printf(ret, err,
			  "<p><small>Sandbox <code>%s</code>, port %u, status %u</small></p>\n"
			  "</html>\n",
			  to->id, (unsigned int)to->port, text->status);
}
