/* tls_stream_inside.h - inside tls/: one TLS stream, as the files that make it see it. */
#pragma once

#include "net/stream_layer.h"
#include "net/timer.h"
#include "tls/openssl_inside.h"
#include "tls/tls_service.h"
#include "tls/tls_stream.h"
#include "wire/tls_hello.h"

enum { TLS_HELD_MAX = 256 * 1024 }; /* `first`, or one read of the stream below */

enum tls_state { TLS_SHAKING, TLS_OPEN, TLS_BROKEN, TLS_DEAD };

struct tls_shake { /* of a service's stream, until it is open */
	struct tls_stream *of;
	struct tls_service *service;
	struct tls_guest *guest;
	size_t said;                  /* by the client, in bytes, and read by the library */
	struct tls_hello_place hello; /* that is waited for */
	bool greeted;                 /* it is whole */
	bool may_change;              /* see tls_greeting.c */
	bool turn;                    /* its turn has come */
	bool signing;                 /* it is put aside */
	struct tls_sign sign;
	uint64_t round;                 /* in which it has its turn */
	struct tls_shake *next, **prev; /* prev NULL: does not wait for its turn */
};

struct tls_stream {
	struct stream face;
	struct stream_user lower;
	struct stream *below;
	struct tls_context *ctx;
	SSL *ssl; /* of a service's stream NULL until a whole hello is there */
	struct tls_chooser *chooser;
	struct tls_shake *shake; /* NULL: not a service's, or open */
	struct timer later, deadline;
	struct bytes in; /* borrowed for the length of a callback */
	struct buf out, early, held;
	struct err why; /* BROKEN; or what the chooser or the signer said */
	enum tls_state state;
	bool told;  /* of the failure */
	bool ended; /* the other side finished writing */
	bool above; /* more than STREAM_LOW_WATER was written early: on_drain is due */
	char alpn[TLS_ALPN_MAX + 1];
};

/* tls_stream.c */
extern const struct stream_ops tls_stream_ops;
extern const struct stream_user_ops tls_lower_ops;
void tls_on_later(struct timer *t);
void tls_on_too_late(struct timer *t);
void tls_update(struct tls_stream *t); /* whether it reads */
void tls_break_down(struct tls_stream *t, const struct err *why);
void tls_fail(struct tls_stream *t, const char *doing); /* for a reason of the library's */
void tls_pass_down_or_break(struct tls_stream *t);
void tls_send_early(struct tls_stream *t);
void tls_advance_held(struct tls_stream *t);
void tls_free_stream(struct tls_stream *t);

/* tls_handshake.c */
struct tls_stream *tls_stream_blank(struct tls_context *c, struct stream *below, const char *alpn);
bool tls_stream_attach(struct tls_stream *t); /* gives it its SSL */
void tls_shake(struct tls_stream *t);         /* a step, or its turn is waited for */

/* tls_greeting.c */
bool tls_greeted(struct tls_stream *t); /* of a service's: a hello is there, or none is due */
void tls_watch_greeting(struct tls_stream *t);

/* tls_service.c */
void tls_service_wait(struct tls_shake *h); /* for its turn */
/* One step with its key at hand: what SSL_do_handshake() returns. */
int tls_service_step(struct tls_shake *h);
void tls_service_sign(struct tls_shake *h);             /* the step wants a signature */
const char *tls_service_protocols(struct tls_shake *h); /* with commas */
void tls_service_opened(struct tls_stream *t); /* tells the guest; the stream may be closed after */
/* The stream is over: nothing waits for its turn or for a signature any more. */
void tls_service_forget(struct tls_stream *t);
