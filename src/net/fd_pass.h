/* fd_pass.h - a descriptor beside the bytes of a stream, and the stream's own. */
#pragma once

#include "net/stream.h"

/* One byte with a descriptor, over a unix socket with nothing queued, at once or not at all. The
 * descriptor stays the caller's. */
int stream_pass_fd(struct stream *s, char byte, int fd, struct err *err) NODISCARD;

/* Ends the stream and gives back its socket as it is, to be handed to another process; -1 when it
 * was broken or had something queued: then it is closed. */
int stream_take_fd(struct stream *s);
