/* fuzz_images_ask.c - promises of the texts that the images daemon reads: what node wants, what
 * hotcell-unpack says, and what skopeo says when it fails. The first byte chooses. */
#include "fuzz/must.h"
#include "images/fetch_error.h"
#include "images/registries.h"
#include "images/request.h"
#include "images/unpack.h"

static void ask(struct bytes text, bool archive)
{
	struct err err = { 0 };
	struct images_ask a;

	if (images_ask_parse(text, archive, &a, &err) < 0) {
		must_say_why(&err);
		return;
	}
	MUST(a.team[0] && !strchr(a.team, '/') && memchr(a.team, 0, sizeof(a.team)));
	MUST(archive == !a.reference[0] && a.sealed.len <= IMAGES_ASK_MAX);
	images_ask_done(&a);
}

static void unpack(struct bytes line)
{
	struct unpack_said said;
	struct err err = { 0 };

	if (unpack_line(line, &said, &err) < 0) {
		must_say_why(&err);
		return;
	}
	MUST(memchr(said.text, 0, sizeof(said.text)));
	for (const char *c = said.text; *c; c++)
		MUST((unsigned char)*c >= ' ' && *c != 0x7f);
	MUST((said.word == UNPACK_ERROR) == (said.code != ERR_NONE));
	MUST(said.word != UNPACK_ERROR || said.text[0]);
}

static void credentials(struct bytes text)
{
	AUTO(buf_done) struct buf out = BUF_SECRET(128 * 1024);
	struct err err = { 0 };

	if (registries_auth("a.b", text, &out, &err) < 0)
		must_say_why(&err);
	else
		MUST(out.len > 0 && out.ptr[out.len - 1] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes text = { data + 1, size - 1 };
	struct err err = { 0 };

	if (size == 0)
		return 0;
	switch (data[0] % 5) {
	case 0:
	case 1:
		ask(text, data[0] % 5 == 1);
		break;
	case 2:
		unpack(text);
		break;
	case 3:
		credentials(text);
		break;
	default:
		MUST(fetch_error(text, "a.b/x:1", "a.b", &err) == -1);
		must_say_why(&err);
	}
	return 0;
}
