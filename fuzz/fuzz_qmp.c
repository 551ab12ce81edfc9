/* fuzz_qmp.c - promises about what a hostile monitor can say. */
#include "fuzz/must.h"
#include "wire/qmp.h"

static void must_be_typed(const struct qmp_message *m)
{
	switch (m->kind) {
	case QMP_GREETING:
		MUST(m->major <= 9999 && m->minor <= 9999 && m->micro <= 9999);
		MUST(!m->has_id && !m->data);
		return;
	case QMP_RETURN:
		MUST(m->has_id && m->id <= INT64_MAX && m->data);
		return;
	case QMP_ERROR:
		MUST(m->name.len > 0 && m->name.len <= QMP_NAME_MAX);
		MUST(m->desc.len <= QMP_DESC_MAX && m->id <= INT64_MAX && !m->data);
		return;
	case QMP_EVENT:
		MUST(m->name.len > 0 && m->name.len <= QMP_NAME_MAX && !m->has_id);
		MUST(!m->data || json_is_object(m->data));
		return;
	}
	abort(); /* no such kind */
}

/* Written again, it is the same message. */
static void must_read_back(const struct qmp_message *m)
{
	AUTO(buf_done) struct buf text = BUF_MAX(32 * QMP_LINE_MAX);
	AUTO(qmp_message_done) struct qmp_message again = { 0 };
	struct err err = { 0 };

	MUST(json_encode(m->json, &text, &err) == 0);
	MUST(qmp_parse(buf_view(&text), &again, &err) == 0);
	MUST(again.kind == m->kind && again.has_id == m->has_id && again.id == m->id);
	MUST(bytes_eq(again.name, m->name) && bytes_eq(again.desc, m->desc));
	MUST(json_equal(again.json, m->json));
}

static void check_line(struct bytes line)
{
	AUTO(qmp_message_done) struct qmp_message m = { 0 };
	struct err err = { 0 };

	if (qmp_parse(line, &m, &err) < 0) {
		must_say_why(&err);
		MUST(!m.json);
		return;
	}
	must_be_typed(&m);
	must_read_back(&m);
}

/* A line ends at the same place when it arrives byte by byte. */
static void check_split(struct bytes in, enum decode want, size_t want_used)
{
	size_t scanned = 0, used = 0, n = 0;
	struct err err = { 0 };
	struct bytes line;
	enum decode got;

	do {
		got = qmp_line(bytes_head(in, n), &scanned, &line, &used, &err);
	} while (got == DECODE_MORE && n++ < in.len);
	MUST(got == want && used == want_used);
}

/* Any text can be an argument, and a command stays one line. */
static void check_command(struct bytes text)
{
	AUTO(json_decrefp) json_t *arguments = json_pack("{s:o}", "x", json_text(text));
	AUTO(buf_done) struct buf out = BUF_MAX(8 * text.len + 256);
	struct bytes line = { 0 };
	struct err err = { 0 };
	size_t scanned = 0, used = 0;

	MUST(qmp_put_command(&out, "do", arguments, text.len, &err) == 0);
	MUST(qmp_line(buf_view(&out), &scanned, &line, &used, &err) == DECODE_OK);
	MUST(used == out.len && line.len + 2 == used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_head((struct bytes){ data, size }, 16 * 1024);

	check_command(in);
	for (;;) {
		struct err err = { 0 };
		struct bytes line = { 0 };
		size_t scanned = 0, used = 0;
		enum decode got = qmp_line(in, &scanned, &line, &used, &err);

		check_split(in, got, used);
		if (got != DECODE_OK)
			return 0;
		MUST(used > 0 && used <= in.len && inside(line, in) && line.len < used);
		MUST(line.len == 0 || !memchr(line.ptr, '\n', line.len));
		check_line(line);
		in = bytes_tail(in, used);
	}
}
