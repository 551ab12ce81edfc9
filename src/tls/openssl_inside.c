/* openssl_inside.c - how the library is begun and what its errors become. */
/* #syscalls: getrandom getpid */
#include "tls/openssl_inside.h"

#include <openssl/err.h>

void openssl_begin(void)
{
	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	ERR_clear_error();
}

int openssl_fail(struct err *err, enum err_code code, const char *what)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	err_set(err, code, 0, "%s: %s", what, why ? why : "the library gives no reason");
	ERR_clear_error();
	return -1;
}

int openssl_append(BIO *from, struct buf *ret, struct err *err)
{
	char *at = NULL;
	long n = BIO_get_mem_data(from, &at);

	if (n < 0)
		return openssl_fail(err, ERR_INTERNAL, "take a text");
	return buf_add(ret, (struct bytes){ (const uint8_t *)at, (size_t)n }, err);
}
