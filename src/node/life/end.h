/* end.h - the end of a sandbox, whoever wants it; and when its time is over. */
#pragma once

#include "node/life/sandbox.h"

/* `reason` is what its owner is told, `why` is for the log. In any state but ENDING. */
void sandbox_end(struct sandbox *s, enum node_reason reason, const char *why);
/* `asked` is answered when it is gone. In any state. */
void sandbox_end_asked(struct sandbox *s, struct door_asked *asked, enum node_reason reason);
void sandbox_free(struct sandbox *s); /* at node's own end: nothing is told to anybody */

void sandbox_set_deadline(struct sandbox *s); /* of a RUNNING one: its lease */
