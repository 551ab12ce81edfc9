/* relay_page.h - a browser that was led to an address is shown a page. */
#pragma once

#include "gateway/dispatch.h"

bool relay_wants_page(const struct http1_head *head);
int relay_page(const struct dispatch *to, unsigned int status, const char *title,
	       const char *message, struct buf *ret, struct err *err) NODISCARD;
