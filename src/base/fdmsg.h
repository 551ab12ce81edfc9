/* fdmsg.h - one message and its descriptors over a SOCK_SEQPACKET unix socket. */
#pragma once

#include "base/bytes.h"

enum { FDMSG_FDS_MAX = 16 };

/* The descriptors stay the caller's. ERR_UNAVAILABLE with EAGAIN when the peer does not read. */
int fdmsg_send(int sock, const void *msg, size_t len, const int *fds, size_t n_fds,
	       struct err *err) NODISCARD;

/* The same of two pieces, which leave as one message and are not copied before. */
int fdmsg_send_pair(int sock, struct bytes head, struct bytes tail, const int *fds, size_t n_fds,
		    struct err *err) NODISCARD;

/* A message of exactly `len` bytes; its descriptors (at most `max_fds`) become the caller's, with
 * close-on-exec set. Anything shorter, longer or with more descriptors is refused and closed.
 * ERR_UNAVAILABLE: sys is EAGAIN when there is nothing yet, 0 when the peer is gone. */
int fdmsg_recv(int sock, void *msg, size_t len, int *fds, size_t max_fds, size_t *ret_n,
	       struct err *err) NODISCARD;

/* The same for messages of `min` (not 0) to `max` bytes. ERR_EXHAUSTED: this process had no room
 * for its descriptors; the bytes are there, *ret_len of them, and no descriptor is. */
int fdmsg_recv_some(int sock, void *msg, size_t min, size_t max, size_t *ret_len, int *fds,
		    size_t max_fds, size_t *ret_n, struct err *err) NODISCARD;
