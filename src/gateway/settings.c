/* settings.c - the table behind the gateway's configuration file and its --help. */
#include "gateway/settings.h"

const struct config_param settings_table[SETTINGS] = {
	[SET_LISTEN] = { "listen", CONFIG_TEXT, "127.0.0.1:3000",
			 .help = "address and port of the API and of all sandbox traffic" },
	[SET_NODE_SOCKET] = { "node_socket", CONFIG_PATH, "/run/hotcell-node/node.sock",
			      .help = "where node answers" },
	[SET_DATA_DIR] = { "data_dir", CONFIG_PATH, "/var/lib/hotcell-gateway",
			   .help = "store.db: teams and the hashes of their keys" },
	[SET_ADMIN_SOCKET] = { "admin_socket", CONFIG_PATH, "/run/hotcell-gateway/admin.sock",
			       .help = "where the hotcell command asks; HTTP, no key" },
	[SET_ADMIN_UID] = { "admin_uid", CONFIG_USER, "0",
			    .help = "the only user, besides root, that may ask there" },
	[SET_DOMAIN] = { "domain", CONFIG_TEXT, "",
			 .help = "sandboxes' host names end in it: PORT-ID.DOMAIN; may have a "
				 "port" },
	[SET_USER] = { "user", CONFIG_TEXT, "",
		       .help = "name or number to become when started as root; empty: stays" },
	[SET_CONNECTIONS_MAX] = { "connections_max", CONFIG_NUMBER, "20000", .min = 1,
				  .max = 1000000,
				  .help = "clients at once; then those that are idle give way" },
	[SET_ADDRESS_CONNECTIONS_MAX] = { "address_connections_max", CONFIG_NUMBER, "2000",
					  .max = 1000000,
					  .help = "of them, from one address or /64; then 429; 0: "
						  "any number; not from this host" },
	[SET_AGENT_SECONDS] = { "agent_seconds", CONFIG_NUMBER, "600", .min = 1, .max = 86400,
				.help = "for a sandbox's agent to begin an answer; then 504" },
	[SET_SANDBOX_CONNECTIONS_MAX] = { "sandbox_connections_max", CONFIG_NUMBER, "5000",
					  .min = 1, .max = 1000000,
					  .help = "requests and streams at once to the ports of "
						  "one "
						  "sandbox; then 429" },
};
