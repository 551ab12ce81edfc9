/* settings.c - the table behind the injector's configuration file and its --help. */
#include "injector/settings.h"

const struct config_param settings_table[SETTINGS] = {
	[SET_SOCKET] = { "socket", CONFIG_PATH, "/run/hotcell-injector/injector.sock",
			 .help = "where node asks for workers" },
	[SET_NODE_UID] = { "node_uid", CONFIG_USER, "0",
			   .help = "the only user, besides root, that may do so" },
	[SET_USER] = { "user", CONFIG_TEXT, "",
		       .help = "name or number to become when started as root; empty: stay" },
	[SET_STATE_DIR] = { "state_dir", CONFIG_PATH, "/var/lib/hotcell-injector",
			    .help = "its keys: made at the first start, worth a backup" },
	[SET_EXTRA_CA] = { "extra_ca", CONFIG_TEXT, "",
			   .help = "PEM file: certificates that servers may be signed with, beside "
				   "the system's" },
};
