/* fuzz_placeholder.c - promises of the placeholders: each step moves on, pieces lie inside what was
 * given, what is plain text has no mark, and a secret's name is normal. */
#include "fuzz/must.h"
#include "wire/placeholder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size }, rest = in;
	enum placeholder_kind kind;
	struct placeholder p;
	size_t before;

	do {
		char again[SECRET_NAME_SIZE];

		before = rest.len;
		kind = placeholder_next(&rest, &p);
		MUST(inside(p.before, in) && inside(p.name, in) && inside(rest, in));
		MUST(!p.before.len || !memmem(p.before.ptr, p.before.len, "${e2b.secrets.", 14));
		MUST(kind == PLACEHOLDER_BROKEN || kind == PLACEHOLDER_NONE || rest.len < before);
		if (kind == PLACEHOLDER_SECRET)
			MUST(secret_name_normal(bytes_str(p.secret), again) &&
			     strcmp(p.secret, again) == 0);
	} while (kind == PLACEHOLDER_SECRET || kind == PLACEHOLDER_IDENTITY);
	return 0;
}
