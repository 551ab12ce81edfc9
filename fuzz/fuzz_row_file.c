/* fuzz_row_file.c - promises about reading what lies beside a paused sandbox or a snapshot. */
#include <inttypes.h>

#include "base/crc32c.h"
#include "base/folder.h"
#include "fuzz/must.h"
#include "node/journal/row_file.h"

static bool same_text(const char *a, const char *b)
{
	return !a == !b && (!a || strcmp(a, b) == 0);
}

/* Written again it is the same row. */
static void must_read_back(const struct journal_row *r)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(ROW_FILE_MAX);
	struct journal_row again;
	struct err err = { 0 };

	MUST(row_put(r, &text, &err) == 0);
	MUST(row_get(buf_view(&text), &again, &err) == 0);
	MUST(memcmp(&again, r, offsetof(struct journal_row, text)) == 0);
	MUST(same_text(again.text, r->text) && same_text(again.known, r->known));
	row_done(&again);
}

static void must_read_back_snapshot(const struct journal_snapshot *r)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(ROW_FILE_MAX);
	struct journal_snapshot again;
	struct err err = { 0 };

	MUST(row_put_snapshot(r, &text, &err) == 0);
	MUST(row_get_snapshot(buf_view(&text), &again, &err) == 0);
	MUST(memcmp(&again, r, offsetof(struct journal_snapshot, known)) == 0);
	MUST(same_text(again.known, r->known));
	row_done_snapshot(&again);
}

/* How many of a template and a build it is. */
static int read_catalog(struct bytes in)
{
	struct journal_template t;
	struct journal_build b;
	struct err err = { 0 };
	int n = 0;

	if (row_get_template(in, &t, &err) == 0) {
		MUST(folder_name_ok(t.id, sizeof(t.id)) && t.public <= 1);
		row_done_template(&t);
		n++;
	} else {
		must_say_why(&err);
	}
	err = (struct err){ 0 };
	if (row_get_build(in, &b, &err) == 0) {
		MUST(folder_name_ok(b.id, sizeof(b.id)) && b.status < BUILD_STATUSES);
		row_done_build(&b);
		n++;
	} else {
		must_say_why(&err);
	}
	return n;
}

static void read_both(struct bytes in)
{
	struct journal_snapshot p;
	struct journal_row r;
	struct err err = { 0 };
	int n = 0;

	if (row_get(in, &r, &err) == 0) {
		MUST(folder_name_ok(r.sandbox.id, sizeof(r.sandbox.id)));
		MUST(r.state < JOURNAL_STATES && r.sandbox.reason < NODE_REASONS);
		must_read_back(&r);
		row_done(&r);
		n++;
	} else {
		must_say_why(&err);
	}
	err = (struct err){ 0 };
	if (row_get_snapshot(in, &p, &err) == 0) {
		MUST(folder_name_ok(p.id, sizeof(p.id)));
		must_read_back_snapshot(&p);
		row_done_snapshot(&p);
		n++;
	} else {
		must_say_why(&err);
	}
	n += read_catalog(in);
	MUST(n <= 1); /* it is the one or the other */
}

/* As it is, and with the sum that makes it believed. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf sealed = BUF_MAX(2 * ROW_FILE_MAX);
	struct bytes in = { data, size };
	struct err err;

	read_both(in);
	if (buf_add(&sealed, bytes_head(in, ROW_FILE_MAX), &err) < 0 ||
	    buf_printf(&sealed, &err, "crc32c %08" PRIx32 "\n", crc32c(0, buf_view(&sealed))) < 0)
		return 0;
	read_both(buf_view(&sealed));
	return 0;
}
