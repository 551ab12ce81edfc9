/* tls_stream.c - a stream that encrypts what goes through it.
 *
 * SHAKING until the handshake is over, then OPEN; BROKEN when anything goes wrong; DEAD after
 * close(), freed in the next turn. The library reads from `in`, and writes to `out`, which is
 * passed down at once: no bytes wait here, but what is written while SHAKING (`early`), and what
 * came and the user does not want now (`held`).
 *
 * `later` is for what must come from the loop: the first step, a failure, what was held.
 */
#include "tls/tls_stream.h"

#include <openssl/err.h>

#include "tls/tls_stream_inside.h"

enum { PIECE_MAX = 16 * 1024 }; /* a whole record */

static struct tls_stream *of(struct stream *s)
{
	return CONTAINER_OF(s, struct tls_stream, face);
}

static struct tls_stream *of_lower(struct stream_user *u)
{
	return CONTAINER_OF(u, struct tls_stream, lower);
}

/* Whoever reads or not is a function of what we are; nobody toggles it by hand. */
void tls_update(struct tls_stream *t)
{
	bool wants =
		t->state == TLS_SHAKING && !(t->shake && (t->shake->prev || t->shake->signing));

	if (t->state == TLS_DEAD)
		return;
	if (t->state == TLS_OPEN)
		wants = t->face.reading && !t->ended && t->held.len == 0;
	stream_read(t->below, wants);
}

/* The first reason counts. Told from the loop: this may be inside a call of the user's. */
void tls_break_down(struct tls_stream *t, const struct err *why)
{
	if (t->state == TLS_BROKEN || t->state == TLS_DEAD)
		return;
	t->why = *why;
	t->state = TLS_BROKEN;
	tls_service_forget(t);
	timer_stop(&t->deadline);
	buf_done(&t->early);
	buf_done(&t->held);
	tls_update(t);
	timer_start(&t->later, 0);
}

/* Beyond the limit of the stream below by what TLS adds: its users were refused before. What grows
 * without them, answers that the other side asks for and does not read, has a limit of its own. */
static int tls_pass_down(struct tls_stream *t, struct err *err)
{
	int rc = 0;

	if (t->out.len == 0)
		return 0;
	if (stream_queued(t->below) + t->out.len > TLS_QUEUE_MAX)
		rc = err_set(err, ERR_EXHAUSTED, 0, "TLS: the other side asks and does not read");
	else
		rc = t->below->ops->write(t->below, (struct bytes){ 0 }, &t->out, err);
	buf_done(&t->out);
	t->out.max = TLS_QUEUE_MAX;
	return rc;
}

void tls_pass_down_or_break(struct tls_stream *t)
{
	struct err err;

	if (tls_pass_down(t, &err) < 0)
		tls_break_down(t, &err);
}

/* Why the library gave up, in words. */
static void explain(struct tls_stream *t, const char *doing, struct err *err)
{
	long verdict = t->ssl ? SSL_get_verify_result(t->ssl) : X509_V_OK;
	unsigned long e = ERR_peek_last_error();

	if (t->why.code != ERR_NONE)
		*err = t->why; /* the chooser's, or the signer's */
	else if (ERR_GET_REASON(e) == SSL_R_CERTIFICATE_VERIFY_FAILED && verdict != X509_V_OK)
		err_set(err, ERR_DENIED, 0, "TLS: the certificate of %.128s: %s",
			SSL_get_servername(t->ssl, TLSEXT_NAMETYPE_host_name),
			X509_verify_cert_error_string(verdict));
	else
		openssl_fail(err, ERR_INVALID, doing);
	ERR_clear_error();
}

void tls_fail(struct tls_stream *t, const char *doing)
{
	struct err err, ignored;

	explain(t, doing, &err);
	(void)tls_pass_down(t, &ignored); /* the alert that tells the other side */
	tls_break_down(t, &err);
}

static int encrypt(struct tls_stream *t, struct bytes b, struct err *err)
{
	size_t n = 0;

	ERR_clear_error();
	if (SSL_write_ex(t->ssl, b.ptr, b.len, &n) != 1 || n != b.len) {
		openssl_fail(err, ERR_UNAVAILABLE, "TLS: write");
		tls_break_down(t, err);
		return -1;
	}
	if (tls_pass_down(t, err) == 0)
		return 0;
	tls_break_down(t, err);
	return -1;
}

static void say_goodbye(struct tls_stream *t)
{
	ERR_clear_error();
	(void)SSL_shutdown(t->ssl); /* only says so; the other side's word is read as data is */
	ERR_clear_error();
	tls_pass_down_or_break(t);
	if (t->state == TLS_OPEN)
		stream_shut(t->below);
}

static void tell_drained(struct tls_stream *t)
{
	if (t->face.user && t->face.user->ops->on_drain)
		t->face.user->ops->on_drain(t->face.user);
}

void tls_send_early(struct tls_stream *t)
{
	struct err ignored;

	if (t->early.len > 0 && encrypt(t, buf_view(&t->early), &ignored) < 0)
		return;
	buf_done(&t->early);
	if (t->face.shut)
		say_goodbye(t);
	if (t->state == TLS_OPEN && t->above && stream_queued(t->below) <= STREAM_LOW_WATER)
		tell_drained(t);
	t->above = false;
}

/* One record. False: no more for now. */
static bool read_piece(struct tls_stream *t)
{
	uint8_t piece[PIECE_MAX];
	size_t n = 0;
	int rc, why;

	ERR_clear_error();
	rc = SSL_read_ex(t->ssl, piece, sizeof(piece), &n);
	if (rc == 1) {
		t->face.user->ops->on_data(t->face.user, (struct bytes){ piece, n });
		return true;
	}
	why = SSL_get_error(t->ssl, rc);
	if (why == SSL_ERROR_WANT_READ)
		return false;
	if (why == SSL_ERROR_ZERO_RETURN) {
		t->ended = true;
		t->face.user->ops->on_end(t->face.user);
		return false;
	}
	tls_fail(t, "TLS: read");
	return false;
}

/* As far as `in` goes and the user wants. */
static void advance(struct tls_stream *t)
{
	if (t->state == TLS_SHAKING)
		tls_shake(t);
	while (t->state == TLS_OPEN && t->face.reading && !t->ended)
		if (!read_piece(t))
			break;
	if (t->state == TLS_OPEN)
		tls_pass_down_or_break(t);
}

void tls_advance_held(struct tls_stream *t)
{
	t->in = buf_view(&t->held);
	advance(t);
	if (t->held.len > 0) /* not so when it broke meanwhile */
		buf_drop(&t->held, t->held.len - t->in.len);
	if (t->held.len == 0)
		buf_done(&t->held);
	t->held.max = TLS_HELD_MAX;
	t->in = (struct bytes){ 0 };
	tls_update(t);
}

static void hold(struct tls_stream *t, struct bytes rest)
{
	struct err err;

	if (t->state <= TLS_OPEN && buf_add(&t->held, rest, &err) < 0)
		tls_break_down(t, &err);
}

static void on_lower_data(struct stream_user *u, struct bytes in)
{
	struct tls_stream *t = of_lower(u);

	if (t->held.len > 0) {
		hold(t, in);
		if (t->held.len > 0)
			tls_advance_held(t);
		return;
	}
	t->in = in;
	advance(t);
	in = t->in;
	t->in = (struct bytes){ 0 };
	if (in.len > 0)
		hold(t, in);
	tls_update(t);
}

/* Where nobody's certificate is looked at, an end that was not announced could be forged like any
 * other; many small servers never announce theirs. Within a record it is a break all the same. */
static bool may_just_end(const struct tls_stream *t)
{
	return t->ctx->unverified && t->state == TLS_OPEN && t->face.user && t->face.reading &&
	       t->held.len == 0 && SSL_has_pending(t->ssl) == 0;
}

static void on_lower_end(struct stream_user *u)
{
	struct tls_stream *t = of_lower(u);
	struct err err;

	if (t->ended)
		return;
	if (may_just_end(t)) {
		t->ended = true;
		t->face.user->ops->on_end(t->face.user);
		return;
	}
	err_set(&err, ERR_UNAVAILABLE, 0, "TLS: the other side went without saying so");
	tls_break_down(t, &err);
}

static void on_lower_drain(struct stream_user *u)
{
	struct tls_stream *t = of_lower(u);

	if (t->state == TLS_OPEN)
		tell_drained(t);
}

static void on_lower_fail(struct stream_user *u, const struct err *err)
{
	tls_break_down(of_lower(u), err);
}

const struct stream_user_ops tls_lower_ops = { on_lower_data, on_lower_end, on_lower_drain,
					       on_lower_fail };

void tls_free_stream(struct tls_stream *t)
{
	SSL_free(t->ssl);
	tls_context_free(t->ctx);
	buf_done(&t->out);
	buf_done(&t->early);
	buf_done(&t->held);
	free(t);
}

void tls_on_later(struct timer *timer)
{
	struct tls_stream *t = CONTAINER_OF(timer, struct tls_stream, later);

	switch (t->state) {
	case TLS_DEAD:
		tls_free_stream(t);
		break;
	case TLS_BROKEN:
		if (t->face.user && !t->told) {
			t->told = true;
			t->face.user->ops->on_fail(t->face.user, &t->why);
		}
		break;
	case TLS_SHAKING:
	case TLS_OPEN:
		tls_advance_held(t);
		break;
	}
}

void tls_on_too_late(struct timer *timer)
{
	struct tls_stream *t = CONTAINER_OF(timer, struct tls_stream, deadline);
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "TLS: no handshake within %d s",
		(t->shake ? TLS_SERVICE_MS : TLS_HANDSHAKE_MS) / 1000);
	tls_break_down(t, &err);
}

static void tls_read(struct stream *s, bool on)
{
	struct tls_stream *t = of(s);

	(void)on;
	if (t->state == TLS_BROKEN || (t->state == TLS_OPEN && s->reading))
		timer_start(&t->later, 0);
	tls_update(t);
}

static int tls_write(struct stream *s, struct bytes b, struct buf *take, struct err *err)
{
	struct tls_stream *t = of(s);
	struct bytes all = take ? buf_view(take) : b;

	if (t->state == TLS_OPEN)
		return encrypt(t, all, err);
	if (t->state != TLS_SHAKING) /* whoever writes before on_fail came learns why, too */
		return err_set(err, ERR_UNAVAILABLE, 0, "%s", t->why.msg);
	if (buf_add(&t->early, all, err) < 0)
		return -1;
	t->above |= t->early.len > STREAM_LOW_WATER;
	return 0;
}

static void tls_shut(struct stream *s)
{
	if (of(s)->state == TLS_OPEN)
		say_goodbye(of(s));
}

static void tls_close(struct stream *s, bool graceful)
{
	struct tls_stream *t = of(s);
	struct err ignored;

	if (graceful && t->state == TLS_OPEN && !s->shut) {
		ERR_clear_error();
		(void)SSL_shutdown(t->ssl);
		ERR_clear_error();
		(void)tls_pass_down(t, &ignored);
	}
	/* BROKEN: an alert may be on its way */
	if (graceful && t->state != TLS_SHAKING)
		stream_close(t->below);
	else
		stream_abort(t->below);
	t->below = NULL;
	t->state = TLS_DEAD;
	tls_service_forget(t);
	timer_stop(&t->deadline);
	timer_start(&t->later, 0);
}

static size_t tls_queued(struct stream *s)
{
	return of(s)->early.len + stream_queued(of(s)->below);
}

static uint64_t tls_sent(struct stream *s)
{
	return stream_sent(of(s)->below);
}

const struct stream_ops tls_stream_ops = { tls_read,   tls_write, tls_shut, tls_close,
					   tls_queued, tls_sent,  NULL };
