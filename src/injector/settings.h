/* settings.h - the injector's configuration. */
#pragma once

#include "base/config.h"

enum injector_setting { SET_SOCKET, SET_NODE_UID, SET_USER, SET_STATE_DIR, SET_EXTRA_CA, SETTINGS };

extern const struct config_param settings_table[SETTINGS];
