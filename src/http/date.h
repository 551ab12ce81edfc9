/* date.h - "Sun, 06 Nov 1994 08:49:37 GMT": the one form that is still written (RFC
 * 9110, 5.6.7).
 */
#pragma once

#include "base/bytes.h"

enum { HTTP_DATE_MAX = 40 }; /* with its NUL */

void http_date_put(int64_t seconds, char ret[static HTTP_DATE_MAX]); /* since 1970 */
bool http_date_parse(struct bytes text, int64_t *ret);
