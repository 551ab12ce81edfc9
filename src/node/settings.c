/* settings.c - the table behind node's configuration file and its --help. */
#include "node/settings.h"

#include "node/record/ended.h"
#include "node/life/lease.h"
#include "warden/protocol.h"

enum { NODE_ID_LENGTH_MAX = 8 };

const struct config_param settings_table[SETTINGS] = {
	[SET_NODE_ID] = { "node_id", CONFIG_TEXT, "a",
			  .help = "1 to 8 lower-case letters or digits; part of every sandbox's "
				  "id" },
	[SET_STATE_DIR] = { "state_dir", CONFIG_PATH, "/var/lib/hotcell",
			    .help = "warden's: templates/ and vms/ are below it" },
	[SET_DATA_DIR] = { "data_dir", CONFIG_PATH, "/var/lib/hotcell-node",
			   .help = "the journal is kept here" },
	[SET_SOCKET] = { "socket", CONFIG_PATH, "/run/hotcell-node/node.sock",
			 .help = "where gateways ask" },
	[SET_WARDEN_SOCKET] = { "warden_socket", CONFIG_PATH, "/run/hotcell/warden.sock",
				.help = "where warden listens" },
	[SET_EGRESS_SOCKET] = { "egress_socket", CONFIG_TEXT, "/run/hotcell-egress/egress.sock",
				.help = "where egress listens; empty: none, sandboxes reach "
					"nothing" },
	[SET_INJECTOR_SOCKET] = { "injector_socket", CONFIG_TEXT, "",
				  .help = "where the injector listens; empty: none, and network "
					  "rules "
					  "that set headers are refused" },
	[SET_IMAGES_SOCKET] = { "images_socket", CONFIG_TEXT, "",
				.help = "where the images daemon listens; empty: none, and "
					"templates are built of other templates only" },
	[SET_USER] = { "user", CONFIG_TEXT, "",
		       .help = "name or number to become when started as root; empty: stay" },
	[SET_GATEWAY_UID] = { "gateway_uid", CONFIG_USER, "0",
			      .help = "the only user, besides root, that may ask" },
	[SET_GATEWAY_GID] = { "gateway_gid", CONFIG_GROUP, "0", .help = "the group of the socket" },
	[SET_KERNEL] = { "kernel", CONFIG_TEXT, "",
			 .help = "the guest kernel of which template `base` is made" },
	[SET_DISK] = { "disk", CONFIG_TEXT, "",
		       .help = "the raw disk of which template `base` is made" },
	[SET_GUEST_CA] = { "guest_ca", CONFIG_TEXT, "",
			   .help = "a PEM file: the authority that guests trust, where there is no "
				   "injector to ask for its own" },
	[SET_EXTRA_CA] = { "extra_ca", CONFIG_TEXT, "",
			   .help = "a PEM file: further authorities that guests trust, those of a "
				   "corporate network" },
	[SET_VCPUS] = { "vcpus", CONFIG_NUMBER, "1", .min = 1, .max = 64,
			.help = "processors of a sandbox" },
	[SET_MEMORY_MIB] = { "memory_mib", CONFIG_NUMBER, "512", .min = 64, .max = 1024 * 1024,
			     .help = "memory of a sandbox, in MiB" },
	[SET_OVERHEAD_MIB] = { "overhead_mib", CONFIG_NUMBER, "256", .min = 16, .max = 4096,
			       .help = "on top of it for QEMU itself, in MiB" },
	[SET_CPU_PERCENT] = { "cpu_percent", CONFIG_NUMBER, "0", .max = 6400,
			      .help = "of one host processor that a sandbox may use; 0: no limit" },
	[SET_POOL] = { "pool", CONFIG_NUMBER, "0", .max = NODE_POOL_MAX,
		       .help = "restored sandboxes of template `base` kept ready" },
	[SET_POOL_EACH_MAX] = { "pool_each_max", CONFIG_NUMBER, "4", .max = NODE_POOL_EACH_MAX,
				.help = "restored sandboxes kept ready of each snapshot that was "
					"used lately, at most; 0: of none" },
	[SET_POOL_UNUSED_S] = { "pool_unused_s", CONFIG_NUMBER, "300", .min = 1, .max = 86400,
				.help = "after so long without a create the pool of a snapshot is "
					"emptied, in seconds" },
	/* 16 VMs as admission counts them: four snapshots in heavy use, or sixteen in some. */
	[SET_POOL_MEMORY_MIB] = { "pool_memory_mib", CONFIG_NUMBER, "1024", .max = 1024 * 1024,
				  .help = "memory that all pools together take, in MiB, with 64 or "
					  "more for each sandbox; never less than `pool` needs; 0: "
					  "what other memory limits allow" },
	[SET_SLOTS] = { "slots", CONFIG_NUMBER, "4", .max = NODE_SLOTS_MAX,
			.help = "network slots kept ready" },
	[SET_SANDBOXES_MAX] = { "sandboxes_max", CONFIG_NUMBER, "1000", .min = 1,
				.max = NODE_SANDBOXES_MAX,
				.help = "sandboxes at once; keep it below warden's vms_max" },
	[SET_PAUSED_MAX] = { "paused_max", CONFIG_NUMBER, "20000", .min = 1, .max = NODE_PAUSED_MAX,
			     .help = "paused sandboxes at once; then creates and pauses are "
				     "refused" },
	[SET_MEMORY_RESERVE_MIB] = { "memory_reserve_mib", CONFIG_NUMBER, "512", .max = 1024 * 1024,
				     .help = "memory of the host that is never promised, in MiB" },
	/* An idle sandbox of 512 MiB takes about 23 MB of its own. 500 of them are alive on a host
	 * with 24 GiB: 10.6 times what it has beside the reserve. */
	[SET_MEMORY_OVERCOMMIT] = { "memory_overcommit", CONFIG_NUMBER, "1200",
				    .min = NODE_OVERCOMMIT_MIN, .max = NODE_OVERCOMMIT_MAX,
				    .help = "guest memory that is promised in all, in percent of "
					    "the "
					    "host's memory less the reserve; 100: sandboxes that "
					    "use all of theirs fit" },
	[SET_STARTS_MAX] = { "starts_max", CONFIG_NUMBER, "4", .min = 1, .max = NODE_STARTS_MAX,
			     .help = "sandboxes being restored at once; others wait in order" },
	[SET_SAVES_MAX] = { "saves_max", CONFIG_NUMBER, "4", .min = 1, .max = NODE_SAVES_MAX,
			    .help = "sandboxes being paused at once; others wait in order" },
	[SET_LAYERS_MAX] = { "layers_max", CONFIG_NUMBER, "4", .min = 1, .max = WARDEN_LAYERS_MAX,
			     .help = "layers of a snapshot's disk; what would have more is written "
				     "as one" },
	[SET_STEPS_MIB] = { "steps_mib", CONFIG_NUMBER, "20480", .max = 1024 * 1024 * 1024,
			    .help = "room for what later builds of templates begin with, in MiB; "
				    "of it a team has half at most" },
	[SET_GROUNDS_UNUSED_H] = { "grounds_unused_h", CONFIG_NUMBER, "24", .max = 10 * 365 * 24,
				   .help = "what an image was booted to goes when no sandbox, "
					   "snapshot or step needed it for so many hours" },
	[SET_BUILDS_MAX] = { "builds_max", CONFIG_NUMBER, "2", .min = 1, .max = 64,
			     .help = "builds of templates at once; others wait in order" },
	[SET_BUILDS_TEAM] = { "builds_team", CONFIG_NUMBER, "2", .min = 1, .max = 64,
			      .help = "of these, at most so many of one team" },
	[SET_TEMPLATE_VCPUS_MAX] = { "template_vcpus_max", CONFIG_NUMBER, "8", .min = 1,
				     .max = NODE_TEMPLATE_VCPUS_MAX,
				     .help = "processors that a team may ask for in a template" },
	[SET_TEMPLATE_MEMORY_MAX_MIB] = { "template_memory_max_mib", CONFIG_NUMBER, "8192",
					  .min = NODE_TEMPLATE_MEMORY_MIN_MIB,
					  .max = NODE_TEMPLATE_MEMORY_MAX_MIB,
					  .help = "memory that a team may ask for in a template, "
						  "in MiB" },
	[SET_UPLOAD_TEAM_MAX_MIB] = { "upload_team_max_mib", CONFIG_NUMBER, "5120", .min = 1,
				      .max = 1024 * 1024 * 1024,
				      .help = "what clients of one team uploaded for builds, in "
					      "MiB; "
					      "then what was used least recently goes" },
	[SET_IMPORT_MAX_MIB] = { "import_max_mib", CONFIG_NUMBER, "8192", .min = 1,
				 .max = 1024 * 1024,
				 .help = "an archive that an operator makes a template of, in "
					 "MiB" },
	[SET_SHARED_TEAM] = { "shared_team", CONFIG_TEXT, "hotcell",
			      .help = "the team, as in TEAM/NAME, whose public templates all teams "
				      "find by their name alone; empty: there is none" },
	[SET_DISK_RESERVE_MIB] = { "disk_reserve_mib", CONFIG_NUMBER, "256",
				   .max = 1024 * 1024 * 1024,
				   .help = "room on data_dir's disk that is never promised, in "
					   "MiB" },
	[SET_LOST_SETTLE_S] = { "lost_settle_s", CONFIG_NUMBER, "1800", .max = 7 * 86400,
				.help = "nothing in lost/ is removed for its age before the "
					"host's clock went on without a jump for so long, in "
					"seconds" },
	[SET_TIMEOUT_MAX_S] = { "timeout_max_s", CONFIG_NUMBER, "86400", .min = LEASE_MAX_MIN_S,
				.max = NODE_TIMEOUT_MAX_S,
				.help = "how long a sandbox may run at most, in seconds; a resumed "
					"one "
					"begins anew" },
	[SET_TOMBSTONES_KEEP_S] = { "tombstones_keep_s", CONFIG_NUMBER, "604800",
				    .min = ENDED_KEEP_MIN_S, .max = ENDED_KEEP_MAX_S,
				    .help = "how long it is known why a sandbox ended, in "
					    "seconds" },
	[SET_CGROUP] = { "cgroup", CONFIG_TEXT, "hotcell",
			 .help = "the control group of all VMs, as warden has it" },
	[SET_DIE_AT] = { "die_at", CONFIG_TEXT, "",
			 .help = "fault tests only: the step at which node kills itself" },
};

int settings_check(const struct config_value *set, struct err *err)
{
	const char *id = set[SET_NODE_ID].text;
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789");

	if (n == 0 || id[n] != '\0' || n > NODE_ID_LENGTH_MAX)
		return err_set(err, ERR_INVALID, 0,
			       "node_id must be 1 to %d lower-case letters or digits",
			       NODE_ID_LENGTH_MAX);
	return 0;
}
