/* json_write.h - jansson's ways to write a value that json_encode() of wire/ does not have. */
#pragma once

#include "wire/json.h"

/* Appends, all or nothing. `flags` are jansson's. A value that is NULL is "out of memory". */
int json_write(const json_t *v, size_t flags, struct buf *out, struct err *err) NODISCARD;
