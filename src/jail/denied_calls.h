/* denied_calls.h - system calls that no program of others may make, QEMU or any other: what would
 * widen its reach if it fell. Both return -1 when a rule could not be added.
 */
#pragma once

#include <seccomp.h>

#include "base/own.h"

int denied_calls_add(scmp_filter_ctx ctx) NODISCARD;
/* Processes, not threads. */
int denied_processes_add(scmp_filter_ctx ctx) NODISCARD;
