/* settings.h - the gateway's configuration. */
#pragma once

#include "base/config.h"

enum gateway_setting {
	SET_LISTEN,
	SET_NODE_SOCKET,
	SET_DATA_DIR,
	SET_ADMIN_SOCKET,
	SET_ADMIN_UID,
	SET_DOMAIN,
	SET_USER,
	SET_CONNECTIONS_MAX,
	SET_ADDRESS_CONNECTIONS_MAX,
	SET_AGENT_SECONDS,
	SET_SANDBOX_CONNECTIONS_MAX,
	SETTINGS,
};

extern const struct config_param settings_table[SETTINGS];
