/* fuzz_upload_url.c - promises of upload_url.h: what was made is taken, anything else is not. */
#include "fuzz/must.h"
#include "gateway/parse/upload_url.h"

#define KEY  BYTES_LIT("0123456789abcdef")
#define HASH "ab"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct upload_claim claim = { "team", HASH, 1000 };
	AUTO(buf_done) struct buf url = BUF_MAX(UPLOAD_URL_MAX);
	struct bytes in = { data, size }, query, part;
	struct err err = { 0 };

	/* nobody guesses an HMAC: a query that is believed would be one that was made below */
	if (upload_url_check("team", HASH, in, KEY, 1, &err) < 0)
		must_say_why(&err);
	if (upload_url_make(&claim, KEY, size % 2, in, &url, &err) < 0) {
		must_say_why(&err);
		return 0;
	}
	query = buf_view(&url);
	MUST(!memchr(url.ptr, ' ', url.len) && !memchr(url.ptr, '\n', url.len));
	MUST(bytes_cut(&query, '?', &part));
	MUST(upload_url_check("team", HASH, query, KEY, 1000, &err) == 0);
	MUST(upload_url_check("team", HASH, query, KEY, 1001, &err) < 0);
	MUST(upload_url_check("teax", HASH, query, KEY, 1000, &err) < 0);
	MUST(upload_url_check("team", "ac", query, KEY, 1000, &err) < 0);
	MUST(upload_url_check("team", HASH, query, BYTES_LIT("0123456789abcdee"), 1000, &err) < 0);
	return 0;
}
