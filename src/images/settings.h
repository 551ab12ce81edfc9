/* settings.h - the images daemon's configuration. */
#pragma once

#include "base/config.h"

enum images_setting {
	SET_SOCKET,
	SET_NODE_UID,
	SET_USER,
	SET_DATA_DIR,
	SET_DEFAULT_REGISTRY,
	SET_DEFAULT_PREFIX,
	SET_MAP,
	SET_MIRRORS,
	SET_INSECURE,
	SET_NETWORKS,
	SET_RESOLVERS,
	SET_PROXY,
	SET_EXTRA_CA,
	SET_STORE_MIB,
	SET_IMAGE_MIB,
	SET_RESERVE_MIB,
	SET_JOBS_MAX,
	SET_JOB_S,
	SET_SKOPEO,
	SET_UNPACK,
	SET_AGENT,
	SETTINGS,
};

extern const struct config_param settings_table[SETTINGS];
