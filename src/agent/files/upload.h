/* upload.h - a file that is being written, and appears only when it is whole.
 *
 * The bytes go to a file without a name, which gets its name at the end: cut off in the middle, by
 * the client or by a crash, an upload leaves nothing. An old file is replaced in one step, keeps
 * its mode, and is found through symbolic links. The nameless file lies in a folder of ours, so
 * that whoever watches the target's folder sees a file appear and be written, and no more; on
 * another file system than that it lies beside the target. Where files cannot be nameless (procfs,
 * sysfs, some network file systems) the target is written in place: there is no other way.
 */
#pragma once

#include "agent/accounts.h"
#include "agent/user_path.h"
#include "wire/json.h"

enum { UPLOAD_NAME_MAX = 255 };

enum upload_fault {                  /* what a client has to know about a failure */
		    UPLOAD_BROKEN,   /* 500 */
		    UPLOAD_REFUSED,  /* the path cannot be a file: 400 */
		    UPLOAD_NO_SPACE, /* 507 */
};

struct upload {
	int dir;     /* where it will appear; owned */
	int staging; /* where it lies until then: a copy of the caller's, or of dir; owned */
	int fd;      /* owned */
	mode_t mode;
	bool in_place;
	char name[UPLOAD_NAME_MAX + 1]; /* in dir */
	enum upload_fault fault;        /* set when a call fails */
};

/* Makes missing parents; they and the file belong to `who`. `staging`: a folder, or -1. */
int upload_open(struct upload *u, const char *path, int staging, const struct account *who,
		struct err *err) NODISCARD;
int upload_write(struct upload *u, struct bytes piece, struct err *err) NODISCARD;
/* The file has this metadata and no other; before it is published. */
int upload_note(struct upload *u, json_t *metadata, struct err *err) NODISCARD;
int upload_publish(struct upload *u, struct err *err) NODISCARD; /* it is whole: let it appear */
void upload_close(struct upload *u); /* unless published, it never was. Twice is fine. */
