/* installation.h - which installation this is: one random id, made once.
 *
 * It stands in the journal, in data_dir/installation, and with every VM at warden. So a journal
 * that does not belong to its folder is refused, and VMs that another node started are left alone.
 */
#pragma once

#include "node/journal/journal_meta.h"

#define INSTALLATION_FILE "installation" /* in data_dir */

struct installation {
	char id[NODE_ID_MAX + 1];
	char boot_id[NODE_ID_MAX + 1]; /* of the host now; "": it does not tell */
	bool other_boot;               /* the journal's rows are of an earlier boot of the host */
	bool boot_noted;
	struct journal_write note;
	uint64_t born_ns; /* when its id was made; 0: it is older than that */
};

/* Which boot of the host this is. Before the process is confined. */
void installation_boot(struct installation *i);
/* ERR_MISMATCH: the journal is of another one than the folder. */
int installation_open(struct installation *i, struct journal *j, const char *data_dir,
		      struct err *err) NODISCARD;
void installation_close(struct installation *i);

/* What ran in the boot before is ended: the journal is of this boot from now on. */
void installation_note_boot(struct installation *i, struct journal *j);

/* Was the file there before the installation was? Then it may be another's. */
bool installation_is_younger(const struct installation *i, int dir, const char *name);

/* Does it belong to somebody else? "", of a VM that was started before there were ids: no. */
bool installation_is_other(const struct installation *i, const char *id);
