/* fuzz_tar.c - promises of a tar file's headers: it ends, sizes are bounded, names are terminated,
 * and a name is of one file only. */
#include "fuzz/must.h"
#include "wire/tar.h"

static void must_be_bounded(const struct tar *t)
{
	MUST(t->size <= TAR_SIZE_MAX && tar_padded(t->size) >= t->size);
	MUST(tar_padded(t->size) % TAR_BLOCK == 0);
	MUST(memchr(t->name, 0, sizeof(t->name)) && memchr(t->link, 0, sizeof(t->link)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tar t;
	struct bytes rest = { data, size };
	enum tar_step step = TAR_SKIP;
	struct err err = { 0 };

	t = (struct tar){ 0 };
	while (rest.len >= TAR_BLOCK && step != TAR_END) {
		if (tar_block(&t, rest.ptr, &step, &err) < 0) {
			must_say_why(&err);
			return 0;
		}
		must_be_bounded(&t);
		rest = bytes_tail(rest, TAR_BLOCK);
		if (step == TAR_FILE)
			MUST(!t.has_name && !t.has_link && !t.has_size);
		if (step == TAR_TEXT) {
			MUST(t.size <= TAR_TEXT_MAX);
			if (tar_text(&t, bytes_head(rest, (size_t)t.size), &err) < 0) {
				must_say_why(&err);
				return 0;
			}
		}
		rest = bytes_tail(rest, (size_t)tar_padded(t.size));
	}
	return 0;
}
