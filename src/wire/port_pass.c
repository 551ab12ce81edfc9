/* port_pass.c - see port_pass.h. */
#include "wire/port_pass.h"

#include <inttypes.h>
#include <stdio.h>

#include "wire/hmac.h"

enum { CLAIM_MAX = 256 };

static void sign(const struct port_pass *p, const char *sandbox, struct bytes token,
		 char ret[static SHA256_HEX + 1])
{
	uint8_t mac[SHA256_SIZE];
	char claim[CLAIM_MAX];

	/* no name of a sandbox has the character between them */
	snprintf(claim, sizeof(claim), "port pass/1\n%c\n%.128s\n%u\n%" PRIu64 "\n", (char)p->kind,
		 sandbox, (unsigned int)p->port, p->expires_s);
	hmac_sha256(token, bytes_str(claim), mac);
	for (size_t i = 0; i < sizeof(mac); i++)
		snprintf(ret + 2 * i, 3, "%02x", mac[i]);
}

void port_pass_make(const struct port_pass *p, const char *sandbox, struct bytes token,
		    char ret[static PORT_PASS_SIZE])
{
	char mac[SHA256_HEX + 1];

	sign(p, sandbox, token, mac);
	snprintf(ret, PORT_PASS_SIZE, "%c%u.%" PRIu64 ".%s", (char)p->kind, (unsigned int)p->port,
		 p->expires_s, mac);
}

/* What it claims; *ret_mac is what has to prove it. */
static bool parse(struct bytes text, struct port_pass *ret, struct bytes *ret_mac)
{
	struct bytes port, expires;
	uint64_t n;

	if (text.len == 0 || (text.ptr[0] != PASS_ADDRESS && text.ptr[0] != PASS_COOKIE))
		return false;
	ret->kind = text.ptr[0] == PASS_ADDRESS ? PASS_ADDRESS : PASS_COOKIE;
	text = bytes_tail(text, 1);
	if (!bytes_cut(&text, '.', &port) || !bytes_cut(&text, '.', &expires) ||
	    text.len != SHA256_HEX || port.len > 5 || !bytes_to_u64(port, &n) || n < 1 ||
	    n > UINT16_MAX || !bytes_to_u64(expires, &ret->expires_s))
		return false;
	ret->port = (uint16_t)n;
	*ret_mac = text;
	return true;
}

bool port_pass_claims(struct bytes text, uint64_t now_s, struct port_pass *ret)
{
	struct bytes mac;

	return parse(text, ret, &mac) && now_s < ret->expires_s;
}

bool port_pass_right(struct bytes text, const char *sandbox, struct bytes token, uint64_t now_s,
		     struct port_pass *ret)
{
	char right[SHA256_HEX + 1];
	struct bytes mac;

	if (token.len == 0 || !parse(text, ret, &mac) || now_s >= ret->expires_s)
		return false;
	sign(ret, sandbox, token, right);
	return bytes_eq_secret(mac, bytes_str(right));
}
