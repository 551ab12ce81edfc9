/* settings.c - the table behind the signer's configuration file and its --help. */
#include "signer/settings.h"

const struct config_param settings_table[SETTINGS] = {
	[SET_SOCKET] = { "socket", CONFIG_PATH, "/run/hotcell-signer/signer.sock",
			 .help = "where the gateway asks for signatures" },
	[SET_GATEWAY_UID] = { "gateway_uid", CONFIG_USER, "0",
			      .help = "the only user, besides root, that may do so" },
	[SET_USER] = { "user", CONFIG_TEXT, "",
		       .help = "name or number to become when started as root; empty: stay" },
	[SET_TLS_DIR] = { "tls_dir", CONFIG_PATH, "/etc/hotcell/tls",
			  .help = "one folder per certificate; of each, the signer reads "
				  "privkey.pem" },
};
