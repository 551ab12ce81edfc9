/* exec_once.h - two processes at both ends of a SOCK_SEQPACKET pair, one about to exec.
 *
 *	the new one: exec_once_ready(), exec; exec_once_failed() if that returns
 *	the other:   exec_once_wait(), exec_once_pass()
 *
 * A process that needs no filter execs at once; the other calls exec_once_done().
 */
#pragma once

#include "base/err.h"

/* Load the VMM's filter and hand its listener over: the next exec waits for exec_once_pass(). */
int exec_once_ready(int sync, struct err *err) NODISCARD;
_Noreturn void exec_once_failed(int sync, const struct err *why); /* ends the process */

/* The listener of the other process, when it is ready; its reason when it is not. */
int exec_once_wait(int sync, struct err *err) NODISCARD;
/* Takes the listener. Let one exec pass, and none after it. */
int exec_once_pass(int sync, int listener, struct err *err) NODISCARD;
/* Until the socket closes, which it does at exec; or why there was none. */
int exec_once_done(int sync, struct err *err) NODISCARD;
