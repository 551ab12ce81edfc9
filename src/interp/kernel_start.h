/* kernel_start.h - the process of a kernel, and the file that tells it where to listen. */
#pragma once

#include "interp/kernel.h"

enum { KERNEL_END_SIZE = 128 };

struct kernel_ends { /* where its channels are */
	char at[KERNEL_CHANNELS][KERNEL_END_SIZE];
};

/* Makes k->folder with the connection file, and starts the program: in `cwd`, in a session of its
 * own, with no descriptor but /dev/null and our standard error. It ends when we do. */
int kernel_start(struct kernel *k, const struct kernel_spec *spec, const char *cwd,
		 struct kernel_ends *ret, struct err *err) NODISCARD;
void kernel_folder_remove(struct kernel *k);
