/* settings.c - the table behind egress's configuration file and its --help. */
#include "egress/settings.h"

const struct config_param settings_table[SETTINGS] = {
	[SET_SOCKET] = { "socket", CONFIG_PATH, "/run/hotcell-egress/egress.sock",
			 .help = "where node hands over the doors of its sandboxes" },
	[SET_NODE_UID] = { "node_uid", CONFIG_USER, "0",
			   .help = "the only user, besides root, that may do so" },
	[SET_USER] = { "user", CONFIG_TEXT, "",
		       .help = "name or number to become when started as root; empty: stay" },
};
