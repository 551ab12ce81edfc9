/* close_later.h - close a file without waiting for it.
 *
 * Who closes the last descriptor of a file without a name waits until its blocks are given back:
 * most of a second for a gigabyte. On a loop nobody has that time.
 */
#pragma once

#include "net/loop.h"

/* Takes `fd`; a negative one is fine. Where there is no thread it is closed here. */
void close_later(struct loop *l, int fd);
