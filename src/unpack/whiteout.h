/* whiteout.h - entries that hide what lower layers had. */
#pragma once

#include "unpack/image.h"
#include "unpack/path.h"

/* `.wh.NAME` hides NAME beside it, `.wh..wh..opq` all that is in its folder: what lower layers put
 * there, never what this one did, wherever in the layer the entry is. Other names with `.wh..wh.`
 * are notes of a storage driver, and mean nothing.
 * Returns 1 when it was such an entry, 0 when not, -1 when it makes no sense. */
int whiteout_apply(struct image *im, const struct path *p, struct err *err) NODISCARD;
