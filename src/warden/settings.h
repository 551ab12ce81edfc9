/* settings.h - warden's configuration. */
#pragma once

#include "base/config.h"

enum warden_setting {
	SET_STATE_DIR,
	SET_RUN_DIR,
	SET_QEMU,
	SET_FIRMWARE_DIRS,
	SET_NFT,
	SET_COPIER,
	SET_CGROUP,
	SET_ACCEL,
	SET_ALLOW_EMULATION,
	SET_CPU_MODEL,
	SET_CMDLINE,
	SET_CLIENT_UID,
	SET_CLIENT_GID,
	SET_UID_BASE,
	SET_VMS_MAX,
	SET_DIE_AT,
	SETTINGS,
};

enum { ACCEL_AUTO, ACCEL_KVM, ACCEL_TCG };

extern const struct config_param settings_table[SETTINGS];
