/* build_archive.c - see build_archive.h. */
/* #syscalls: openat openat2 unlinkat fstat fcntl close */
#include "node/catalog/build_archive.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/list.h"
#include "base/log.h"
#include "node/build/build_disk.h"
#include "node/build/builds.h"
#include "node/catalog/template_verbs.h"
#include "node/node.h"
#include "vm/close_later.h"

enum { TEXT_DEPTH = 2 };
#define MIB (1024ull * 1024)

void build_archive_close(struct build_archive *a)
{
	if (a->fd < 0)
		return;
	timer_stop(&a->stalled);
	json_decref(a->spec);
	close_later(a->stalled.loop, take_fd(&a->fd)); /* it has no name, and may be large */
	*a = BUILD_ARCHIVE_NONE;
}

static uint64_t bytes_of(const struct build_archive *a)
{
	struct stat st;

	return fstat(a->fd, &st) < 0 ? 0 : (uint64_t)st.st_size;
}

int build_archive_whole(struct build_archive *a, struct err *err)
{
	if (a->fd < 0)
		return err_set(err, ERR_INVALID, 0, "no archive was sent for this build");
	if (bytes_of(a) != a->bytes)
		return err_set(err, ERR_INVALID, 0, "not all of the archive came");
	timer_stop(&a->stalled);
	return 0;
}

int build_archive_again(const struct build_archive *a, int *ret, struct err *err)
{
	*ret = a->fd < 0 ? -1 : fcntl(a->fd, F_DUPFD_CLOEXEC, 0);
	if (a->fd < 0)
		return err_set(err, ERR_INVALID, 0, "no archive was sent for this build");
	return *ret < 0 ? err_set(err, ERR_EXHAUSTED, errno, "the archive") : 0;
}

static void on_stalled(struct timer *t)
{
	struct build *b = CONTAINER_OF(t, struct build, archive.stalled);
	uint64_t now = bytes_of(&b->archive);

	if (now != b->archive.before) {
		b->archive.before = now;
		timer_start(t, ARCHIVE_STALLED_MS);
		return;
	}
	build_failed(b, "base", "the archive did not come: import it again");
}

/* --- where to write it ---------------------------------------------------------------------- */

static size_t archives(const struct node *n)
{
	size_t all = 0;

	for (const struct template *t = n->catalog.all; t; t = t->next)
		for (const struct build *b = t->builds; b; b = b->next)
			all += b->archive.fd >= 0;
	return all;
}

static int check(struct node *n, const struct build *b, uint64_t bytes, struct err *err)
{
	uint64_t max = n->set[SET_IMPORT_MAX_MIB].number;

	if (b->row.status != BUILD_WAITING || b->archive.fd >= 0)
		return err_set(err, ERR_INVALID, 0, "build is not in waiting state");
	if (!link_exists(&n->images.link))
		return err_set(err, ERR_UNAVAILABLE, 0, IMAGES_NONE);
	if (bytes > max * MIB)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "the archive has %llu MiB, at most %llu are taken "
			       "(import_max_mib in node.conf)",
			       (unsigned long long)((bytes + MIB - 1) / MIB),
			       (unsigned long long)max);
	if (archives(n) >= ARCHIVES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%d archives are imported already",
			       ARCHIVES_MAX);
	return files_room(n->files, bytes / MIB + 1, err);
}

/* {"size", "startCmd", "readyCmd"} */
static int take_text(struct bytes text, uint64_t *ret, json_t **ret_spec, struct err *err)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct bytes start = { 0 }, ready = { 0 };
	int64_t size = 0;

	if (json_decode(text, NODE_TEXT_MAX, TEXT_DEPTH, &body, err) < 0 ||
	    json_may_int(body, "size", 1, INT64_MAX, &size, err) < 0 ||
	    json_may_string(body, "startCmd", &start, err) < 0 ||
	    json_may_string(body, "readyCmd", &ready, err) < 0)
		return -1;
	if (size <= 0)
		return err_set(err, ERR_INVALID, 0, "the archive is empty");
	*ret = (uint64_t)size;
	*ret_spec = json_pack("{s:b, s:o, s:o}", "fromArchive", 1, "startCmd", json_text(start),
			      "readyCmd", json_text(ready));
	return *ret_spec ? 0 : err_set(err, ERR_EXHAUSTED, 0, "no memory");
}

static int prepare(struct node *n, struct build *b, struct bytes text, int *ret_out,
		   struct err *err)
{
	AUTO(json_decrefp) json_t *spec = NULL;
	struct build_archive *a = &b->archive;
	uint64_t bytes = 0;

	if (take_text(text, &bytes, &spec, err) < 0 || check(n, b, bytes, err) < 0 ||
	    build_disk_make(n, b->row.id, BUILD_ARCHIVE, ret_out, &a->fd, err) < 0)
		return -1;
	a->bytes = bytes;
	a->before = 0;
	a->spec = TAKE(spec);
	timer_init(&a->stalled, n->loop, on_stalled);
	timer_start(&a->stalled, ARCHIVE_STALLED_MS);
	return 0;
}

void import_open_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	struct build *b = catalog_build_anywhere(n, rq->id);
	struct err err;
	int out;

	if (!b)
		err_set(&err, ERR_NOT_FOUND, 0, "build '%s' not found", rq->id);
	if (!b || prepare(n, b, text, &out, &err) < 0)
		door_refuse(a, &err);
	else
		door_answer(a, &(struct node_reply){ .count = 1 }, (struct bytes){ 0 }, &out, 1);
}
