/* fuzz_env_file.c - promises about /etc/environment, which is the guest's to write. */
#include "agent/machine/env_file.h"
#include "fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(strings_done) struct strings env = { 0 };
	struct err err = { 0 };

	if (env_file_parse((struct bytes){ data, size }, &env, &err) < 0) {
		must_say_why(&err);
		return 0;
	}
	for (size_t i = 0; i < env.n; i++) {
		const char *equals = strchr(env.v[i], '=');

		/* each has a name, once, and is one line */
		MUST(equals && equals > env.v[i]);
		MUST(!strchr(env.v[i], '\n'));
		for (size_t k = 0; k < i; k++)
			MUST(strncmp(env.v[i], env.v[k], (size_t)(equals - env.v[i]) + 1) != 0);
	}
	return 0;
}
