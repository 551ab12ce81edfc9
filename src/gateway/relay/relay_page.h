/* relay_page.h - a browser that was led to an address is shown a page. */
#pragma once

#include "gateway/dispatch.h"

bool relay_wants_page(const struct http1_head *head);
struct relay_page_text {
	unsigned int status;
	const char *title, *message;
	const char *way; /* NULL: no way on is shown; as it stands in HTML */
};
int relay_page(const struct dispatch *to, const struct relay_page_text *text, struct buf *ret,
	       struct err *err) NODISCARD;
