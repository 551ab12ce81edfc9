/* protocol.h - what may be asked of warden: fixed messages over a SOCK_SEQPACKET unix socket.
 *
 * A request carries ids, integers and descriptors, nothing else; warden derives every path, uid and
 * argument itself. One request is one datagram, answered by one reply with the same tag, in any
 * order. This header is the only part of warden/ that others may include.
 */
#pragma once

#include <stdint.h>

enum {
	WARDEN_VERSION_MIN = 6, /* of this protocol, for the hello (base/link_hello.h) */
	WARDEN_VERSION_MAX = 6,
	WARDEN_ID_MAX = 63,
	WARDEN_REQUEST_MAX = 23,
	WARDEN_FDS_MAX = 16, /* descriptors in one message */
	WARDEN_LIST_MAX = 16,
	WARDEN_NO_SLOT = UINT32_MAX,
};

enum warden_verb {
#define VERB(verb, serve, needs, fds_min, fds_max) verb,
#include "warden/verbs.def"
	WARDEN_VERBS,
};

enum warden_flags {
	WARDEN_BOOT = 1u << 0,  /* RESTORE: boot from the disk; no state is waited for */
	WARDEN_APPLY = 1u << 1, /* COPY: into the VM's memory, not out of it */
};

/* Descriptors of WARDEN_RESTORE, in this order. The first is needed. */
enum warden_restore_fd {
	WARDEN_FD_OVERLAY, /* qcow2, read and written; the VM's own */
	WARDEN_FD_STATE,   /* read; without it: the template's */
	WARDEN_FD_MEMORY,  /* read; without it: the template's */
	WARDEN_FD_LAYERS,  /* and more: qcow2 files from the template's disk upwards; read */
	WARDEN_LAYERS_MAX = WARDEN_FDS_MAX - WARDEN_FD_LAYERS,
};

/* Names under which a VM's QEMU knows what warden gave it. */
#define WARDEN_NODE_OVERLAY_FILE "overlay-file" /* block node; empty while building */
#define WARDEN_STATE_FILE        "/dev/fdset/3" /* where a template's device state goes, */
#define WARDEN_STATE_URI         "file:" WARDEN_STATE_FILE /* and where it is loaded from */
#define WARDEN_SAVE_FILE         "/vm/state" /* where a running VM's goes: for its copier to take */

#define WARDEN_QMP_PATH "vms/%s/qmp.sock" /* below the state folder; for warden's client alone */
/* A published template's files, below the state folder; readable by all, writable by nobody. */
#define WARDEN_TEMPLATE_PATH  "templates/%s"
#define WARDEN_OPEN_PREFIX    ".build-" /* before the name of one that is not published yet */
#define WARDEN_TEMPLATE_FILES "kernel", "disk", "overlay", "memory", "state", "manifest"

/* The sandbox's side and the guest's side of its only link. */
#define WARDEN_GUEST_ADDR "169.254.77.2"
#define WARDEN_HOST_ADDR  "169.254.77.1"
#define WARDEN_GUEST_MAC  "02:48:43:00:00:02"
/* Where its doors are, on WARDEN_HOST_ADDR. */
#define WARDEN_TCP_DOOR 1
#define WARDEN_UDP_DOOR 53

/* How these stand in the facts' arguments, once: the facts of other sizes differ there alone. */
#define WARDEN_SIZES_TEXT "-smp %u -m %u"

/* A VM's size and limits. The arguments QEMU gets depend on vcpus and memory_mib alone. */
struct warden_sizes {
	uint32_t vcpus;
	uint32_t memory_mib;
	uint32_t overhead_mib; /* for QEMU itself, on top of the guest's memory */
	uint32_t cpu_percent;  /* of one host cpu; 0 is no limit */
	uint32_t pids_max;     /* threads of QEMU */
	uint32_t disk_mib;     /* no file of it grows beyond this and a little; 0: no limit */
};

struct warden_request {
	uint64_t tag;
	uint32_t verb;
	char id[WARDEN_ID_MAX + 1];
	char template_id[WARDEN_ID_MAX + 1];
	char kernel_id[WARDEN_ID_MAX + 1]; /* WARDEN_BOOT: the template whose kernel is booted; "":
					    * template_id's */
	char installation[WARDEN_ID_MAX + 1]; /* whose it is. "": of none, and may ask for all */
	char request[WARDEN_REQUEST_MAX + 1]; /* by which logs know whose wish it is; may be "" */
	struct warden_sizes sizes;
	uint32_t slot, count, flags; /* enum warden_flags */
};

/* What a snapshot taken here depends on. Two hosts with equal facts can share it. */
struct warden_facts {
	char vmm_version[128], cpu_model[128];
	char accel[16];       /* "kvm" or "tcg" */
	char arguments[1536]; /* of the machine, space separated, the accelerator left out */
	/* emulated, 1: software emulation, no security boundary. No snapshot depends on the others:
	 * the uids of VMs on this host; 0: an older warden's */
	uint32_t emulated, uid_base, uids;
};

enum warden_cell_state { WARDEN_STARTING, WARDEN_RUNNING, WARDEN_STOPPING, WARDEN_EXITED };

struct warden_cell {
	char id[WARDEN_ID_MAX + 1];
	char installation[WARDEN_ID_MAX + 1]; /* that it was started with; "": by an old warden */
	uint32_t state, slot;
	int32_t pid; /* in warden's pid namespace */
	uint32_t uid;
};

struct warden_reply {
	uint64_t tag;
	uint32_t code; /* enum err_code, 0 is success */
	int32_t sys;   /* errno, 0 if none */
	char msg[256];
	uint32_t slot;
	uint32_t count; /* descriptors passed, cells listed, or the pid of what was started */
	union {
		struct warden_facts facts;
		struct warden_cell cells[WARDEN_LIST_MAX];
	};
};
