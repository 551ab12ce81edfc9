/* fuzz_interp_message.c - promises about what a hostile kernel can say.
 *
 * The input is frames, one in a line. The first line chooses: `raw` frames are taken as they are;
 * else they are header, parent, metadata and content, and signed, as code in a kernel can sign.
 */
#include "fuzz/interp_lines.h"
#include "interp/json_bound.h"
#include "wire/hmac.h"

enum { FRAMES = 20, SIGNED = 4 };

static const struct bytes key = BYTES_LIT("key");

/* A line, or two where the newline is apart; for what is not told: none. */
static void check_message(const struct kernel_message *m)
{
	AUTO(buf_done) struct buf out = BUF_MAX(EVENT_LINE_MAX);
	struct err err = { 0 };
	bool error;
	size_t n;

	MUST(json_is_object(m->content));
	MUST(memchr(m->type, 0, sizeof(m->type)) && memchr(m->parent, 0, sizeof(m->parent)));
	MUST(memchr(m->date, 0, sizeof(m->date)));
	MUST(event_of_message(m, false, &out, &error, &err) == 0);
	n = must_be_lines(buf_view(&out));
	MUST(n <= 1);
	if (strcmp(m->type, "error") == 0)
		MUST(error);
	if (error)
		MUST(n == 1 && (m->unreadable || strcmp(m->type, "error") == 0));
	out.len = 0;
	MUST(event_of_message(m, true, &out, &error, &err) == 0);
	MUST(must_be_lines(buf_view(&out)) <= (strcmp(m->type, "stream") == 0 ? 2 : 1));
	out.len = 0;
	MUST(event_of_reply(m->content, &out, &err) == 0);
	MUST(must_be_lines(buf_view(&out)) == 1);
}

static bool check(const struct bytes *frames, size_t n)
{
	struct kernel_message m;
	struct err err = { 0 };

	if (kernel_message_decode(key, frames, n, &m, &err) < 0) {
		must_say_why(&err);
		return false;
	}
	check_message(&m);
	kernel_message_done(&m);
	return true;
}

/* One bit of any piece, or of the signature, and it is nobody's. */
static void check_forged(const struct bytes all[static 2 + SIGNED], size_t which)
{
	AUTO(buf_done) struct buf other = BUF_MAX(1 << 20);
	struct bytes forged[2 + SIGNED];
	size_t at = 1 + which % (1 + SIGNED);
	struct err err;

	memcpy(forged, all, sizeof(forged));
	if (buf_add(&other, all[at], &err) < 0)
		return;
	if (other.len == 0)
		MUST(buf_add(&other, BYTES_LIT(" "), &err) == 0);
	else
		other.ptr[which % other.len] ^= 1;
	forged[at] = buf_view(&other);
	MUST(!check(forged, COUNT(forged)));
}

static void check_signed(struct bytes *frames, size_t n, size_t which)
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
	(void)check(all, COUNT(all));
	check_forged(all, which);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size }, frames[FRAMES], how = { 0 };
	static bool bounded;
	size_t n = 0;

	if (!bounded)
		json_bound_init();
	bounded = true;
	(void)bytes_cut(&in, '\n', &how);
	while (n < FRAMES && bytes_next(&in, '\n', &frames[n]))
		n++;
	if (bytes_eq(how, BYTES_LIT("raw")))
		(void)check(frames, n);
	else
		check_signed(frames, n, size);
	return 0;
}
