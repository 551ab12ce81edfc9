/* http1_host.h - which host a request means: the Host field, and a target that names one. */
#pragma once

#include "wire/http1_head.h"

/* `name`, `name:port`, `1.2.3.4:port`, `[::1]:port`: letters, digits, '-', '.', '_' and '~' in a
 * name, brackets around IPv6 (kept in *ret_host). *ret_port is 0 when there is none. */
bool http1_split_host(struct bytes value, struct bytes *ret_host, uint16_t *ret_port);

/* Part of http1_parse_request(): Host is there (HTTP/1.1), once, well-formed, and agrees with the
 * target when that names a host too. */
int http1_check_host(const struct http1_head *h, struct err *err) NODISCARD;
