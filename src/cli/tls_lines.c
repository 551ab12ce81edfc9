/* tls_lines.c - see tls_lines.h. docs/tls.md says the same at length. */
#include "cli/tls_lines.h"

#include <stdbool.h>
#include <string.h>

enum { HTTPS_PORT = 443 };

static const char *const bundle = "/etc/ssl/certs/ca-certificates.crt";

static unsigned int port_of(const struct tls_site *s)
{
	return s->port ? s->port : HTTPS_PORT;
}

bool tls_is_local(const char *domain)
{
	static const char end[] = ".localhost";
	size_t n = strlen(domain);

	return n >= sizeof(end) && strcmp(domain + n - strlen(end), end) == 0;
}

void tls_e2b_domain(const struct tls_site *s, char ret[static TLS_E2B_DOMAIN_SIZE])
{
	if (port_of(s) == HTTPS_PORT)
		snprintf(ret, TLS_E2B_DOMAIN_SIZE, "%s", s->domain);
	else
		snprintf(ret, TLS_E2B_DOMAIN_SIZE, "%s:%u", s->domain, port_of(s));
}

static void print_server(FILE *out, const struct tls_site *s, const char *e2b_domain)
{
	fprintf(out,
		"# 1. The gateway: in /etc/hotcell/gateway.conf; then sudo "
		"hotcell-gateway-replace\n"
		"domain = %s\n"
		"# systemd opens port 443 for it (hotcell-https.socket); without systemd, or for "
		"another port:\n",
		e2b_domain);
	if (tls_is_local(s->domain))
		fprintf(out, "listen_tls = 127.0.0.1:%u,[::1]:%u\n\n", port_of(s), port_of(s));
	else
		fprintf(out, "listen_tls = 0.0.0.0:%u\n\n", port_of(s));
}

static void print_trust(FILE *out, const struct tls_site *s)
{
	fprintf(out,
		"# 2. Trust, on every machine with clients; elsewhere copy ca.pem there first.\n"
		"# The system: curl, Python's ssl, Go\n"
		"sudo cp %s/authority/ca.pem /usr/local/share/ca-certificates/hotcell-%s.crt\n"
		"sudo update-ca-certificates\n"
		"# Python: httpx and requests have lists of their own\n"
		"export SSL_CERT_FILE=%s REQUESTS_CA_BUNDLE=%s\n"
		"# Node\n"
		"export NODE_EXTRA_CA_CERTS=%s/authority/ca.pem\n",
		s->tls_dir, s->domain, bundle, bundle, s->tls_dir);
	fprintf(out,
		"# Chromium and Chrome; the package is libnss3-tools\n"
		"mkdir -p \"$HOME/.pki/nssdb\"\n"
		"certutil -d \"sql:$HOME/.pki/nssdb\" -A -t C,, -n hotcell-%s -i "
		"%s/authority/ca.pem\n"
		"# Firefox: Settings, Privacy & Security, View Certificates, Authorities, Import; "
		"or "
		"in policies.json\n"
		"#   {\"policies\": {\"Certificates\": {\"Install\": "
		"[\"%s/authority/ca.pem\"]}}}\n\n",
		s->domain, s->tls_dir, s->tls_dir);
}

static void print_names(FILE *out, const struct tls_site *s)
{
	fprintf(out, "# 3. Names\n");
	if (tls_is_local(s->domain))
		fprintf(out, "# this machine alone: all names below localhost lead to it\n"
			     "sudo apt-get install -y libnss-myhostname\n"
			     "# Node 18: it may try ::1 alone\n"
			     "export NODE_OPTIONS=--dns-result-order=ipv4first\n\n");
	else
		fprintf(out,
			"# a LAN: in /etc/dnsmasq.d/hotcell.conf of its resolver, with this host's "
			"address\n"
			"address=/%s/ADDRESS\n"
			"# the internet: records A and AAAA for %s and *.%s\n\n",
			s->domain, s->domain, s->domain);
}

void tls_lines_print(FILE *out, const struct tls_site *s)
{
	char e2b_domain[TLS_E2B_DOMAIN_SIZE];

	tls_e2b_domain(s, e2b_domain);
	print_server(out, s, e2b_domain);
	print_trust(out, s);
	print_names(out, s);
	fprintf(out,
		"# 4. The SDKs; a key: hotcell teams add acme; hotcell keys add acme\n"
		"export E2B_DOMAIN=%s\n"
		"export E2B_API_KEY=e2b_...\n",
		e2b_domain);
}
