/* files_disk.h - the sum of a paused sandbox's disk: taken, compared. It blocks. */
#pragma once

#include "node/files/files_work.h"

enum { FILES_DISK_SUM_MAX = 1024 * 1024 * 1024 }; /* allocated: a second or a few */

/* 0: it has more than FILES_DISK_SUM_MAX bytes, and no sum. */
int files_disk_sum(int disk, uint32_t *ret, struct err *err) NODISCARD;
int files_disk_check(int disk, uint32_t want, struct err *err) NODISCARD; /* 0: it has none */
int files_disk_read(struct files_work *w, struct err *err) NODISCARD;     /* FILES_DISK */
