/* vmm_filter.h - the system calls a VMM process may not make, on top of QEMU's own filter.
 *
 * It denies what would widen the guest's reach if QEMU fell: page-fault and tracing tricks, new
 * namespaces, mounts, keys, BPF, io_uring, processes, sockets other than AF_UNIX, watching files,
 * and room for files that RLIMIT_FSIZE does not count. exec is allowed exactly once: the filter
 * hands it to a listener, whose holder lets the first one go on and then closes the listener; from
 * then on the kernel answers ENOSYS, and the filter no other listener.
 */
#pragma once

#include "base/err.h"

/* Load it into this process, for good. no_new_privs must be set. Returns the listener. */
int vmm_filter_load(struct err *err) NODISCARD;

/* In another process: let one exec pass. Blocks until it comes; the caller then closes the
 * listener, and no other passes. */
int vmm_filter_pass_exec(int listener, struct err *err) NODISCARD;
