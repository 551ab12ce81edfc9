/* tls_stream.h - TLS as a layer between a stream and its user (net/stream_layer.h).
 *
 *	tls_client_open(&trust, &ctx)   once per process: see context.h
 *	tls_connect(ctx, below, ...)    per connection; the result is a stream like any other
 *
 * The handshake goes on by itself. What is written meanwhile is kept and leaves when it is over;
 * whether it succeeds the user learns from on_data or on_fail:
 *   ERR_DENIED       the other side's certificate is not to be trusted, or the chooser refused
 *   ERR_TIMEOUT      no handshake within TLS_HANDSHAKE_MS
 *   ERR_INVALID      what came is not TLS, or nothing both sides speak
 *   ERR_UNAVAILABLE  the connection broke, or ended without TLS having said so: what was read may
 *                    be cut short, so this is never an end; but of unverified ones it is
 *
 * TLS 1.2 and 1.3. No resumption, no renegotiation, no early data: each of them costs more to get
 * right than it saves here. A stream that is closed before its handshake is over is cut off.
 */
#pragma once

#include "net/stream.h"
#include "tls/context.h"

enum {
	TLS_HANDSHAKE_MS = 15000,
	TLS_NAME_MAX = 253,
	TLS_ALPN_MAX = 32,
	TLS_QUEUE_MAX = 2 * STREAM_QUEUE_MAX, /* of what TLS itself answers, too; then it breaks */
};

/* Takes `below` in any case. `name` is said (SNI) and must be in the certificate; NULL, for
 * unverified ones only: nothing is said. `alpn` is the one protocol offered, "http/1.1"; NULL: none
 * is spoken of. A server that picks another is ERR_INVALID. */
int tls_connect(struct tls_context *c, struct stream *below, const char *name, const char *alpn,
		struct stream **ret, struct err *err) NODISCARD;

struct identity;
struct tls_chooser { /* embedded by the server; must live until its streams are closed */
	/* Who to be for this name, lower-case, "" when none was said. Borrowed: the stream takes
	 * what it needs of it. -1: refuse; on_fail brings the error. Must not touch the stream. */
	int (*choose)(struct tls_chooser *c, const char *name, const struct identity **ret,
		      struct err *err);
};

/* Takes `below` in any case. `first` is what was read of it already, borrowed for the call. A
 * client that offers protocols, but not `alpn`, is ERR_INVALID; one that offers none is welcome. */
int tls_accept(struct tls_context *c, struct stream *below, struct bytes first,
	       struct tls_chooser *chooser, const char *alpn, struct stream **ret,
	       struct err *err) NODISCARD;

/* For context.c: the library reads and writes the bytes of a stream, and asks it who to be. False:
 * the library says why. */
bool tls_stream_set_up(struct tls_context *c) NODISCARD;
