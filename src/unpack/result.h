/* result.h - what the program says: lines of JSON, of which the last is the result. */
#pragma once

#include "unpack/furnish.h"

/* {"progress": ...}: when enough has happened since the last one, and after each layer. */
int result_progress(struct image *im, struct err *err) NODISCARD;
int result_layer_done(struct image *im, struct err *err) NODISCARD;
/* {"ok": ...} */
int result_ok(int fd, const struct image *im, const struct furnished *f, struct err *err) NODISCARD;
/* {"error": ...}: layer 0 and an empty path are left out. Nobody can be told when it fails. */
void result_error(int fd, const struct err *why, unsigned int layer, const char *path);
