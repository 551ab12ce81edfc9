/* snapshot_work.h - the folder of a snapshot, as a thread works on it: made, kept, opened. */
#pragma once

#include "node/files/files_work.h"

int snapshot_work_do(struct files_work *w, struct err *err) NODISCARD; /* the verbs SNAP_* */
/* What is above the template: state, memory, layers, each looked at first. */
int snapshot_work_open(struct files_work *w, bool with_state, struct err *err) NODISCARD;
