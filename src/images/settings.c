/* settings.c - the table behind the images daemon's configuration file and its --help. */
#include "images/settings.h"

const struct config_param settings_table[SETTINGS] = {
	[SET_SOCKET] = { "socket", CONFIG_PATH, "/run/hotcell-images/images.sock",
			 .help = "where node asks for images" },
	[SET_NODE_UID] = { "node_uid", CONFIG_USER, "0",
			   .help = "the only user, besides root, that may do so" },
	[SET_USER] = { "user", CONFIG_TEXT, "",
		       .help = "name or number to become when started as root; empty: stay" },
	[SET_DATA_DIR] = { "data_dir", CONFIG_PATH, "/var/lib/hotcell-images",
			   .help = "layers by their digests, and the key that opens credentials" },
	[SET_DEFAULT_REGISTRY] = { "default_registry", CONFIG_TEXT, "",
				   .help = "HOST[:PORT] of names without one, such as debian:12; "
					   "empty: they are refused" },
	[SET_DEFAULT_PREFIX] = { "default_prefix", CONFIG_TEXT, "library/",
				 .help = "what stands before names of one word there" },
	[SET_MAP] = { "map", CONFIG_TEXT, "",
		      .help = "HOST[/PATH]=HOST[:PORT][/PATH] ...: what is asked for at the left "
			      "is "
			      "fetched from the right, and never from the left" },
	[SET_MIRRORS] = { "mirrors", CONFIG_TEXT, "",
			  .help = "HOST[/PATH]=HOST[:PORT][/PATH] ...: what is asked for at the "
				  "left is first asked for at the right, without credentials" },
	[SET_INSECURE] = { "insecure", CONFIG_TEXT, "",
			   .help = "HOST[:PORT] ...: registries that may speak plain HTTP, or show "
				   "any certificate" },
	[SET_NETWORKS] = { "networks", CONFIG_TEXT, "",
			   .help = "addresses and ranges of private networks where registries are; "
				   "all other private addresses are closed by the kernel (--nft)" },
	[SET_RESOLVERS] = { "resolvers", CONFIG_TEXT, "",
			    .help = "addresses that may be asked for names (--nft); empty: those "
				    "of "
				    "/etc/resolv.conf" },
	[SET_PROXY] = { "proxy", CONFIG_TEXT, "",
			.help = "address:port of an HTTP proxy for all registries; empty: none" },
	[SET_EXTRA_CA] = { "extra_ca", CONFIG_TEXT, "",
			   .help = "PEM file, if it is there: certificates that registries may be "
				   "signed with, "
				   "beside the system's" },
	[SET_STORE_MIB] = { "store_mib", CONFIG_NUMBER, "20480", 1, 64 * 1024 * 1024,
			    .help = "MiB of layers that are kept; those used longest ago go "
				    "first" },
	[SET_IMAGE_MIB] = { "image_mib", CONFIG_NUMBER, "8192", 1, 1024 * 1024,
			    .help = "MiB of the layers of one image, as they are stored" },
	[SET_RESERVE_MIB] = { "reserve_mib", CONFIG_NUMBER, "1024", 0, 64 * 1024 * 1024,
			      .help = "MiB of the disk that stay free" },
	[SET_JOBS_MAX] = { "jobs_max", CONFIG_NUMBER, "4", 1, 32,
			   .help = "images that are fetched or unpacked at a time" },
	[SET_JOB_S] = { "job_s", CONFIG_NUMBER, "1800", 1, 24 * 3600,
			.help = "seconds that one may take" },
	[SET_SKOPEO] = { "skopeo", CONFIG_PATH, "/usr/bin/skopeo",
			 .help = "the program that talks to registries" },
	[SET_UNPACK] = { "unpack", CONFIG_PATH, HOTCELL_LIBEXECDIR "/hotcell-unpack",
			 .help = "the program that makes a disk of layers" },
	[SET_AGENT] = { "agent", CONFIG_PATH, HOTCELL_LIBDIR "/hotcell-agent",
			.help = "the agent that every disk gets" },
};
