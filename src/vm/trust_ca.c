/* trust_ca.c - see trust_ca.h. */
#include "vm/trust_ca.h"

static const char script[] =
#include "vm/trust_ca.inc" /* guest/trust-ca as a string, made by meson */
	;

struct bytes trust_ca_script(void)
{
	return bytes_str(script);
}

bool trust_ca_ok(struct bytes pem)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----";
	static const char end[] = "-----END CERTIFICATE-----";
	const uint8_t *at;

	if (pem.len == 0 || pem.len > TRUST_CA_MAX)
		return false;
	for (size_t i = 0; i < pem.len; i++)
		if (pem.ptr[i] != '\n' && pem.ptr[i] != '\r' && pem.ptr[i] != '\t' &&
		    (pem.ptr[i] < ' ' || pem.ptr[i] > '~'))
			return false;
	if (memmem(pem.ptr, pem.len, "PRIVATE KEY", strlen("PRIVATE KEY")))
		return false; /* given by mistake, and every sandbox could read it */
	at = memmem(pem.ptr, pem.len, begin, sizeof(begin) - 1);
	return at && memmem(at, pem.len - (size_t)(at - pem.ptr), end, sizeof(end) - 1);
}
