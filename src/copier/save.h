/* save.h - the memory and the device state of a VM into files: the verbs of protocol.h. */
#pragma once

#include "copier/work.h"

int work_first(struct work *w, struct copier_reply *ret, struct err *err) NODISCARD;
int work_copy(struct work *w, struct copier_reply *ret, struct err *err) NODISCARD;
int work_state(struct work *w, struct copier_reply *ret, struct err *err) NODISCARD;
