/* uploads.h - what clients sent for the steps of their builds, by team and hash.
 *
 *	data_dir/uploads/TEAM/HASH        an archive, whole; a hash is the client's own word for it
 *	                      .new-NAME   being written, by a gateway, through a descriptor of
 *node's
 *
 * A team has so many bytes (upload_team_max_mib); what was used least recently goes first. What was
 * broken off leaves nothing: the gateway says so, or it is late, or the next node removes it.
 */
#pragma once

#include "net/timer.h"
#include "node/door/gateway_door.h"

enum {
	UPLOAD_HASH_LENGTH = 64,
	UPLOAD_NAME_LENGTH = 20,
	UPLOADS_TEAM_MAX = 1000,          /* files of one team */
	UPLOADS_OPEN_MAX = 256,           /* being written, of all teams */
	UPLOADS_OPEN_TEAM_MAX = 32,       /* of one */
	UPLOAD_LATE_MS = 2 * 3600 * 1000, /* being written for so long: given up */
};
#define UPLOAD_BYTES_MAX (1024ull * 1024 * 1024) /* of one */

struct upload_file {
	char team[NODE_ID_MAX + 1], hash[UPLOAD_HASH_LENGTH + 1];
	uint64_t bytes, used_ns; /* since 1970 */
	struct upload_file *next, **prev;
};

struct uploads {
	int dir; /* data_dir/uploads; -1: not opened */
	struct upload_file *all;
	struct upload_open *open; /* being written */
	size_t n_open;
};

/* At start: what is there is counted, what was broken off goes. */
int uploads_load(struct node *n, struct err *err) NODISCARD;
void uploads_close(struct node *n);

/* To read, from its beginning; it is not removed before others of its team. ERR_NOT_FOUND: it was
 * not uploaded, or went since. */
int uploads_open(struct node *n, const char *team, const char *hash, struct err *err) NODISCARD;

verb_fn upload_find_ask;
verb_fn upload_open_ask;
verb_fn upload_done_ask;
verb_fn upload_drop_ask;
