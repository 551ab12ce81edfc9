/* kvm_probe.h - can this host really run a VM with KVM? */
#pragma once

#include "base/err.h"

/* 0 when it can; -1 and the reason when not. A /dev/kvm that merely opens proves nothing: the
 * processor must have VT-x or SVM, and a tiny guest must run to its end within two seconds.
 * Blocks that long at most. */
int kvm_probe(struct err *err) NODISCARD;
