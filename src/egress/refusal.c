/* refusal.c - see refusal.h. */
#include "egress/refusal.h"

int refusal_write(struct stream *s, unsigned int status, const char *why, const char *fix,
		  struct err *err)
{
	char text[REFUSAL_TEXT_MAX + 256], body[REFUSAL_TEXT_MAX];

	snprintf(body, sizeof(body), "hotcell: %s: %s\n%s%s%s",
		 status == 403 ? "not allowed" : "not reached", why, fix ? "hotcell: fix: " : "",
		 fix ? fix : "", fix ? "\n" : "");
	snprintf(text, sizeof(text),
		 "HTTP/1.1 %u %s\r\ncontent-type: text/plain; charset=utf-8\r\n"
		 "content-length: %zu\r\nconnection: close\r\n\r\n%s",
		 status, status == 403 ? "Forbidden" : "Bad Gateway", strlen(body), body);
	return stream_write(s, bytes_str(text), err);
}
