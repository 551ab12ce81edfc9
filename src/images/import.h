/* import.h - an image from a file: what `docker save` writes, or a tar file of an OCI layout.
 *
 * The file is a regular one, so it is looked at once for where everything is, and then only what
 * the image is made of is read. Memory is bounded whatever it holds.
 */
#pragma once

#include "images/job.h"

enum { IMPORT_FILES_MAX = 4096 };

int import_image(struct job *j, bool layers, struct image *ret, struct err *err) NODISCARD;
