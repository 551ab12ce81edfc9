/* kernel_message.h - messages of the Jupyter protocol, as frames: <IDS|MSG>, a signature, header,
 * parent's header, metadata, content.
 *
 * Whatever a kernel says is the word of the user's code. So everything is checked, and bounded by
 * what a frame may be (zsock.h).
 */
#pragma once

#include "wire/json.h"

enum {
	MESSAGE_ID_SIZE = 64,   /* of a message, with its NUL; ours are shorter */
	MESSAGE_TYPE_SIZE = 32, /* longer types are none that we know */
	MESSAGE_DATE_SIZE = 40,
	MESSAGE_FRAMES = 6, /* that we send */
};

struct kernel_message {
	char type[MESSAGE_TYPE_SIZE];
	char parent[MESSAGE_ID_SIZE]; /* what it is about; empty: nothing of ours */
	char date[MESSAGE_DATE_SIZE]; /* as the kernel wrote it; empty: not known */
	json_t *content;              /* an object */
	bool unreadable;              /* it is ours, and says that theirs could not be read */
};

/* Refused: a wrong signature, frames that are missing, a header that is none. An integer that is
 * too large for 64 bits makes all numbers of the content floating ones; text that is no UTF-8 is
 * mended (json_mend.h). */
int kernel_message_decode(struct bytes key, const struct bytes *frames, size_t n,
			  struct kernel_message *ret, struct err *err) NODISCARD;
void kernel_message_done(struct kernel_message *m);

struct kernel_frames { /* one message to send */
	struct buf header, content;
	char signature[65];
	struct bytes frames[MESSAGE_FRAMES]; /* borrow from the above */
};
int kernel_message_encode(struct bytes key, const char *type, const char *id, const char *session,
			  const json_t *content, struct kernel_frames *ret,
			  struct err *err) NODISCARD;
void kernel_frames_done(struct kernel_frames *f);
