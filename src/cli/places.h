/* places.h - where an installation has its folders, its control group and its uids.
 *
 * A flag decides; else what the daemons say; else their configuration files; else the defaults.
 */
#pragma once

#include "cli/cli.h"
#include "cli/conf.h"
#include "wire/json.h"

enum place_folder {
	FOLDER_STATE,    /* warden's: templates and VMs */
	FOLDER_DATA,     /* node's: journal, sandboxes, snapshots */
	FOLDER_GATEWAY,  /* teams and keys */
	FOLDER_INJECTOR, /* its keys */
	FOLDER_IMAGES,   /* layers of images */
	FOLDERS,
};

struct place { /* of one folder */
	const char *daemon, *setting;
	char path[CONF_VALUE_MAX];
	char user[CONF_VALUE_MAX]; /* name or number of the daemon's user; "": not known, or root */
	bool configured; /* a flag, a daemon or a file named it, or its daemon has a file */
};

struct places {
	struct place folders[FOLDERS];
	char cgroup[CONF_VALUE_MAX], qemu[CONF_VALUE_MAX];
	char images_conf[CONF_VALUE_MAX]; /* a file */
	uint64_t uid_base, uids;
	bool emulation;  /* allow_emulation of warden.conf */
	bool configured; /* there is a configuration: it is installed */
};

/* `node` is what it says of its status; NULL: it says nothing. */
void places_find(struct places *ret, const struct cli *c, const json_t *node);
