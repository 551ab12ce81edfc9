/* fuzz_sandbox_domain.c - promises of the domain that a client is told: a name, and always one.
 *
 * The input is a Host field; or a setting, which is then what is told.
 */
#include "fuzz/must.h"
#include "gateway/parse/sandbox_domain.h"

static void check_told(const char *told)
{
	char name[DOMAIN_SIZE], again[SANDBOX_DOMAIN_SIZE];
	struct err err = { 0 };
	uint16_t port;

	MUST(strnlen(told, SANDBOX_DOMAIN_SIZE) < SANDBOX_DOMAIN_SIZE);
	MUST(domain_and_port(bytes_str(told), name, &port));
	MUST(sandbox_domain_setting(told, again, &err) == 0 && strcmp(told, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[2 * SANDBOX_DOMAIN_SIZE], set[SANDBOX_DOMAIN_SIZE], told[SANDBOX_DOMAIN_SIZE];
	struct bytes in = { data, size };
	struct err err = { 0 };

	memset(told, 0x5a, sizeof(told));
	sandbox_domain("", in, told);
	check_told(told);
	if (!bytes_to_str(in, text, sizeof(text)) || sandbox_domain_setting(text, set, &err) < 0)
		return 0;
	sandbox_domain(set, BYTES_LIT("api.other.test"), told);
	MUST(set[0] ? strcmp(told, set) == 0 : strcmp(told, "other.test") == 0);
	if (set[0])
		check_told(told);
	return 0;
}
