/* settings.h - node's configuration: names, defaults, ranges. */
#pragma once

#include "base/config.h"

enum {
	NODE_SANDBOXES_MAX = 2048,    /* as many as warden can hold */
	NODE_PAUSED_MAX = 200 * 1000, /* each takes some 8 KiB of node's memory */
	NODE_POOL_MAX = 256,
	NODE_SLOTS_MAX = 256,
	NODE_STARTS_MAX = 64,
	NODE_SAVES_MAX = 64,
	NODE_TEMPLATE_VCPUS_MAX = 32,
	NODE_TEMPLATE_MEMORY_MIN_MIB = 128,
	NODE_TEMPLATE_MEMORY_MAX_MIB = 1024 * 1024,
	NODE_OVERCOMMIT_MIN = 10, /* percent */
	NODE_OVERCOMMIT_MAX = 10 * 1000,
};

enum node_setting {
	SET_NODE_ID,
	SET_STATE_DIR,
	SET_DATA_DIR,
	SET_SOCKET,
	SET_WARDEN_SOCKET,
	SET_EGRESS_SOCKET,
	SET_INJECTOR_SOCKET,
	SET_USER,
	SET_GATEWAY_UID,
	SET_GATEWAY_GID,
	SET_KERNEL,
	SET_DISK,
	SET_GUEST_CA,
	SET_EXTRA_CA,
	SET_VCPUS,
	SET_MEMORY_MIB,
	SET_OVERHEAD_MIB,
	SET_CPU_PERCENT,
	SET_POOL,
	SET_SLOTS,
	SET_SANDBOXES_MAX,
	SET_PAUSED_MAX,
	SET_MEMORY_RESERVE_MIB,
	SET_MEMORY_OVERCOMMIT,
	SET_STARTS_MAX,
	SET_SAVES_MAX,
	SET_LAYERS_MAX,
	SET_STEPS_MIB,
	SET_TEMPLATE_VCPUS_MAX,
	SET_TEMPLATE_MEMORY_MAX_MIB,
	SET_DISK_RESERVE_MIB,
	SET_LOST_SETTLE_S,
	SET_TIMEOUT_MAX_S,
	SET_TOMBSTONES_KEEP_S,
	SET_CGROUP,
	SET_DIE_AT,
	SETTINGS,
};

extern const struct config_param settings_table[SETTINGS];

/* What a table cannot say: an id is lower-case letters and digits. */
int settings_check(const struct config_value *set, struct err *err) NODISCARD;
