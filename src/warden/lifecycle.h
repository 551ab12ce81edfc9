/* lifecycle.h - starting and stopping one VM, as warden sees it: jobs and their endings. */
#pragma once

#include "warden/warden.h"

bool lifecycle_template_busy(const struct warden *w, const char *id); /* a VM or a job is in it */
struct slot_place *lifecycle_ready_slot(struct warden *w, uint32_t i, struct err *err);
int lifecycle_start(struct warden *w, const struct call *call, struct err *err) NODISCARD;
int lifecycle_stop(struct warden *w, const struct call *call, struct err *err) NODISCARD;
void lifecycle_exited(struct warden *w, struct cell *c);
void lifecycle_retry(struct warden *w);
