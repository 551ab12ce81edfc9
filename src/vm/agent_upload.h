/* agent_upload.h - a file of the host becomes a file of the guest, in constant memory.
 *
 *	file --thread--> socket --loop--> POST /files
 *
 * The thread reads ahead no more than the socket holds: a slow guest makes a slow reader.
 */
#pragma once

#include "http/client.h"

enum { AGENT_UPLOAD_SAID_MAX = 1024 }; /* of an answer that refuses */

struct agent_upload_spec {         /* borrowed for the call that starts it, but for the file */
	int file;                  /* regular, read from its beginning; taken */
	uint64_t bytes;            /* its length */
	struct bytes path, user;   /* in the guest; letters, digits and -._/ only */
	struct bytes access_token; /* may be empty */
	uint64_t deadline_ms;      /* of all of it */
};

struct agent_upload;
typedef void agent_upload_done_fn(struct agent_upload *u, const struct err *err);
struct agent_upload {                  /* embedded by the caller; all zero: nothing under way */
	agent_upload_done_fn *on_done; /* once; NULL error: the file is there */
	struct http_client *client;
	struct http_exchange *exchange;
	struct http_reply reply;
	struct stream *in; /* what the thread reads; NULL: all of it was sent */
	struct stream_user in_user;
	struct work *reader; /* NULL: it is done */
	uint64_t left;       /* bytes that are still to be sent */
	unsigned int status; /* of the answer; 0: not yet */
	struct buf said;
};

/* Takes stream and file in any case. */
int agent_upload_start(struct agent_upload *u, struct stream *s,
		       const struct agent_upload_spec *spec, agent_upload_done_fn *on_done,
		       struct err *err) NODISCARD;
void agent_upload_cancel(struct agent_upload *u); /* fine when nothing is under way */
