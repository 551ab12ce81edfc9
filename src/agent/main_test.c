/* main_test.c - hotcell-agent-test: the same program on a host, for tests only.
 *
 * Its first argument is --dry-effects: the clock, the random numbers and the names of the machine
 * are left alone, and each attempt is a line on stdout. --dry-effects=NAME: that one fails.
 */

#include "agent/agent.h"

static const char *failing = ""; /* effects have no context of their own */

static int said(const char *name, struct err *err)
{
	printf("effect %s\n", name);
	fflush(stdout);
	return strcmp(name, failing) == 0 ? err_set(err, ERR_INTERNAL, 0, "told to fail") : 0;
}

static int dry_clock(int64_t offset_ns, struct err *err)
{
	(void)offset_ns;
	return said("clock", err);
}

static int dry_entropy(struct bytes entropy, struct err *err)
{
	assert(entropy.len == IDENTITY_ENTROPY_BYTES);
	return said("entropy", err);
}

static int dry_hostname(const char *name, struct err *err)
{
	(void)name;
	return said("hostname", err);
}

static int dry_boot_id(const char *file, struct err *err)
{
	(void)file;
	return said("boot_id", err);
}

static void dry_flush(void)
{
	struct err unused;

	(void)!said("flush", &unused);
}

static const struct identity_effects dry_effects = {
	.set_clock = dry_clock,
	.add_entropy = dry_entropy,
	.set_hostname = dry_hostname,
	.show_boot_id = dry_boot_id,
	.flush_disks = dry_flush,
};

int main(int argc, char **argv)
{
	static const char option[] = "--dry-effects";
	size_t n = strlen(option);

	if (argc < 2 || strncmp(argv[1], option, n) != 0) {
		fprintf(stderr, "the first argument of the test program is %s\n", option);
		return EXIT_FAILURE;
	}
	if (argv[1][n] == '=')
		failing = argv[1] + n + 1;
	argv[1] = argv[0];
	return agent_main(argc - 1, argv + 1, &dry_effects);
}
