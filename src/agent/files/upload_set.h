/* upload_set.h - the files of one upload request: one after the other, each whole or not at all. */
#pragma once

#include "agent/strings.h"
#include "agent/files/upload.h"
#include "wire/json.h"

struct upload_set {
	int staging; /* borrowed; -1: none */
	struct account who;
	json_t *metadata; /* of every file; owned */
	struct upload now;
	bool open;                /* `now` is being written */
	char path[USER_PATH_MAX]; /* of `now`, or of the last one */
	struct strings done;      /* absolute paths in the order of the request */
	enum upload_fault fault;  /* set when a call fails */
};

void upload_set_done(struct upload_set *s); /* what is still open never was */

/* A path that was in this request before is refused. */
int upload_set_begin(struct upload_set *s, const char *path, struct err *err) NODISCARD;
int upload_set_write(struct upload_set *s, struct bytes piece, struct err *err) NODISCARD;
int upload_set_end(struct upload_set *s, struct err *err) NODISCARD; /* it is whole: it appears */

/* [{"path":"/home/user/x","name":"x","type":"file"}], and no member more but "metadata" when there
 * is any: clients compare. Appended to `out`. */
int upload_set_put(const struct upload_set *s, struct buf *out, struct err *err) NODISCARD;
