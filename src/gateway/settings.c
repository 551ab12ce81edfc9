/* settings.c - the table behind the gateway's configuration file and its --help. */
#include "gateway/settings.h"

const struct config_param settings_table[SETTINGS] = {
	[SET_LISTEN] = { "listen", CONFIG_TEXT, "127.0.0.1:3000",
			 .help = "address and port of the API and of all sandbox traffic, in plain "
				 "HTTP; not used with a service manager's socket `http`" },
	[SET_PLAIN] = { "plain", CONFIG_FLAG, "no",
			.help = "may `listen` be another address than this host's own? Keys would "
				"be readable on the way; with listen_tls, others are sent there" },
	[SET_LISTEN_TLS] = { "listen_tls", CONFIG_TEXT, "",
			     .help = "addresses and ports of the same over TLS, with commas "
				     "between them, besides a service manager's socket `https`" },
	[SET_TLS_DIR] = { "tls_dir", CONFIG_PATH, "/etc/hotcell/tls",
			  .help = "one folder per certificate; of each, the gateway reads "
				  "fullchain.pem; looked at every second" },
	[SET_SIGNER_SOCKET] = { "signer_socket", CONFIG_PATH, "/run/hotcell-signer/signer.sock",
				.help = "where the signer answers, which has the private keys" },
	[SET_TICKET_SECONDS] = { "ticket_seconds", CONFIG_NUMBER, "14400", .min = 2, .max = 86400,
				 .help = "how long a key makes session tickets; it opens them for "
					 "as long again" },
	[SET_NODE_SOCKET] = { "node_socket", CONFIG_PATH, "/run/hotcell-node/node.sock",
			      .help = "where node answers" },
	[SET_DATA_DIR] = { "data_dir", CONFIG_PATH, "/var/lib/hotcell-gateway",
			   .help = "store.db: teams and the hashes of their keys" },
	[SET_ADMIN_SOCKET] = { "admin_socket", CONFIG_PATH, "/run/hotcell-gateway/admin.sock",
			       .help = "where the hotcell command asks; HTTP, no key; not used "
				       "with a "
				       "service manager's socket `admin`" },
	[SET_ADMIN_UID] = { "admin_uid", CONFIG_USER, "0",
			    .help = "the only user, besides root, that may ask there" },
	[SET_DOMAIN] = { "domain", CONFIG_TEXT, "",
			 .help = "sandboxes' host names end in it: PORT-ID.DOMAIN; with a port "
				 "if clients use another than 443; empty: what a client calls the "
				 "gateway by" },
	[SET_USER] = { "user", CONFIG_TEXT, "",
		       .help = "name or number to become when started as root; empty: stays" },
	[SET_CONNECTIONS_MAX] = { "connections_max", CONFIG_NUMBER, "20000", .min = 1,
				  .max = 1000000,
				  .help = "clients at once; then those that are idle give way" },
	[SET_ADDRESS_CONNECTIONS_MAX] = { "address_connections_max", CONFIG_NUMBER, "2000",
					  .max = 1000000,
					  .help = "of them, from one address or /64, and streams "
						  "into sandboxes; then 429; 0: any number; not "
						  "from this host" },
	[SET_PROXIES] = { "proxies", CONFIG_TEXT, "",
			  .help = "addresses and ranges, with spaces between them, of proxies that "
				  "are believed: X-Forwarded-For, X-Forwarded-Proto" },
	[SET_PROXY_PROTOCOL] = { "proxy_protocol", CONFIG_FLAG, "no",
				 .help = "yes: each connection of a listed proxy must begin with a "
					 "header of the PROXY protocol, version 2" },
	[SET_AGENT_SECONDS] = { "agent_seconds", CONFIG_NUMBER, "600", .min = 1, .max = 86400,
				.help = "for a sandbox's agent to begin an answer; then 504" },
	[SET_SANDBOX_CONNECTIONS_MAX] = { "sandbox_connections_max", CONFIG_NUMBER, "5000",
					  .min = 1, .max = 1000000,
					  .help = "requests and streams at once to the ports of "
						  "one "
						  "sandbox; then 429" },
	[SET_DRAIN_SECONDS] = { "drain_seconds", CONFIG_NUMBER, "600", .max = 600,
				.help = "for what is under way when it is told to end, if another "
					"gateway accepts; else 5" },
	[SET_METRICS_LISTEN] = { "metrics_listen", CONFIG_TEXT, "",
				 .help = "address and port of GET /metrics in plain HTTP without a "
					 "key: this host's own, or of a private network; empty: at "
					 "the admin socket alone" },
	[SET_ACCESS_LOG] = { "access_log", CONFIG_FLAG, "yes",
			     .help = "a line of the log for each request to the API; not for "
				     "traffic into sandboxes" },
};
