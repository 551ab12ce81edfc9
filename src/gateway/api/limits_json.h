/* limits_json.h - what a key or a team may have at once, as the admin door says it. */
#pragma once

#include "store/store.h"
#include "wire/json.h"

json_t *limits_json(const struct store_limits *l); /* null: no limit. NULL: no memory */

/* Of a body. Absent: as it was. 0 or null: none. */
int limits_read(const json_t *body, struct store_limits *l, struct err *err) NODISCARD;
