/* save.c - a VM's memory and device state into their files. */
/* #syscalls: pread64 pwrite64 ftruncate fstat newfstatat */
#include "copier/save.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "copier/draft.h"
#include "copier/pages.h"

struct table {
	struct pages_head head;
	struct buf runs;
};

static int add_run(struct table *t, const struct pages_run *run, struct err *err)
{
	t->head.runs++;
	return buf_add(&t->runs, (struct bytes){ (const uint8_t *)run, sizeof(*run) }, err);
}

/* Does a page whose last copy is `last` go on where the run ends? */
static bool goes_on(const struct pages_run *r, uint64_t page, uint32_t last)
{
	if (r->count == 0 || r->first + r->count != page)
		return false;
	return r->flags & PAGES_ZERO ? last == COPY_ZERO : last == COPY_AT + r->copy + r->count;
}

static int list_runs(struct table *t, const struct draft *d, struct err *err)
{
	struct pages_run run = { 0 };

	for (uint64_t i = 0; i < d->pages; i++) {
		uint32_t last = d->last[i];

		if (last == COPY_NONE)
			continue;
		(*(last == COPY_ZERO ? &t->head.zero_pages : &t->head.pages))++;
		if (goes_on(&run, i, last)) {
			run.count++;
			continue;
		}
		if (run.count > 0 && add_run(t, &run, err) < 0)
			return -1;
		run = (struct pages_run){ i, 1, last == COPY_ZERO ? PAGES_ZERO : 0,
					  last == COPY_ZERO ? 0 : last - COPY_AT };
	}
	return run.count > 0 ? add_run(t, &run, err) : 0;
}

/* The table, then the head: a file that is cut off says nothing that could be believed. */
static int write_table(struct table *t, const struct draft *d, struct copier_reply *ret,
		       struct err *err)
{
	uint8_t first[PAGES_DATA_AT] = { 0 };
	struct pages_head *h = &t->head;
	int fd = d->w->pages;

	h->memory_bytes = d->pages * PAGES_BYTES;
	h->copies = d->copies;
	h->base_crc = d->w->base_crc;
	h->data_crc = d->crc;
	h->runs_crc = crc32c(0, buf_view(&t->runs));
	pages_head_seal(h);
	memcpy(first, h, sizeof(*h));
	if (work_write(fd, t->runs.ptr, t->runs.len, pages_table_at(h), err) < 0 ||
	    work_write(fd, first, sizeof(first), 0, err) < 0)
		return err_wrap(err, "write the table of pages");
	if (ftruncate(fd, (off_t)pages_file_bytes(h)) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "size the file of pages");
	ret->pages = h->pages;
	ret->zero_pages = h->zero_pages;
	ret->pages_bytes = pages_file_bytes(h);
	ret->pages_crc = crc32c(0, (struct bytes){ first, sizeof(first) });
	ret->pages_crc = work_crc_join(ret->pages_crc, h->data_crc, h->copies * PAGES_BYTES);
	ret->pages_crc = work_crc_join(ret->pages_crc, h->runs_crc, t->runs.len);
	return 0;
}

static int finish(const struct draft *d, struct copier_reply *ret, struct err *err)
{
	struct table t = { .runs = BUF_MAX(PAGES_RUNS_MAX * sizeof(struct pages_run)) };
	int rc = list_runs(&t, d, err);

	if (rc == 0)
		rc = write_table(&t, d, ret, err);
	buf_done(&t.runs);
	return rc;
}

static int pass(struct work *w, struct err *err)
{
	if (!w->draft) {
		w->draft = malloc(sizeof(*w->draft));
		if (!w->draft)
			return err_set(err, ERR_EXHAUSTED, ENOMEM, "copy");
		if (draft_open(w->draft, w, err) < 0)
			return -1;
	}
	return draft_pass(w->draft, err);
}

static void forget(struct work *w)
{
	if (w->draft)
		draft_close(w->draft);
	free(TAKE(w->draft));
}

int work_first(struct work *w, struct copier_reply *ret, struct err *err)
{
	w->done = (struct copier_reply){ 0 };
	forget(w);
	if (pass(w, err) < 0) {
		forget(w);
		return -1;
	}
	ret->pages = w->draft->copies;
	return 0;
}

int work_copy(struct work *w, struct copier_reply *ret, struct err *err)
{
	int failed;

	w->done = (struct copier_reply){ 0 };
	failed = pass(w, err) < 0 || finish(w->draft, ret, err) < 0;
	forget(w);
	if (failed)
		return -1;
	w->done = *ret;
	return 0;
}

/* QEMU wrote it, under whatever influence: its length is bounded, its meaning is not asked for. */
static int copy_state(struct work *w, struct copier_reply *ret, struct err *err)
{
	struct stat st;

	if (fstat(w->saved, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return err_set(err, ERR_INVALID, 0, "the VM has no saved device state");
	if (st.st_size > COPIER_STATE_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%ld bytes of device state, limit is %d",
			       st.st_size, COPIER_STATE_MAX);
	while (ret->state_bytes < (uint64_t)st.st_size) {
		uint64_t left = (uint64_t)st.st_size - ret->state_bytes;
		size_t n = left < WORK_PIECE ? (size_t)left : WORK_PIECE;

		if (work_read(w->saved, w->piece, n, ret->state_bytes, err) < 0 ||
		    work_write(w->state, w->piece, n, ret->state_bytes, err) < 0)
			return err_wrap(err, "copy the device state");
		ret->state_crc = crc32c(ret->state_crc, (struct bytes){ w->piece, n });
		ret->state_bytes += n;
	}
	if (ftruncate(w->state, st.st_size) < 0 || ftruncate(w->saved, 0) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "size the device state");
	return 0;
}

int work_state(struct work *w, struct copier_reply *ret, struct err *err)
{
	if (w->done.pages_bytes == 0)
		return err_set(err, ERR_INVALID, 0, "no memory was copied");
	*ret = w->done;
	ret->state_bytes = ret->state_crc = 0;
	if (copy_state(w, ret, err) < 0)
		return -1;
	w->done = *ret;
	return 0;
}
