/* fuzz_unpack_program.c - promises about what is read of a program's head: the loader it wants. */
#include "fuzz/must.h"
#include "unpack/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) uint8_t *copy = malloc(size > 0 ? size : 1);
	char loader[PROGRAM_LOADER_MAX + 1];
	struct err err = { 0 };

	MUST(copy);
	memcpy(copy, data, size); /* of exactly this size, so that a byte too far is seen */
	if (program_loader((struct bytes){ copy, size }, loader, &err) < 0) {
		must_say_why(&err);
		return 0;
	}
	MUST(memchr(loader, '\0', sizeof(loader)));
	MUST(loader[0] == '\0' || loader[0] == '/');
	MUST(loader[0] == '\0' || memmem(data, size, loader, strlen(loader)));
	return 0;
}
