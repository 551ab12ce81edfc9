/* sandbox_domain.c - see sandbox_domain.h. */
#include "gateway/parse/sandbox_domain.h"

#include "wire/http1_host.h"
#include "wire/ip.h"

static void write_down(const char *name, uint16_t port, char ret[static SANDBOX_DOMAIN_SIZE])
{
	if (port)
		snprintf(ret, SANDBOX_DOMAIN_SIZE, "%s:%u", name, port);
	else
		snprintf(ret, SANDBOX_DOMAIN_SIZE, "%s", name);
}

int sandbox_domain_setting(const char *text, char ret[static SANDBOX_DOMAIN_SIZE], struct err *err)
{
	char name[DOMAIN_SIZE] = "";
	uint16_t port = 0;

	if (text[0] && !domain_and_port(bytes_str(text), name, &port))
		return err_set(err, ERR_INVALID, 0,
			       "domain = %.100s: it is NAME or NAME:PORT, such as "
			       "hotcell.localhost:8443",
			       text);
	write_down(name, port, ret);
	return 0;
}

static bool is_loopback(struct bytes host)
{
	uint32_t ip;

	return bytes_eq(host, BYTES_LIT("[::1]")) || (ip4_parse(host, &ip) && ip >> 24 == 127);
}

void sandbox_domain(const char *domain, struct bytes host, char ret[static SANDBOX_DOMAIN_SIZE])
{
	char normal[DOMAIN_SIZE];
	struct bytes name = { 0 };
	uint16_t port = 0;

	if (domain[0])
		snprintf(ret, SANDBOX_DOMAIN_SIZE, "%s", domain);
	else if (!http1_split_host(host, &name, &port))
		write_down(SANDBOX_DOMAIN_NONE, 0, ret);
	else if (is_loopback(name))
		write_down("localhost", port, ret);
	else if (domain_normal(name, normal))
		write_down(strncmp(normal, "api.", 4) == 0 ? normal + 4 : normal, port, ret);
	else
		write_down(SANDBOX_DOMAIN_NONE, 0, ret);
}
