/* settings.c - the table behind egress's configuration file and its --help. */
#include "egress/settings.h"

/* in the order of enum policy_mode */
static const char *const modes[] = { "none", "allowlist", "open", NULL };

const struct config_param settings_table[SETTINGS] = {
	[SET_SOCKET] = { "socket", CONFIG_PATH, "/run/hotcell-egress/egress.sock",
			 .help = "where node hands over the doors of its sandboxes" },
	[SET_NODE_UID] = { "node_uid", CONFIG_USER, "0",
			   .help = "the only user, besides root, that may do so" },
	[SET_USER] = { "user", CONFIG_TEXT, "",
		       .help = "name or number to become when started as root; empty: stay" },
	[SET_NETWORK] = { "network", CONFIG_CHOICE, "allowlist", .choices = modes,
			  .help = "what sandboxes may reach at most; each may narrow it" },
	[SET_ALLOW] = { "allow", CONFIG_TEXT, "packages",
			.help = "allowlist: names, *.names and ranges, with spaces between them; "
				"packages: those of the template's package managers" },
	[SET_SERVICES] = { "services", CONFIG_TEXT, "",
			   .help = "db=10.1.2.3:5432 ...: reached as db.hotcell.internal by keys "
				   "that "
				   "may" },
	[SET_RESOLVERS] = { "resolvers", CONFIG_TEXT, "",
			    .help = "address:port, up to four, with spaces between them; empty: "
				    "those "
				    "of /etc/resolv.conf" },
	[SET_PROXY] = { "proxy", CONFIG_TEXT, "",
			.help = "address:port of an HTTP proxy that everything but services goes "
				"through, by CONNECT; empty: none" },
	[SET_PROXY_RESOLVES] = { "proxy_resolves", CONFIG_FLAG, "no",
				 .help = "no: names are resolved and judged here, the proxy is "
					 "asked "
					 "for addresses; yes: it is asked for names, and has to "
					 "keep away those that lead inside; not with network = "
					 "open" },
	[SET_CONNECTIONS] = { "connections", CONFIG_NUMBER, "512", 1, 16384,
			      .help = "of one sandbox at a time" },
	[SET_PER_SECOND] = { "per_second", CONFIG_NUMBER, "500", 5, 100000,
			     .help = "new connections and questions for names, of one sandbox" },
	[SET_MBIT] = { "mbit", CONFIG_NUMBER, "1000", 0, 1000000,
		       .help = "per second, of one sandbox, both directions together; 0: no "
			       "limit" },
};
