/* kernel_version.h - which Linux an uncompressed kernel image is: "6.12.63". */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* Blocks. Finds the text after "Linux version " that a kernel prints first when it boots. */
int kernel_version(int fd, char *ret, size_t size, struct err *err) NODISCARD;
