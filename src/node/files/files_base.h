/* files_base.h - the template that a sandbox or snapshot differs from: is it still what it was?
 * For the threads that work on files; all of it blocks. */
#pragma once

#include "node/files/files_work.h"

enum files_need {                                                 /* bits */
		  FILES_NEED_KERNEL = 1u << MANIFEST_KERNEL_FILE, /* to boot */
		  FILES_NEED_DISK = 1u << MANIFEST_DISK_FILE,
		  FILES_NEED_MEMORY = 1u << MANIFEST_MEMORY_FILE,
};

/* The folder of the template; ERR_BASE_LOST: it is not there. */
int files_work_template(struct files_work *w, struct err *err) NODISCARD;
/* Is it what `sums` says, and are the files whole that are needed? */
int files_base_check(struct files_work *w, uint64_t sums, uint32_t need, struct err *err) NODISCARD;
int files_base_read(struct files_work *w, struct err *err) NODISCARD; /* FILES_BASE */
