/* pem.c - see pem.h. */
#include "tls/pem.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>

/* Without one the library would ask at the terminal. */
static int no_password(char *into, int size, int writing, void *user)
{
	(void)into;
	(void)size;
	(void)writing;
	(void)user;
	return -1;
}

static BIO *text_in(struct bytes text)
{
	return text.len <= INT_MAX ? BIO_new_mem_buf(text.ptr, (int)text.len) : NULL;
}

/* Was the text over, or was there something that is no certificate? */
static bool was_the_end(void)
{
	unsigned long why = ERR_peek_last_error();

	return ERR_GET_LIB(why) == ERR_LIB_PEM && ERR_GET_REASON(why) == PEM_R_NO_START_LINE;
}

int pem_read_certs(struct bytes text, int max, STACK_OF(X509) * to, struct err *err)
{
	AUTO(own_bio) BIO *in = NULL;

	openssl_begin();
	in = text_in(text);
	for (int n = 0; in; n++) {
		X509 *x = PEM_read_bio_X509(in, NULL, no_password, NULL);

		if (!x && n > 0 && was_the_end()) {
			openssl_begin(); /* "no more" is an error to the library */
			return 0;
		}
		if (!x)
			return openssl_fail(err, ERR_INVALID, "read a certificate");
		if (n == max || sk_X509_push(to, x) <= 0) {
			X509_free(x);
			return err_set(err, ERR_INVALID, 0, "more than %d certificates", max);
		}
	}
	return openssl_fail(err, ERR_INVALID, "read a certificate");
}

int pem_read_key(struct bytes text, EVP_PKEY **ret, struct err *err)
{
	AUTO(own_bio) BIO *in = NULL;

	openssl_begin();
	in = text_in(text);
	if (in)
		*ret = PEM_read_bio_PrivateKey(in, NULL, no_password, NULL);
	if (!*ret)
		return openssl_fail(err, ERR_INVALID, "read the key of a certificate");
	return 0;
}

int pem_write_certs(X509 *first, STACK_OF(X509) * rest, struct buf *ret, struct err *err)
{
	AUTO(own_bio) BIO *text = BIO_new(BIO_s_mem());
	bool done = text && PEM_write_bio_X509(text, first) == 1;

	for (int i = 0; done && rest && i < sk_X509_num(rest); i++)
		done = PEM_write_bio_X509(text, sk_X509_value(rest, i)) == 1;
	if (!done)
		return openssl_fail(err, ERR_INTERNAL, "write a certificate");
	return openssl_append(text, ret, err);
}

int pem_write_key(EVP_PKEY *key, struct buf *ret, struct err *err)
{
	AUTO(own_bio) BIO *text = BIO_new(BIO_s_secmem()); /* wiped when freed */

	if (!text || PEM_write_bio_PrivateKey(text, key, NULL, NULL, 0, NULL, NULL) != 1)
		return openssl_fail(err, ERR_INTERNAL, "write a key");
	return openssl_append(text, ret, err);
}
