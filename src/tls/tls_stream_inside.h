/* tls_stream_inside.h - a TLS stream as its two files see it: tls_open.c makes it, tls_stream.c is
 * it. */
#pragma once

#include "net/stream_layer.h"
#include "net/timer.h"
#include "tls/context.h"
#include "tls/tls_stream.h"

enum { TLS_HELD_MAX = 256 * 1024 }; /* `first`, or one read of the stream below */

enum tls_state { TLS_SHAKING, TLS_OPEN, TLS_BROKEN, TLS_DEAD };

struct tls_stream {
	struct stream face;
	struct stream_user lower;
	struct stream *below;
	struct tls_context *ctx;
	SSL *ssl;
	struct tls_chooser *chooser;
	struct timer later, deadline;
	struct bytes in; /* borrowed for the length of a callback */
	struct buf out, early, held;
	struct err why; /* BROKEN; or what the chooser said */
	enum tls_state state;
	bool told;  /* of the failure */
	bool ended; /* the other side finished writing */
	bool above; /* more than STREAM_LOW_WATER was written early: on_drain is due */
	char alpn[TLS_ALPN_MAX + 1];
};

extern const struct stream_ops tls_stream_ops;
extern const struct stream_user_ops tls_stream_lower_ops;

void tls_stream_update(struct tls_stream *t); /* what is read of the stream below */
void tls_stream_later(struct timer *t);
void tls_stream_too_late(struct timer *t);
void tls_stream_free(struct tls_stream *t); /* the stream below is not touched */
