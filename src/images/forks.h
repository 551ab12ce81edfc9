/* forks.h - the forkserver's process: it forks jobs, and clears up behind them. */
#pragma once

#include "images/places.h"

/* Takes orders (order.h) until the other end of `sock` closes; ends the process. */
_Noreturn void forks_be(const struct config_value *set, const struct places *p, int sock);
