/* crew.h - a second thread: what can be done side by side takes half as long.
 *
 * It is started when the process is confined already and has nothing that the process has not.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

enum { CREW_MEMBERS = 2 }; /* with the caller */

struct crew_task { /* embedded by the caller */
	/* One of the units, by member 0 or 1; several at once, in any order. */
	int (*run)(struct crew_task *t, unsigned int member, uint64_t unit, struct err *err);
};

struct crew;

/* NULL: there is no second thread to be had, and the caller does all by itself. It ends with the
 * process. */
struct crew *crew_start(void);

/* All units from 0 on; returns when nobody works on any. Failure: the first that was seen, and not
 * all were begun. `c` may be NULL. */
int crew_run(struct crew *c, struct crew_task *t, uint64_t units, struct err *err) NODISCARD;
