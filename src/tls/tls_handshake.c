/* tls_handshake.c - how a TLS stream comes to be: what the library reads, writes and asks, and the
 * steps until it is open. */
#include <assert.h>
#include <openssl/err.h>

#include "tls/tls_stream_inside.h"
#include "wire/domain.h"

/* --- the steps ------------------------------------------------------------------------------ */

/* A server must not pick what was not offered. */
static bool alpn_agrees(struct tls_stream *t)
{
	const unsigned char *picked;
	unsigned int n;

	SSL_get0_alpn_selected(t->ssl, &picked, &n);
	return n == 0 || bytes_eq((struct bytes){ picked, n }, bytes_str(t->alpn));
}

static void opened(struct tls_stream *t)
{
	struct err err;

	if (!t->shake && !alpn_agrees(t)) {
		err_set(&err, ERR_INVALID, 0, "TLS: a protocol was picked that is not %s", t->alpn);
		tls_break_down(t, &err);
		return;
	}
	timer_stop(&t->deadline);
	t->state = TLS_OPEN;
	tls_pass_down_or_break(t);
	if (t->state == TLS_OPEN)
		tls_send_early(t);
	if (t->state == TLS_OPEN && t->shake)
		tls_service_opened(t);
}

/* The library's word on a step. It must be asked for at once. That a signature is wanted is known
 * for certain: the library does not say so when anything on the way has left an error behind. */
static int step(struct tls_stream *t)
{
	int rc;

	ERR_clear_error();
	rc = t->shake ? tls_service_step(t->shake) : SSL_do_handshake(t->ssl);
	if (rc != 1 && t->shake && t->shake->sign.state == TLS_SIGN_ASKED)
		return SSL_ERROR_WANT_ASYNC;
	return rc == 1 ? SSL_ERROR_NONE : SSL_get_error(t->ssl, rc);
}

static void shake_once(struct tls_stream *t)
{
	switch (step(t)) {
	case SSL_ERROR_NONE:
		opened(t);
		break;
	case SSL_ERROR_WANT_READ:
		tls_pass_down_or_break(t);
		break;
	case SSL_ERROR_WANT_ASYNC:
		tls_pass_down_or_break(t);
		if (t->state == TLS_SHAKING)
			tls_service_sign(t->shake);
		break;
	case SSL_ERROR_WANT_ASYNC_JOB: /* no memory for another stack */
		tls_service_wait(t->shake);
		break;
	default:
		tls_fail(t, "TLS: handshake");
	}
}

void tls_shake(struct tls_stream *t)
{
	struct err err;

	if (t->shake && !tls_greeted(t))
		return;
	if (t->shake && !t->shake->turn) {
		tls_service_wait(t->shake);
	} else if (!t->ssl && !tls_stream_attach(t)) {
		openssl_fail(&err, ERR_EXHAUSTED, "TLS: begin as a server");
		tls_break_down(t, &err);
	} else {
		shake_once(t);
	}
}

/* --- what the library asks ------------------------------------------------------------------ */

static int too_long(struct tls_stream *t)
{
	err_set(&t->why, ERR_EXHAUSTED, 0, "TLS: more than %d bytes of a handshake", TLS_SAID_MAX);
	return -1;
}

static int pipe_read(BIO *b, char *into, int n)
{
	struct tls_stream *t = BIO_get_data(b);
	struct bytes piece = bytes_head(t->in, n > 0 ? (size_t)n : 0);

	BIO_clear_retry_flags(b);
	if (piece.len == 0 || (t->shake && !t->shake->greeted)) {
		BIO_set_retry_read(b);
		return -1;
	}
	if (t->shake && (t->shake->said += piece.len) > TLS_SAID_MAX)
		return too_long(t);
	memcpy(into, piece.ptr, piece.len);
	t->in = bytes_tail(t->in, piece.len);
	return (int)piece.len;
}

static int pipe_write(BIO *b, const char *from, int n)
{
	struct tls_stream *t = BIO_get_data(b);
	struct err ignored;

	BIO_clear_retry_flags(b);
	if (n <= 0 ||
	    buf_add(&t->out, (struct bytes){ (const uint8_t *)from, (size_t)n }, &ignored) < 0)
		return -1;
	return n;
}

static int server_choose(SSL *ssl, void *unused)
{
	struct tls_stream *t = SSL_get_app_data(ssl);
	const char *said = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	const struct identity *who = NULL;
	char name[DOMAIN_SIZE] = "";

	(void)unused;
	if (said && !domain_normal(bytes_str(said), name)) {
		err_set(&t->why, ERR_INVALID, 0, "TLS: what was asked for is not a name");
		return 0;
	}
	if (t->chooser->choose(t->chooser, name, &who, &t->why) < 0)
		return 0;
	t->why = (struct err){ 0 };
	return SSL_use_cert_and_key(ssl, who->leaf, who->key, who->above, 1) == 1;
}

/* One of ours among those offered: each is a length and so many bytes; the library checked that. */
static bool find_offered(struct bytes list, struct bytes ours, struct bytes *ret)
{
	while (list.len > 0) {
		*ret = bytes_head(bytes_tail(list, 1), list.ptr[0]);
		if (bytes_eq(*ret, ours))
			return true;
		list = bytes_tail(list, 1 + (size_t)list.ptr[0]);
	}
	return false;
}

static int server_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
		       const unsigned char *offered, unsigned int n, void *unused)
{
	const struct tls_stream *t = SSL_get_app_data(ssl);
	struct bytes all = bytes_str(t->shake ? tls_service_protocols(t->shake) : t->alpn);
	struct bytes ours, found;

	(void)unused;
	if (all.len == 0)
		return SSL_TLSEXT_ERR_NOACK;
	while (bytes_next(&all, ',', &ours))
		if (find_offered((struct bytes){ offered, n }, ours, &found)) {
			*ret = found.ptr;
			*ret_n = (unsigned char)found.len;
			return SSL_TLSEXT_ERR_OK;
		}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static long pipe_ctrl(BIO *b, int cmd, long n, void *at)
{
	(void)b;
	(void)n;
	(void)at;
	return cmd == BIO_CTRL_FLUSH; /* what is written is never held back */
}

static int pipe_create(BIO *b)
{
	BIO_set_init(b, 1);
	return 1;
}

bool tls_stream_set_up(struct tls_context *c)
{
	if (c->server) {
		SSL_CTX_set_cert_cb(c->ssl, server_choose, NULL);
		SSL_CTX_set_alpn_select_cb(c->ssl, server_alpn, NULL);
	}
	c->pipe = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "stream");
	return c->pipe && BIO_meth_set_read(c->pipe, pipe_read) == 1 &&
	       BIO_meth_set_write(c->pipe, pipe_write) == 1 &&
	       BIO_meth_set_ctrl(c->pipe, pipe_ctrl) == 1 &&
	       BIO_meth_set_create(c->pipe, pipe_create) == 1;
}

/* --- how a stream comes to be --------------------------------------------------------------- */

bool tls_stream_attach(struct tls_stream *t)
{
	BIO *pipe;

	t->ssl = SSL_new(t->ctx->ssl);
	pipe = t->ssl ? BIO_new(t->ctx->pipe) : NULL;
	if (!pipe)
		return false;
	BIO_set_data(pipe, t);
	SSL_set_bio(t->ssl, pipe, pipe);
	if (t->shake) {
		(void)SSL_set_mode(t->ssl, SSL_MODE_ASYNC);
		SSL_set_accept_state(t->ssl);
		tls_watch_greeting(t);
	}
	return SSL_set_app_data(t->ssl, t) == 1;
}

struct tls_stream *tls_stream_blank(struct tls_context *c, struct stream *below, const char *alpn)
{
	struct tls_stream *t = calloc(1, sizeof(*t));
	struct loop *l = stream_loop(below);

	if (!t)
		return NULL;
	stream_init(&t->face, &tls_stream_ops, l);
	timer_init(&t->later, l, tls_on_later);
	timer_init(&t->deadline, l, tls_on_too_late);
	t->lower.ops = &tls_lower_ops;
	t->below = below;
	t->ctx = c;
	c->refs++;
	t->out.max = TLS_QUEUE_MAX;
	t->early.max = STREAM_QUEUE_MAX;
	t->held.max = TLS_HELD_MAX;
	if (bytes_to_str(bytes_str(alpn ? alpn : ""), t->alpn, sizeof(t->alpn)))
		return t;
	tls_free_stream(t);
	return NULL;
}

static void begin(struct tls_stream *t, struct stream **ret)
{
	stream_set_user(t->below, &t->lower);
	tls_update(t);
	timer_start(&t->deadline, TLS_HANDSHAKE_MS);
	timer_start(&t->later, 0);
	*ret = &t->face;
}

static bool offer_alpn(struct tls_stream *t)
{
	uint8_t list[1 + TLS_ALPN_MAX];
	size_t n = strlen(t->alpn);

	list[0] = (uint8_t)n;
	memcpy(list + 1, t->alpn, n);
	return n == 0 || SSL_set_alpn_protos(t->ssl, list, (unsigned int)n + 1) == 0;
}

static bool expect(struct tls_stream *t, const char *name)
{
	char said[TLS_NAME_MAX + 1]; /* the library wants one that it could change */

	/* in the list of names, that is: what a certificate calls itself is for people */
	SSL_set_hostflags(t->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
					  X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (!name)
		return t->ctx->unverified;
	return bytes_to_str(bytes_str(name), said, sizeof(said)) &&
	       SSL_set_tlsext_host_name(t->ssl, said) == 1 && SSL_set1_host(t->ssl, said) == 1;
}

int tls_connect(struct tls_context *c, struct stream *below, const char *name, const char *alpn,
		struct stream **ret, struct err *err)
{
	struct tls_stream *t = tls_stream_blank(c, below, alpn);

	assert(!c->server);
	if (!t || !tls_stream_attach(t) || !expect(t, name) || !offer_alpn(t)) {
		if (t)
			tls_free_stream(t);
		stream_abort(below);
		return openssl_fail(err, ERR_INTERNAL, "TLS: begin as a client");
	}
	SSL_set_connect_state(t->ssl);
	begin(t, ret);
	return 0;
}

int tls_accept(struct tls_context *c, struct stream *below, struct bytes first,
	       struct tls_chooser *chooser, const char *alpn, struct stream **ret, struct err *err)
{
	struct tls_stream *t = tls_stream_blank(c, below, alpn);

	assert(c->server);
	if (!t || !tls_stream_attach(t) || buf_add(&t->held, first, err) < 0) {
		if (t)
			tls_free_stream(t);
		stream_abort(below);
		return openssl_fail(err, ERR_EXHAUSTED, "TLS: begin as a server");
	}
	t->chooser = chooser;
	SSL_set_accept_state(t->ssl);
	begin(t, ret);
	return 0;
}
