/* tls_open.c - how a TLS stream comes to be, and what the library asks meanwhile. */
#include <assert.h>

#include "net/stream_layer.h"
#include "tls/tls_stream_inside.h"
#include "wire/domain.h"

int pipe_read(BIO *b, char *into, int n)
{
	struct tls_stream *t = BIO_get_data(b);
	struct bytes piece = bytes_head(t->in, n > 0 ? (size_t)n : 0);

	BIO_clear_retry_flags(b);
	if (piece.len == 0) {
		BIO_set_retry_read(b);
		return -1;
	}
	memcpy(into, piece.ptr, piece.len);
	t->in = bytes_tail(t->in, piece.len);
	return (int)piece.len;
}

int pipe_write(BIO *b, const char *from, int n)
{
	struct tls_stream *t = BIO_get_data(b);
	struct err ignored;

	BIO_clear_retry_flags(b);
	if (n <= 0 ||
	    buf_add(&t->out, (struct bytes){ (const uint8_t *)from, (size_t)n }, &ignored) < 0)
		return -1;
	return n;
}

int server_choose(SSL *ssl, void *unused)
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

int server_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
		const unsigned char *offered, unsigned int n, void *unused)
{
	const struct tls_stream *t = SSL_get_app_data(ssl);
	struct bytes list = { offered, n }, ours = bytes_str(t->alpn);

	(void)unused;
	if (ours.len == 0)
		return SSL_TLSEXT_ERR_NOACK;
	while (list.len > 0) { /* each is a length and so many bytes; the library checked that */
		struct bytes one = bytes_head(bytes_tail(list, 1), list.ptr[0]);

		if (bytes_eq(one, ours)) {
			*ret = one.ptr;
			*ret_n = (unsigned char)one.len;
			return SSL_TLSEXT_ERR_OK;
		}
		list = bytes_tail(list, 1 + (size_t)list.ptr[0]);
	}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static bool attach(struct tls_stream *t)
{
	BIO *pipe;

	t->ssl = SSL_new(t->ctx->ssl);
	pipe = t->ssl ? BIO_new(t->ctx->pipe) : NULL;
	if (!pipe)
		return false;
	BIO_set_data(pipe, t);
	SSL_set_bio(t->ssl, pipe, pipe);
	return SSL_set_app_data(t->ssl, t) == 1;
}

static struct tls_stream *blank(struct tls_context *c, struct stream *below, const char *alpn)
{
	struct tls_stream *t = calloc(1, sizeof(*t));
	struct loop *l = stream_loop(below);

	if (!t)
		return NULL;
	stream_init(&t->face, &tls_stream_ops, l);
	timer_init(&t->later, l, tls_stream_later);
	timer_init(&t->deadline, l, tls_stream_too_late);
	t->lower.ops = &tls_stream_lower_ops;
	t->below = below;
	t->ctx = c;
	c->refs++;
	t->out.max = TLS_QUEUE_MAX;
	t->early.max = STREAM_QUEUE_MAX;
	t->held.max = TLS_HELD_MAX;
	if (bytes_to_str(bytes_str(alpn ? alpn : ""), t->alpn, sizeof(t->alpn)) && attach(t))
		return t;
	tls_stream_free(t);
	return NULL;
}

static void begin(struct tls_stream *t, struct stream **ret)
{
	stream_set_user(t->below, &t->lower);
	tls_stream_update(t);
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
	struct tls_stream *t = blank(c, below, alpn);

	assert(!c->server);
	if (!t || !expect(t, name) || !offer_alpn(t)) {
		if (t)
			tls_stream_free(t);
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
	struct tls_stream *t = blank(c, below, alpn);

	assert(c->server);
	if (!t || buf_add(&t->held, first, err) < 0) {
		if (t)
			tls_stream_free(t);
		stream_abort(below);
		return openssl_fail(err, ERR_EXHAUSTED, "TLS: begin as a server");
	}
	t->chooser = chooser;
	SSL_set_accept_state(t->ssl);
	begin(t, ret);
	return 0;
}
