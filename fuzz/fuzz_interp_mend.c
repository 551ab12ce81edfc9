/* fuzz_interp_mend.c - promises about text that is mended: it is UTF-8, mending it again changes
 * nothing, what jansson takes stays as it is, and what it does not take for another reason does not
 * become something else.
 */
#include "fuzz/must.h"
#include "interp/json_mend.h"
#include "wire/json.h"

static json_t *load(struct bytes in)
{
	return json_loadb(in.len ? (const char *)in.ptr : "", in.len, 0, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	AUTO(buf_done) struct buf once = BUF_MAX(3 * size);
	AUTO(buf_done) struct buf twice = BUF_MAX(3 * size);
	AUTO(json_decrefp) json_t *was = load(in);
	AUTO(json_decrefp) json_t *text = NULL;
	struct err err;

	MUST(json_mend(in, &once, &err) == 0);
	MUST(json_mend(buf_view(&once), &twice, &err) == 0);
	MUST(bytes_eq(buf_view(&once), buf_view(&twice)));
	MUST(once.len >= size);
	if (was) /* NUL is not among what this loads */
		MUST(bytes_eq(buf_view(&once), in));
	text = json_stringn(once.len ? (const char *)once.ptr : "", once.len);
	MUST(text); /* it would refuse what is no UTF-8 */
	return 0;
}
