/* layout.c - prints warden/protocol.h as JSON. */
#include "tests/warden/layout.h"

#include "copier/protocol.h"
#include "tests/warden/rows.h"

static const struct {
	const char *verb;
	size_t fds;
} verbs[] = {
#define VERB(verb, serve, needs, fds_min, fds_max) { #verb, fds_min },
#include "warden/verbs.def"
};

int main(void)
{
	const char *const files[] = { WARDEN_TEMPLATE_FILES };

	layout_print(rows, COUNT(rows));
	printf(",\n\"fds\": {");
	for (size_t i = 0; i < COUNT(verbs); i++)
		printf("%s\"%s\": %zu", i ? ", " : "", verbs[i].verb, verbs[i].fds);
	printf("},\n\"template_files\": [");
	for (size_t i = 0; i < COUNT(files); i++)
		printf("%s\"%s\"", i ? ", " : "", files[i]);
	printf("]}\n");
	return 0;
}
