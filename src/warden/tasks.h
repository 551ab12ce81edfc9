/* tasks.h - jobs in flight. */
#pragma once

#include "warden/warden.h"

/* `extra`: TASK_FDS_MAX descriptors in args that the job needs, 0 or -1 for no more; NULL: none. */
struct task *tasks_start(struct warden *w, job_fn *fn, const void *args, const int *extra,
			 task_done_fn *done, const struct waiting *who, struct err *err) NODISCARD;
void tasks_readable(struct warden *w, uint32_t index);
int tasks_expire(struct warden *w); /* returns how long epoll may wait, in ms; -1 is for ever */
void tasks_sweep(struct warden *w); /* remove what belongs to no cell, then serve */
