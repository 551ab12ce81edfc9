/* fuzz_console.c - the last words of a guest: whatever they are, they mean one of four things, and
 * what is said last counts. */
#include "fuzz/must.h"
#include "node/record/console.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char end[] = "\nreboot: Restarting system\n";
	AUTO(buf_done) struct buf more = BUF_MAX(2 * CONSOLE_BYTES_MAX);
	struct bytes text = { data, size < CONSOLE_BYTES_MAX ? size : CONSOLE_BYTES_MAX };
	struct err err;

	MUST(console_end_in(text) <= CONSOLE_NO_MEMORY);
	MUST(buf_add(&more, text, &err) == 0 && buf_add(&more, BYTES_LIT(end), &err) == 0);
	MUST(console_end_in(buf_view(&more)) == CONSOLE_RESTART);
	return 0;
}
