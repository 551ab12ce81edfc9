/* settings.h - the signer's configuration. */
#pragma once

#include "base/config.h"

enum signer_setting { SET_SOCKET, SET_GATEWAY_UID, SET_USER, SET_TLS_DIR, SETTINGS };

extern const struct config_param settings_table[SETTINGS];
