/* fuzz_devtools_urls.c - promises of devtools_urls.h: how a text is cut changes nothing, nothing
 * but addresses of the mark is changed, and each of these is. The input's 'M' stands for the mark.
 */
#include "fuzz/must.h"
#include "gateway/parse/devtools_urls.h"

#define MARK "q.localhost:9"
#define HOST "h"

enum { LONGEST = 4096 };

static void pass(const struct buf *text, size_t step, struct buf *out)
{
	struct devtools_urls u = { .mark = MARK, .host = HOST, .secure = true };
	struct bytes rest = buf_view(text);
	struct err err = { 0 };

	for (; rest.len > 0; rest = bytes_tail(rest, step))
		MUST(devtools_urls_pass(&u, bytes_head(rest, step), out, &err) == 0);
	MUST(devtools_urls_end(&u, out, &err) == 0);
	MUST(u.n_held == 0);
}

/* The same, the plain way: on the whole text. */
static void expect(const struct buf *text, struct buf *out)
{
	static const struct {
		const char *from, *to;
	} all[] = { { "ws://" MARK, "wss://" HOST }, { "ws=" MARK, "wss=" HOST } };
	struct bytes rest = buf_view(text);
	struct err err = { 0 };

	while (rest.len > 0) {
		size_t i = 0;

		while (i < COUNT(all) && !bytes_starts(rest, bytes_str(all[i].from)))
			i++;
		MUST(buf_add(out, i < COUNT(all) ? bytes_str(all[i].to) : bytes_head(rest, 1),
			     &err) == 0);
		rest = bytes_tail(rest, i < COUNT(all) ? strlen(all[i].from) : 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf text = BUF_MAX(LONGEST), want = BUF_MAX(2 * LONGEST);
	struct err err = { 0 };

	for (size_t i = 0; i < size; i++)
		if (buf_add(&text, data[i] == 'M' ? BYTES_LIT(MARK) : (struct bytes){ data + i, 1 },
			    &err) < 0)
			return 0;
	expect(&text, &want);
	for (size_t step = 1; step < 20; step += 3) {
		AUTO(buf_done) struct buf got = BUF_MAX(2 * LONGEST);

		pass(&text, step, &got);
		MUST(bytes_eq(buf_view(&got), buf_view(&want)));
	}
	return 0;
}
