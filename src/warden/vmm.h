/* vmm.h - QEMU's arguments: the one place that knows them. */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "warden/protocol.h"

enum vmm_accel { VMM_KVM, VMM_TCG };

/* Descriptors QEMU finds open when it starts. */
enum vmm_fd {
	VMM_FD_QMP = 3, /* listening */
	VMM_FD_TAP,
	VMM_FD_DISK,
	VMM_FD_OVERLAY,
	VMM_FD_STATE,
	VMM_FD_KVM,    /* only with VMM_KVM */
	VMM_FD_LAYERS, /* the first of them */
	VMM_FD_END = VMM_FD_LAYERS + WARDEN_LAYERS_MAX,
};

struct vmm {
	const char *path;
	const char *cpu_model;
	char cmdline[512]; /* of the guest kernel */
	enum vmm_accel accel;
};

enum { VMM_ARGS_MAX = 192, VMM_TEXT_MAX = 8192 };

struct vmm_args {
	char *argv[VMM_ARGS_MAX + 1]; /* ends with NULL; points into text */
	size_t n;
	char text[VMM_TEXT_MAX];
	size_t used;
	bool overflow;
};

/* Build: boots the kernel, memory shared with the file, the disk itself writable.
 * Otherwise: waits for device state or, with `boot`, boots; memory private, on the disk so many
 * layers that are only read, and an overlay on top. */
struct vmm_start {
	bool build, boot;
	size_t layers;
};
int vmm_arguments(const struct vmm *v, const struct warden_sizes *sizes,
		  const struct vmm_start *how, struct vmm_args *ret, struct err *err) NODISCARD;

/* The arguments a snapshot depends on, as text: equal text, same machine. */
int vmm_machine_text(const struct vmm *v, const struct warden_sizes *sizes, char *ret, size_t size,
		     struct err *err) NODISCARD;
