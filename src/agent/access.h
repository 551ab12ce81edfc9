/* access.h - which requests may pass: the client's token, the host's token, and who asks. */
#pragma once

#include "agent/session.h"
#include "wire/http1_field.h"

/* The text that clients compare with. */
#define ACCESS_DENIED                                                                \
	"unauthorized access, please provide a valid access token or method signing" \
	" if supported"

/* X-Access-Token; true for everybody when the session has none. */
bool access_client(const struct session *s, const struct http1_head *h);

/* X-Hotcell-Control; true for everybody before the first identity. */
bool access_control(const struct session *s, const struct http1_head *h);

/* The user named by Authorization: Basic, with any password; appended to `out`. Empty when there
 * is none, or another scheme. ERR_INVALID: malformed. */
int access_user(const struct http1_head *h, struct buf *out, struct err *err) NODISCARD;
