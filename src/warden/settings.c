/* settings.c - the table behind warden's configuration file and its --help. */
#include "warden/settings.h"

#include "warden/cell.h"

static const char *const accels[] = {
	[ACCEL_AUTO] = "auto", [ACCEL_KVM] = "kvm", [ACCEL_TCG] = "tcg", NULL
};

const struct config_param settings_table[SETTINGS] = {
	[SET_STATE_DIR] = { "state_dir", CONFIG_PATH, "/var/lib/hotcell",
			    .help = "templates and VMs live below this folder" },
	[SET_RUN_DIR] = { "run_dir", CONFIG_PATH, "/run/hotcell",
			  .help = "warden.sock, and where the VMs' view of files is assembled" },
	[SET_QEMU] = { "qemu", CONFIG_PATH, "/usr/bin/qemu-system-x86_64",
		       .help = "the VMM, version 8.2 or newer" },
	[SET_FIRMWARE_DIRS] = { "firmware_dirs", CONFIG_TEXT,
				HOTCELL_LIBDIR "/qemu:/usr/share/qemu:/usr/share/seabios",
				.help = "the VMM's firmware, and libraries that stand in" },
	[SET_NFT] = { "nft", CONFIG_PATH, "/usr/sbin/nft",
		      .help = "loads the rules of a network slot" },
	[SET_COPIER] = { "copier", CONFIG_PATH, HOTCELL_LIBEXECDIR "/hotcell-copier",
			 .help = "copies a VM's memory, under the VM's own uid" },
	[SET_CGROUP] = { "cgroup", CONFIG_TEXT, "hotcell",
			 .help = "name of the control group above all VMs" },
	[SET_ACCEL] = { "accel", CONFIG_CHOICE, "auto", .choices = accels,
			.help = "how guests run: auto takes KVM when a test guest runs on it" },
	[SET_ALLOW_EMULATION] = { "allow_emulation", CONFIG_FLAG, "no",
				  .help = "accept software emulation: no security boundary" },
	[SET_CPU_MODEL] = { "cpu_model", CONFIG_TEXT,
			    "Haswell-noTSX,-vme,-pcid,-invpcid,-tsc-deadline,-erms",
			    .help = "the processor every guest sees; part of each snapshot" },
	[SET_CMDLINE] = { "cmdline", CONFIG_TEXT, "console=ttyS0 quiet root=/dev/vda rw",
			  .help = "the guest kernel's command line while a template boots" },
	[SET_CLIENT_UID] = { "client_uid", CONFIG_USER, "0",
			     .help = "the only user, besides root, that may talk to warden" },
	[SET_CLIENT_GID] = { "client_gid", CONFIG_GROUP, "0",
			     .help = "its group: may connect to the VMs' QMP sockets" },
	[SET_UID_BASE] = { "uid_base", CONFIG_NUMBER, "786432", .min = 1000, .max = UINT32_MAX / 2,
			   .help = "slot N runs under uid and gid uid_base + N" },
	[SET_VMS_MAX] = { "vms_max", CONFIG_NUMBER, "1024", .min = 1, .max = CELLS_MAX,
			  .help = "VMs at once, and the size of the uid range" },
	[SET_DIE_AT] = { "die_at", CONFIG_TEXT, "",
			 .help = "fault tests only: the step at which warden kills itself" },
};
