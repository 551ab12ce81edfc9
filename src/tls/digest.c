/* digest.c - see digest.h. */
#include "tls/digest.h"

#include <errno.h>

#include "tls/openssl_inside.h"

struct digest {
	EVP_MD_CTX *ctx;
};

int digest_new(struct digest **ret, struct err *err)
{
	AUTO(digest_freep) struct digest *d = calloc(1, sizeof(*d));

	openssl_begin();
	if (!d)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "hash");
	d->ctx = EVP_MD_CTX_new();
	if (!d->ctx || EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL) != 1)
		return openssl_fail(err, ERR_INTERNAL, "hash");
	*ret = TAKE(d);
	return 0;
}

int digest_add(struct digest *d, struct bytes piece, struct err *err)
{
	if (EVP_DigestUpdate(d->ctx, piece.ptr, piece.len) != 1)
		return openssl_fail(err, ERR_INTERNAL, "hash");
	return 0;
}

int digest_end(struct digest *d, uint8_t ret[static DIGEST_SIZE], struct err *err)
{
	unsigned int n = 0;

	if (EVP_DigestFinal_ex(d->ctx, ret, &n) != 1 || n != DIGEST_SIZE)
		return openssl_fail(err, ERR_INTERNAL, "hash");
	return 0;
}

void digest_free(struct digest *d)
{
	if (!d)
		return;
	EVP_MD_CTX_free(d->ctx);
	free(d);
}
