/* reseed.c - a module for Node.js: OpenSSL's generators of this process begin anew.
 *
 * Node seeds them when it starts. So a kernel that is in a snapshot has seeds in it, and all copies
 * of it would draw the same keys; and Node has no call that draws new seeds. Loading this module
 * is that call: it has no other function, and may be loaded any number of times.
 */
#include <assert.h>
#include <openssl/rand.h>

void *napi_register_module_v1(void *env, void *exports);

/* What Node calls. The types are opaque to us. */
void *napi_register_module_v1(void *env, void *exports)
{
	int seeded = RAND_poll();

	(void)env;
	assert(seeded == 1);
	return exports;
}
