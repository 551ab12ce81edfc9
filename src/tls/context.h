/* context.h - inside tls/: what all connections of one kind share. */
#pragma once

#include "tls/openssl_inside.h"
#include "tls/tls_stream.h"

struct tls_context {
	SSL_CTX *ssl;
	BIO_METHOD *pipe; /* how the library reads and writes: the bytes of a tls_stream */
	unsigned int refs;
	bool server, unverified;
};

/* tls_stream.c's, told to the library by context.c. */
int pipe_read(BIO *b, char *into, int n);
int pipe_write(BIO *b, const char *from, int n);
int server_choose(SSL *ssl, void *unused);
int server_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
		const unsigned char *offered, unsigned int n, void *unused);
