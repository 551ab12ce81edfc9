/* fuzz_interp_message.c - promises about what a hostile kernel can say, and what clients are told
 * of it.
 *
 * The input is frames, one in a line. The first line chooses: `raw` frames are taken as they are;
 * else they are header, parent, metadata and content, and signed, as code in a kernel can sign.
 */
#include "fuzz/must.h"
#include "interp/events.h"
#include "wire/hmac.h"

enum { FRAMES = 20, SIGNED = 4 };

static const struct bytes key = BYTES_LIT("key");

/* Whole lines of ASCII, each an object that says what it is. */
static void must_be_lines(struct bytes out)
{
	struct bytes line;

	while (bytes_cut(&out, '\n', &line)) {
		AUTO(json_decrefp)
		json_t *v = json_loadb((const char *)line.ptr, line.len, JSON_ALLOW_NUL, NULL);

		MUST(json_is_object(v));
		MUST(json_is_string(json_object_get(v, "type")));
		for (size_t i = 0; i < line.len; i++)
			MUST(line.ptr[i] >= ' ' && line.ptr[i] < 128);
	}
	MUST(out.len == 0);
}

static void check_message(const struct kernel_message *m)
{
	AUTO(buf_done) struct buf out = BUF_MAX(EVENT_LINE_MAX);
	struct err err = { 0 };
	bool error;

	MUST(json_is_object(m->content));
	MUST(memchr(m->type, 0, sizeof(m->type)) && memchr(m->parent, 0, sizeof(m->parent)));
	MUST(event_of_message(m, false, &out, &error, &err) == 0);
	MUST(error == (strcmp(m->type, "error") == 0));
	must_be_lines(buf_view(&out));
	MUST(event_of_message(m, true, &out, &error, &err) == 0);
	MUST(event_of_reply(m->content, &out, &err) == 0);
	must_be_lines(buf_view(&out));
}

static void check(const struct bytes *frames, size_t n)
{
	struct kernel_message m;
	struct err err = { 0 };

	if (kernel_message_decode(key, frames, n, &m, &err) < 0) {
		must_say_why(&err);
		return;
	}
	check_message(&m);
	kernel_message_done(&m);
}

static void check_signed(struct bytes *frames, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	struct bytes all[2 + SIGNED] = { BYTES_LIT("<IDS|MSG>") };
	uint8_t mac[SHA256_SIZE];
	char hex[SHA256_HEX];

	for (size_t i = 0; i < SIGNED; i++)
		all[2 + i] = i < n ? frames[i] : BYTES_LIT("{}");
	hmac_sha256_pieces(key, all + 2, SIGNED, mac);
	for (size_t i = 0; i < SHA256_SIZE; i++) {
		hex[2 * i] = digits[mac[i] >> 4];
		hex[2 * i + 1] = digits[mac[i] & 15];
	}
	all[1] = (struct bytes){ (const uint8_t *)hex, sizeof(hex) };
	check(all, COUNT(all));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size }, frames[FRAMES], how = { 0 };
	size_t n = 0;

	(void)bytes_cut(&in, '\n', &how);
	while (n < FRAMES && bytes_next(&in, '\n', &frames[n]))
		n++;
	if (bytes_eq(how, BYTES_LIT("raw")))
		check(frames, n);
	else
		check_signed(frames, n);
	return 0;
}
