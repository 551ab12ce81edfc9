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
	SET_PROXY,
	SET_PROXY_RESOLVES,
	SET_CONNECTIONS,
	SET_PER_SECOND,
	SET_MBIT,
	SETTINGS
};

extern const struct config_param settings_table[SETTINGS];
