/* write_queue.h - bytes waiting for a descriptor to take them; holds memory only while not empty.
 */
#pragma once

#include "base/bytes.h"

struct write_chunk;
struct write_queue { /* all zero: empty */
	struct write_chunk *first, *last;
	size_t len; /* in bytes */
};

int write_queue_add(struct write_queue *q, struct bytes b, struct err *err) NODISCARD;

/* All but the first `skip` bytes of b, without a copy; leaves b empty on success. */
int write_queue_take(struct write_queue *q, struct buf *b, size_t skip, struct err *err) NODISCARD;

/* Offer what is queued to `fd` once. Returns the bytes taken, or -1 with errno set. */
ssize_t write_queue_flush(struct write_queue *q, int fd, bool is_socket);

/* The same for bytes that are not queued. */
ssize_t write_now(int fd, bool is_socket, struct bytes b);

/* The same for what follows in a file; 0 is its end. */
ssize_t write_file_now(int fd, int file, size_t max);

void write_queue_done(struct write_queue *q); /* throws away what is left */
