/* fuzz_package_hosts.c - promises about what a guest says of its package managers. */
#include "fuzz/must.h"
#include "vm/package_hosts.h"
#include "wire/domain.h"
#include "wire/ip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char got[PACKAGE_HOSTS_TEXT_MAX + 1], again[PACKAGE_HOSTS_TEXT_MAX + 1];
	struct bytes rest, host;
	size_t n = 0;

	package_hosts_read((struct bytes){ data, size }, got);
	rest = bytes_str(got);
	while (bytes_next(&rest, ' ', &host)) {
		char normal[DOMAIN_SIZE];
		uint32_t ip;

		/* each is one that the rules of a network take */
		MUST(ip4_parse(host, &ip) || domain_normal(host, normal));
		n++;
	}
	MUST(n <= PACKAGE_HOSTS_MAX);
	package_hosts_read(bytes_str(got), again);
	MUST(strcmp(got, again) == 0);
	return 0;
}
