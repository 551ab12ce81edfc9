/* tls_greeting.c - a client's hello is held back until it is whole.
 *
 * The library makes room for a message when it is told how long that will be, 128 KiB for nine
 * bytes, and needs more than twenty for itself. So it sees a hello, the first as well as the one
 * that it asks for when it does not like the groups of the first, when all of it is there; until
 * then a client costs what it said.
 */
#include "tls/tls_stream_inside.h"

enum { RECORD_CHANGE = 20, CHANGE_LEN = 6, MESSAGE_HELLO = 2, RANDOM_AT = 6, RANDOM_LEN = 32 };

/* That a client changes its cipher means nothing between two hellos; it says so once to look like
 * one of TLS 1.2 (RFC 8446, D.4). False: it may be about to. */
static bool skip_change(struct tls_stream *t)
{
	static const uint8_t rest[] = { 0, 1, 1 }; /* behind type and version */

	if (t->in.len == 0 || t->in.ptr[0] != RECORD_CHANGE)
		return true;
	if (t->in.len < CHANGE_LEN)
		return false;
	if (memcmp(t->in.ptr + CHANGE_LEN - sizeof(rest), rest, sizeof(rest)) == 0) {
		t->in = bytes_tail(t->in, CHANGE_LEN);
		t->shake->may_change = false;
	}
	return true;
}

bool tls_greeted(struct tls_stream *t)
{
	struct tls_shake *h = t->shake;
	struct err err;

	if (h->greeted)
		return true;
	if ((h->may_change && !skip_change(t)) || !tls_hello_settled(t->in, &h->hello))
		return false;
	h->greeted = tls_hello_arrived(&h->hello);
	if (h->greeted)
		return true;
	if (tls_hello_begun(&h->hello))
		err_set(&err, ERR_EXHAUSTED, 0, "TLS: a hello of more than %d bytes",
			TLS_HELLO_MAX);
	else
		err_set(&err, ERR_INVALID, 0, "TLS: it begins with something else than a hello");
	tls_break_down(t, &err);
	return false;
}

/* The library asks for another hello by one of its own with this in it (RFC 8446, 4.1.3). */
static void on_message(int sent, int version, int type, const void *message, size_t len, SSL *ssl,
		       void *unused)
{
	static const uint8_t again[RANDOM_LEN] = {
		0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
		0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
		0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
	};
	struct tls_stream *t = SSL_get_app_data(ssl);
	const uint8_t *at = message;

	(void)version;
	(void)unused;
	if (!sent || type != SSL3_RT_HANDSHAKE || len < RANDOM_AT + RANDOM_LEN ||
	    at[0] != MESSAGE_HELLO || memcmp(at + RANDOM_AT, again, RANDOM_LEN) != 0)
		return;
	t->shake->greeted = false;
	t->shake->may_change = true;
	t->shake->hello = (struct tls_hello_place){ 0 };
}

void tls_watch_greeting(struct tls_stream *t)
{
	SSL_set_msg_callback(t->ssl, on_message);
}
