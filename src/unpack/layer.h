/* layer.h - a tar file, plain or compressed with gzip or zstd, applied to the image. */
#pragma once

#include "unpack/image.h"

/* From `fd`'s position to the end of the archive. im->layer says which one it is; after a failure
 * im->path names the entry. */
int layer_apply(struct image *im, int fd, struct err *err) NODISCARD;
