/* settings.h - egress's configuration. */
#pragma once

#include "base/config.h"

enum egress_setting { SET_SOCKET, SET_NODE_UID, SET_USER, SETTINGS };

extern const struct config_param settings_table[SETTINGS];
