/* uploads.c - which uploads there are, whose turn it is to go, and the verbs of a gateway. */
/* #syscalls: openat openat2 mkdirat unlinkat renameat fsync fstat newfstatat fcntl utimensat
 *	getdents64 close */
#include "node/catalog/uploads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/list.h"
#include "base/log.h"
#include "base/random.h"
#include "node/catalog/template_verbs.h"
#include "node/node.h"
#include "node/recovery/adopt.h"
#include "vm/close_later.h"
#include "vm/work.h"

enum { TEXT_DEPTH = 2, FOLDER_MODE = 0700, FILE_MODE = 0600, NEW_SIZE = 32 };
#define NEW_PREFIX ".new-"
#define MIB        (1024ull * 1024)

struct keep_job { /* on a thread: what was written becomes a file */
	struct work work;
	struct upload_open *owner; /* the loop's; NULL: nobody waits */
	int fd, dir;
	char from[NEW_SIZE], to[UPLOAD_HASH_LENGTH + 1];
	uint64_t bytes;
};

struct upload_open {
	struct node *node;
	char name[UPLOAD_NAME_LENGTH + 1];
	char team[NODE_ID_MAX + 1], hash[UPLOAD_HASH_LENGTH + 1];
	uint64_t bytes; /* that were promised */
	struct timer late;
	struct keep_job *job;     /* it was written; NULL: not yet */
	struct door_asked *asked; /* who waits for that */
	struct upload_open *next, **prev;
};

/* --- the table ------------------------------------------------------------------------------ */

static bool hash_ok(struct bytes hash)
{
	for (size_t i = 0; i < hash.len; i++)
		if (!memchr("0123456789abcdef", hash.ptr[i], 16))
			return false;
	return hash.len == UPLOAD_HASH_LENGTH;
}

static struct upload_file *find(const struct uploads *u, const char *team, const char *hash)
{
	struct upload_file *f = u->all;

	while (f && (strcmp(f->hash, hash) != 0 || strcmp(f->team, team) != 0))
		f = f->next;
	return f;
}

static void file_forget(struct upload_file *f)
{
	list_remove(f);
	free(f);
}

/* A new one, or the same again. */
static void file_add(struct uploads *u, const char *team, const char *hash, uint64_t bytes,
		     uint64_t used_ns)
{
	struct upload_file *f = find(u, team, hash);

	if (!f) {
		f = calloc(1, sizeof(*f));
		if (!f) { /* the next node counts it */
			log_error("an upload is not known: no memory");
			return;
		}
		snprintf(f->team, sizeof(f->team), "%s", team);
		snprintf(f->hash, sizeof(f->hash), "%s", hash);
		list_add(&u->all, f);
	}
	f->bytes = bytes;
	f->used_ns = used_ns;
}

static void path_of(const char *team, const char *name, char ret[static 2 * NODE_ID_MAX + 8])
{
	snprintf(ret, 2 * NODE_ID_MAX + 8, "%s/%s", team, name);
}

/* The name goes now, the blocks on a thread: an upload may have a gigabyte. */
static int remove_name(struct node *n, const char *team, const char *name, struct err *err)
{
	AUTO(auto_close)
	int dir = folder_open(n->uploads.dir, team, O_RDONLY | O_DIRECTORY, 0, err);
	struct err none;
	int fd, rc;

	if (dir < 0)
		return -1;
	fd = folder_open(dir, name, O_RDONLY, 0, &none);
	rc = folder_remove(dir, name, err);
	close_later(n->loop, fd);
	return rc;
}

static void remove_file(struct node *n, struct upload_file *f)
{
	struct err err;

	if (remove_name(n, f->team, f->hash, &err) < 0)
		log_warn("remove an upload: %s", err.msg);
	file_forget(f);
}

static struct upload_file *least_used(const struct uploads *u, const char *team)
{
	struct upload_file *found = NULL;

	for (struct upload_file *f = u->all; f; f = f->next)
		if (strcmp(f->team, team) == 0 && (!found || f->used_ns < found->used_ns))
			found = f;
	return found;
}

struct share { /* of one team */
	uint64_t bytes;
	size_t files, open;
};

static struct share share_of(const struct uploads *u, const char *team)
{
	struct share s = { 0 };

	for (const struct upload_file *f = u->all; f; f = f->next)
		if (strcmp(f->team, team) == 0) {
			s.bytes += f->bytes;
			s.files++;
		}
	for (const struct upload_open *o = u->open; o; o = o->next)
		if (strcmp(o->team, team) == 0) {
			s.bytes += o->bytes;
			s.open++;
		}
	return s;
}

/* What is under way may still be written, all of it. */
static uint64_t promised(const struct uploads *u)
{
	uint64_t bytes = 0;

	for (const struct upload_open *o = u->open; o; o = o->next)
		bytes += o->bytes;
	return bytes;
}

/* What was used least recently goes until there is room. */
static int make_room(struct node *n, const char *team, uint64_t bytes, struct err *err)
{
	uint64_t max = n->set[SET_UPLOAD_TEAM_MAX_MIB].number * MIB;
	struct share s = share_of(&n->uploads, team);

	if (bytes > UPLOAD_BYTES_MAX)
		return err_set(err, ERR_INVALID, 0, "an upload has at most %llu bytes",
			       UPLOAD_BYTES_MAX);
	if (s.open >= UPLOADS_OPEN_TEAM_MAX || n->uploads.n_open >= UPLOADS_OPEN_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "too many uploads at once");
	while (s.bytes + bytes > max || s.files + s.open >= UPLOADS_TEAM_MAX) {
		struct upload_file *old = least_used(&n->uploads, team);

		if (!old)
			return err_set(err, ERR_EXHAUSTED, 0,
				       "uploads of a team have at most %llu MiB",
				       (unsigned long long)(max / MIB));
		remove_file(n, old);
		s = share_of(&n->uploads, team);
	}
	return files_room(n->files, (promised(&n->uploads) + bytes) / MIB + 1, err);
}

/* --- at start ------------------------------------------------------------------------------- */

struct walk {
	struct node *node;
	const char *team;
};

static int load_file(int dir, const char *name, void *context, struct err *err)
{
	const struct walk *w = context;
	struct stat st;

	(void)err;
	if (!hash_ok(bytes_str(name)) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode)) {
		struct err why;

		if (folder_remove(dir, name, &why) < 0)
			log_warn("uploads/%s/%s: %s", w->team, name, why.msg);
		return 0;
	}
	file_add(&w->node->uploads, w->team, name, (uint64_t)st.st_size,
		 (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC);
	return 0;
}

static int load_team(int dir, const char *name, void *context, struct err *err)
{
	struct walk w = { context, name };
	AUTO(auto_close) int team = -1;
	struct err why;

	(void)err;
	if (sandbox_id_ok(name))
		team = folder_open(dir, name, O_RDONLY | O_DIRECTORY, 0, &why);
	if (team < 0 || folder_each(team, load_file, &w, &why) < 0)
		log_warn("uploads/%s is not read", name);
	return 0;
}

int uploads_load(struct node *n, struct err *err)
{
	char path[CONFIG_VALUE_MAX + 16];

	snprintf(path, sizeof(path), "%s/uploads", n->set[SET_DATA_DIR].text);
	n->uploads = (struct uploads){ .dir = folder_ensure(path, FOLDER_MODE, err) };
	if (n->uploads.dir < 0)
		return -1;
	return folder_each(n->uploads.dir, load_team, n, err);
}

int uploads_open(struct node *n, const char *team, const char *hash, struct err *err)
{
	struct upload_file *f = find(&n->uploads, team, hash);
	char path[2 * NODE_ID_MAX + 8];
	int fd;

	if (!f)
		return err_set(err, ERR_NOT_FOUND, 0, "files %s were not uploaded", hash);
	path_of(team, hash, path);
	fd = folder_open(n->uploads.dir, path, O_RDONLY, 0, err);
	if (fd < 0)
		return -1;
	f->used_ns = clock_wall_ns();
	if (futimens(fd, NULL) < 0) /* the next node would believe that it was not used */
		log_warn("an upload: not noted that it was used");
	return fd;
}

/* --- one that is written -------------------------------------------------------------------- */

static void new_name(const struct upload_open *o, char ret[static NEW_SIZE])
{
	snprintf(ret, NEW_SIZE, NEW_PREFIX "%s", o->name);
}

static void open_forget(struct upload_open *o)
{
	timer_stop(&o->late);
	list_remove(o);
	o->node->uploads.n_open--;
	free(o);
}

static void drop(struct upload_open *o)
{
	char name[NEW_SIZE];
	struct err err;

	new_name(o, name);
	if (remove_name(o->node, o->team, name, &err) < 0) /* the next node does */
		log_warn("drop an upload: %s", err.msg);
	open_forget(o);
}

static void on_late(struct timer *t)
{
	struct upload_open *o = CONTAINER_OF(t, struct upload_open, late);

	if (!o->job)
		drop(o);
}

void uploads_close(struct node *n)
{
	while (n->uploads.open) {
		struct upload_open *o = n->uploads.open;

		if (o->job) {
			o->job->owner = NULL;
			work_cancel(&o->job->work);
			open_forget(o);
		} else {
			drop(o);
		}
	}
	while (n->uploads.all)
		file_forget(n->uploads.all);
	auto_close(&n->uploads.dir);
	n->uploads.dir = -1;
}

static struct upload_open *open_add(struct node *n, const char *team, struct bytes hash,
				    uint64_t bytes)
{
	struct upload_open *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->node = n;
	o->bytes = bytes;
	snprintf(o->team, sizeof(o->team), "%s", team);
	(void)bytes_to_str(hash, o->hash, sizeof(o->hash));
	random_name(o->name, UPLOAD_NAME_LENGTH);
	timer_init(&o->late, n->loop, on_late);
	timer_start(&o->late, UPLOAD_LATE_MS);
	list_add(&n->uploads.open, o);
	n->uploads.n_open++;
	return o;
}

static int team_folder(struct node *n, const char *team, struct err *err)
{
	int dir;

	if (!sandbox_id_ok(team))
		return err_set(err, ERR_INVALID, 0, "a team's id may be no folder's name");
	dir = folder_open(n->uploads.dir, team, O_RDONLY | O_DIRECTORY, 0, err);
	if (dir < 0 && err->sys == ENOENT)
		dir = folder_make(n->uploads.dir, team, FOLDER_MODE, err);
	return dir;
}

static int make_file(struct upload_open *o, struct err *err)
{
	AUTO(auto_close) int dir = team_folder(o->node, o->team, err);
	char name[NEW_SIZE];

	if (dir < 0)
		return -1;
	new_name(o, name);
	return folder_open(dir, name, O_WRONLY | O_CREAT | O_EXCL, FILE_MODE, err);
}

/* --- kept, on a thread ---------------------------------------------------------------------- */

static int keep(struct work *w, struct err *err)
{
	const struct keep_job *j = CONTAINER_OF(w, struct keep_job, work);
	struct stat st;

	if (fstat(j->fd, &st) < 0 || (uint64_t)st.st_size != j->bytes)
		return err_set(err, ERR_INVALID, 0, "not all of the upload came");
	if (fsync(j->fd) < 0 || renameat(j->dir, j->from, j->dir, j->to) < 0 || fsync(j->dir) < 0)
		return err_set(err, errno == ENOSPC ? ERR_NO_SPACE : ERR_INTERNAL, errno,
			       "keep an upload");
	return 0;
}

static void free_keep(struct work *w)
{
	struct keep_job *j = CONTAINER_OF(w, struct keep_job, work);

	auto_close(&j->fd);
	auto_close(&j->dir);
	free(j);
}

static void on_kept(struct work *w, const struct err *failed)
{
	struct upload_open *o = CONTAINER_OF(w, struct keep_job, work)->owner;
	struct node *n = o->node;
	struct door_asked *asked = TAKE(o->asked);

	o->job = NULL;
	if (failed) {
		drop(o);
		if (n->door)
			door_refuse(asked, failed);
		return;
	}
	file_add(&n->uploads, o->team, o->hash, o->bytes, clock_wall_ns());
	open_forget(o);
	if (n->door)
		door_answer(asked, &(struct node_reply){ 0 }, (struct bytes){ 0 }, NULL, 0);
}

static struct keep_job *keep_job_make(struct upload_open *o, struct err *err)
{
	struct keep_job *j = calloc(1, sizeof(*j));

	if (!j) {
		err_set(err, ERR_EXHAUSTED, ENOMEM, "keep an upload");
		return NULL;
	}
	*j = (struct keep_job){ .work = { .run = keep, .on_done = on_kept, .free = free_keep },
				.owner = o,
				.fd = -1,
				.bytes = o->bytes };
	new_name(o, j->from);
	memcpy(j->to, o->hash, sizeof(j->to));
	j->dir = team_folder(o->node, o->team, err);
	j->fd = j->dir < 0 ? -1 : folder_open(j->dir, j->from, O_WRONLY, 0, err);
	if (j->fd >= 0)
		return j;
	free_keep(&j->work);
	return NULL;
}

/* --- what gateways ask ---------------------------------------------------------------------- */

static int take_hash(struct bytes text, struct bytes *ret, int64_t *ret_size, json_t **ret_body,
		     struct err *err)
{
	if (json_decode(text, NODE_TEXT_MAX, TEXT_DEPTH, ret_body, err) < 0 ||
	    json_want_string(*ret_body, "hash", ret, err) < 0 ||
	    json_may_int(*ret_body, "size", 0, INT64_MAX, ret_size, err) < 0)
		return -1;
	if (!hash_ok(*ret))
		return err_set(err, ERR_INVALID, 0, "hash must be %d hexadecimal digits",
			       UPLOAD_HASH_LENGTH);
	return 0;
}

void upload_find_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	AUTO(json_decrefp) json_t *body = NULL;
	char hash[UPLOAD_HASH_LENGTH + 1];
	struct bytes given;
	int64_t size = 0;
	struct upload_file *f;
	struct err err;

	if (!catalog_own(n, rq->team, rq->template_id, &err) ||
	    take_hash(text, &given, &size, &body, &err) < 0) {
		door_refuse(a, &err);
		return;
	}
	(void)bytes_to_str(given, hash, sizeof(hash));
	f = find(&n->uploads, rq->team, hash);
	if (f)
		f->used_ns = clock_wall_ns();
	catalog_answer(a, json_pack("{s:b}", "present", f != NULL));
}

void upload_open_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct node_reply r = { .count = 1 };
	struct upload_open *o = NULL;
	struct bytes hash;
	int64_t size = 0;
	int fd = -1;
	struct err err;

	if (take_hash(text, &hash, &size, &body, &err) < 0 ||
	    make_room(n, rq->team, (uint64_t)size, &err) < 0) {
		door_refuse(a, &err);
		return;
	}
	o = open_add(n, rq->team, hash, (uint64_t)size);
	if (!o)
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "an upload");
	else
		fd = make_file(o, &err);
	if (fd < 0) {
		if (o)
			open_forget(o);
		door_refuse(a, &err);
		return;
	}
	snprintf(r.sandbox.id, sizeof(r.sandbox.id), "%s", o->name);
	door_answer(a, &r, (struct bytes){ 0 }, &fd, 1);
}

static struct upload_open *find_open(const struct node *n, const struct node_request *rq,
				     struct err *err)
{
	struct upload_open *o = n->uploads.open;

	while (o && (strcmp(o->name, rq->id) != 0 || strcmp(o->team, rq->team) != 0))
		o = o->next;
	if (o && !o->job)
		return o;
	err_set(err, ERR_NOT_FOUND, 0, "there is no such upload");
	return NULL;
}

void upload_done_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	struct err err;
	struct upload_open *o = find_open(n, rq, &err);
	struct keep_job *j = o ? keep_job_make(o, &err) : NULL;

	(void)text;
	if (!j) {
		if (o)
			drop(o);
		door_refuse(a, &err);
		return;
	}
	o->asked = a;
	o->job = j;
	if (work_start(&j->work, n->loop, &err) < 0) { /* it took the job */
		o->job = NULL;
		drop(o);
		door_refuse(a, &err);
	}
}

void upload_drop_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	struct err err;
	struct upload_open *o = find_open(n, rq, &err);

	(void)text;
	if (!o) {
		door_refuse(a, &err);
		return;
	}
	drop(o);
	door_answer(a, &(struct node_reply){ 0 }, (struct bytes){ 0 }, NULL, 0);
}
