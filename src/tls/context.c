/* context.c - what is switched on and off in the library, and whom a client trusts. */
/* #syscalls: openat read close fstat newfstatat lseek */
#include "tls/context.h"

#include <errno.h>
#include <sys/stat.h>

#include "tls/context_inside.h"
#include "tls/openssl_inside.h"
#include "tls/remote_key.h"
#include "tls/tls_stream.h"

static void harden(SSL_CTX *ssl)
{
	(void)SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
					       SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_num_tickets(ssl, 0);
	(void)SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
}

/* No finite fields: how large they are a server may choose, up to 10000 bits, and a handshake takes
 * as long as that: half a second, for a guest that the gateway speaks to. */
static bool bound_cost(SSL_CTX *ssl)
{
	char groups[] = "X25519:P-256:P-384:P-521"; /* the library wants one it could change */

	return SSL_CTX_set_cipher_list(ssl, "DEFAULT:!kDHE") == 1 &&
	       SSL_CTX_set1_groups_list(ssl, groups) == 1;
}

static void own_context(struct tls_context **p)
{
	tls_context_free(*p);
}

static int open_context(bool server, OSSL_LIB_CTX *lib, const char *prefer,
			struct tls_context **ret, struct err *err)
{
	AUTO(own_context) struct tls_context *c = calloc(1, sizeof(*c));

	openssl_begin();
	if (!c)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate TLS");
	c->refs = 1;
	c->server = server;
	c->ssl = SSL_CTX_new_ex(lib, prefer, server ? TLS_server_method() : TLS_client_method());
	if (!c->ssl || !tls_stream_set_up(c) || !bound_cost(c->ssl) ||
	    SSL_CTX_set_min_proto_version(c->ssl, TLS1_2_VERSION) != 1)
		return openssl_fail(err, ERR_INTERNAL, "begin TLS");
	harden(c->ssl);
	*ret = TAKE(c);
	return 0;
}

static int trust_file(SSL_CTX *ssl, const char *path, const char *fix, struct err *err)
{
	if (SSL_CTX_load_verify_file(ssl, path) == 1)
		return 0;
	openssl_fail(err, ERR_NOT_FOUND, path);
	return err_set(err, ERR_NOT_FOUND, 0, "trusted certificates: cannot read %.128s: %s", path,
		       fix);
}

/* A file that an installation begins with, for operators to fill. */
static bool is_empty(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

static int trust_extra(SSL_CTX *ssl, const char *path, struct err *err)
{
	if (!path || !path[0] || is_empty(path))
		return 0;
	return trust_file(ssl, path, "PEM is expected", err);
}

/* Instead of a look at all that was sent along, whose outcome nobody wants to know. */
static int take_anybody(X509_STORE_CTX *unused, void *also)
{
	(void)unused;
	(void)also;
	return 1;
}

static int trust(struct tls_context *c, const struct tls_trust *t, struct err *err)
{
	const char *roots = t->roots ? t->roots : TLS_SYSTEM_ROOTS;

	c->unverified = t->unverified;
	if (t->unverified) {
		/* nothing is proven anyway: any certificate will do, however weak */
		SSL_CTX_set_security_level(c->ssl, 0);
		SSL_CTX_set_verify(c->ssl, SSL_VERIFY_NONE, NULL);
		SSL_CTX_set_cert_verify_callback(c->ssl, take_anybody, NULL);
		return 0;
	}
	SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER, NULL);
	/* an operator may trust a server, or a branch, without the root above it */
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(c->ssl), X509_V_FLAG_PARTIAL_CHAIN);
	if (roots[0] && trust_file(c->ssl, roots, "install ca-certificates", err) < 0)
		return -1;
	return trust_extra(c->ssl, t->extra, err);
}

int tls_client_open(const struct tls_trust *t, struct tls_context **ret, struct err *err)
{
	AUTO(own_context) struct tls_context *c = NULL;

	if (open_context(false, NULL, NULL, &c, err) < 0 || trust(c, t, err) < 0)
		return -1;
	*ret = TAKE(c);
	return 0;
}

int tls_server_open(struct tls_context **ret, struct err *err)
{
	return open_context(true, NULL, NULL, ret, err);
}

/* What Mozilla calls intermediate; and who resumes with a ticket of ours. */
static bool set_service(SSL_CTX *ssl)
{
	static const unsigned char context[] = "hotcell";
	char groups[] = "X25519:P-256:P-384"; /* the library wants one it could change */

	(void)SSL_CTX_set_options(ssl, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
	(void)SSL_CTX_clear_options(ssl, SSL_OP_NO_TICKET);
	return SSL_CTX_set_cipher_list(ssl, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 &&
	       SSL_CTX_set1_groups_list(ssl, groups) == 1 && SSL_CTX_set_num_tickets(ssl, 1) == 1 &&
	       SSL_CTX_set_session_id_context(ssl, context, sizeof(context) - 1) == 1;
}

int tls_service_context(struct tls_context **ret, struct err *err)
{
	AUTO(own_context) struct tls_context *c = NULL;
	struct remote_keys *keys = NULL;

	if (remote_keys_open(&keys, err) < 0)
		return -1;
	if (open_context(true, keys->lib, REMOTE_KEYS_PREFER, &c, err) < 0) {
		remote_keys_close(keys);
		return -1;
	}
	c->keys = keys;
	if (!set_service(c->ssl))
		return openssl_fail(err, ERR_INTERNAL, "begin TLS");
	*ret = TAKE(c);
	return 0;
}

void tls_context_free(struct tls_context *c)
{
	if (!c || --c->refs > 0)
		return;
	SSL_CTX_free(c->ssl);
	BIO_meth_free(c->pipe);
	remote_keys_close(c->keys); /* what was made with it is gone */
	free(c);
}
