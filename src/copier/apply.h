/* apply.h - saved pages into the memory of a VM that waits for its device state. */
#pragma once

#include "copier/work.h"

int work_apply(struct work *w, struct copier_reply *ret, struct err *err) NODISCARD;
