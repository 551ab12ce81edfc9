/* settings.h - egress's configuration. */
#pragma once

#include "base/config.h"

enum egress_setting {
	SET_SOCKET,
	SET_NODE_UID,
	SET_USER,
	SET_NETWORK,
	SET_ALLOW,
	SET_SERVICES,
	SET_RESOLVERS,
	SETTINGS
};

extern const struct config_param settings_table[SETTINGS];
