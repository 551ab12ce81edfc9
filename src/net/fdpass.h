/* fdpass.h - fixed-size messages with descriptors, over a SOCK_SEQPACKET unix socket.
 *
 * A message of another size, more descriptors than asked for, or control data that was cut off is
 * refused, and whatever descriptors came with it are closed.
 */
#pragma once

#include "base/bytes.h"
#include "net/watch.h"

enum { FDPASS_FDS_MAX = 32, FDPASS_BYTES_MAX = 4096 };

struct fd_pack { /* owns; unused ones are -1, and so is one that was taken with take_fd() */
	int fd[FDPASS_FDS_MAX];
	size_t n;
};

void fd_pack_init(struct fd_pack *p);
void fd_pack_done(struct fd_pack *p); /* closes what was not taken */

enum fdpass {
	FDPASS_OK,
	FDPASS_AGAIN, /* not now: try when the socket is ready */
	FDPASS_END,   /* receive only: the other side closed */
	FDPASS_BAD,   /* *err says why */
};

/* The descriptors stay the caller's. All or nothing. */
enum fdpass fdpass_send(int sock, struct bytes msg, const int *fds, size_t n_fds,
			struct err *err) NODISCARD;

/* Exactly `size` bytes into `into`, and at most max_fds descriptors (close-on-exec). After BAD
 * the conversation is broken and should be closed. */
enum fdpass fdpass_recv(int sock, uint8_t *into, size_t size, size_t max_fds, struct fd_pack *ret,
			struct err *err) NODISCARD;

struct fd_reader;
struct fd_reader_ops {
	/* `msg` is borrowed; descriptors not taken out of `fds` are closed afterwards. */
	void (*on_message)(struct fd_reader *r, struct bytes msg, struct fd_pack *fds);
	/* The last call: the other side closed (NULL) or broke the rules. Already closed. */
	void (*on_end)(struct fd_reader *r, const struct err *err);
};

struct fd_reader { /* embedded by the caller */
	const struct fd_reader_ops *ops;
	int sock; /* borrowed */
	size_t size, max_fds;
	struct watch ready;
};

/* Messages of exactly `size` bytes, one per turn of the loop. */
int fd_reader_open(struct fd_reader *r, struct loop *l, const struct fd_reader_ops *ops, int sock,
		   size_t size, size_t max_fds, struct err *err) NODISCARD;
void fd_reader_close(struct fd_reader *r); /* no more calls; a second time does nothing */
