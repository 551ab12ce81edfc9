/* devtools_page.h - the first page of a port with Chromium's DevTools, which has none of its own:
 * the tabs of the browser, each with a link to look at it and to take it over. */
#pragma once

#include <stdbool.h>

struct relay;

/* True: it was asked for, and answered. Who asks may enter. */
bool devtools_page_answers(const struct relay *r);
