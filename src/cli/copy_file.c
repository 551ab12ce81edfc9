/* copy_file.c - what cp asks of a sandbox: one file there or back, what is there, and how far it
 * is. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/copy.h"
#include "cli/guest_process.h"
#include "cli/people.h"
#include "cli/table.h"

enum { TARGET_SIZE = 3 * (COPY_PATH_MAX + RUN_USER_MAX) + 64, FILE_MS = INT32_MAX, LIST_DEPTH = 8 };

static struct copying *copying_of(struct client_exchange *x)
{
	return CONTAINER_OF(CONTAINER_OF(x, struct run_session, x), struct copying, s);
}

/* --- progress ------------------------------------------------------------------------------- */

static void show(struct copying *c, uint64_t moved)
{
	char done[PEOPLE_SIZE], all[PEOPLE_SIZE];

	people_size(moved, done);
	people_size(c->size, all);
	fprintf(stderr, "\r\033[K%s  %s%s%s", c->name, done, c->size ? " of " : "",
		c->size ? all : "");
	fflush(stderr);
	c->shown = true;
}

static void on_tick(struct timer *t)
{
	struct copying *c = CONTAINER_OF(t, struct copying, tick);
	uint64_t now = loop_now_ms(c->s.client.loop), moved = c->s.x.sent + c->got;
	struct err err;

	if (moved != c->seen)
		c->moved_ms = now;
	c->seen = moved;
	if (c->terminal && now - c->since_ms >= COPY_SHOW_MS)
		show(c, moved);
	if (now - c->moved_ms < COPY_STALL_MS)
		return;
	err_set(&err, ERR_TIMEOUT, 0, "sandbox %s: nothing moved for %d seconds", c->s.id,
		COPY_STALL_MS / 1000);
	client_cancel(&c->s.x);
	run_session_end_wait(&c->s, &err);
}

void copy_progress_begin(struct copying *c)
{
	c->terminal = isatty(STDERR_FILENO) && !c->s.c->json;
	c->since_ms = loop_now_ms(c->s.client.loop);
	timer_init(&c->tick, c->s.client.loop, on_tick);
}

void copy_progress_end(struct copying *c)
{
	if (c->shown)
		fprintf(stderr, "\r\033[K");
	c->shown = false;
}

void copy_skip(struct copying *c, const char *what, const char *why)
{
	char name[COPY_PATH_MAX];

	snprintf(name, sizeof(name), "%s", what);
	table_clean(name);
	copy_progress_end(c);
	fprintf(stderr, "hotcell: not copied: %s: %s\n", name, why);
	c->skipped++;
}

int copy_count(struct copying *c, int depth, struct err *err)
{
	if (depth > COPY_DEPTH_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "folders are more than %d deep",
			       COPY_DEPTH_MAX);
	if (++c->entries > COPY_ENTRIES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d files and folders",
			       COPY_ENTRIES_MAX);
	return 0;
}

/* --- names ---------------------------------------------------------------------------------- */

bool copy_name_ok(const char *name)
{
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		if (*p == '/' || *p < ' ' || *p == 127 ||
		    (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0))
			return false;
	return true;
}

bool copy_join(const char *dir, const char *name, char ret[static COPY_PATH_MAX])
{
	size_t len = strlen(dir);
	const char *between = len == 0 || dir[len - 1] == '/' ? "" : "/";
	int n = snprintf(ret, COPY_PATH_MAX, "%s%s%s", dir, between, name);

	return n > 0 && n < COPY_PATH_MAX;
}

const char *copy_base(char *path)
{
	size_t len = strlen(path);
	const char *slash;

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	slash = strrchr(path, '/');
	slash = slash ? slash + 1 : path;
	return strcmp(slash, ".") == 0 || strcmp(slash, "..") == 0 ? "" : slash;
}

/* --- what is there -------------------------------------------------------------------------- */

static int ask_path(struct copying *c, const char *call, const char *path, struct err *err)
{
	AUTO(json_decrefp)
	json_t *message = json_pack("{s:s, s:i}", "path", path, "depth", 1);

	if (!message)
		return err_set(err, ERR_INVALID, 0, "`%.128s` is not UTF-8", path);
	if (strcmp(call, "/filesystem.Filesystem/ListDir") != 0)
		json_object_del(message, "depth");
	return run_session_ask_agent(&c->s, call, message, err);
}

void copy_entry_read(const json_t *v, struct copy_entry *ret)
{
	struct bytes type = { 0 }, name = { 0 }, link = { 0 };
	int64_t mode = 0, size = 0;
	struct err ignored;

	(void)!json_may_string(v, "type", &type, &ignored);
	(void)!json_may_string(v, "name", &name, &ignored);
	(void)!json_may_string(v, "symlinkTarget", &link, &ignored);
	(void)!json_may_int(v, "mode", 0, 07777, &mode, &ignored);
	(void)!json_may_int(v, "size", 0, INT64_MAX, &size, &ignored);
	*ret = (struct copy_entry){ .dir = bytes_eq(type, BYTES_LIT("FILE_TYPE_DIRECTORY")),
				    .file = bytes_eq(type, BYTES_LIT("FILE_TYPE_FILE")),
				    .link = link.len > 0,
				    .mode = (unsigned int)mode & 0777,
				    .size = (uint64_t)size };
	if (!bytes_to_str(name, ret->name, sizeof(ret->name)))
		ret->name[0] = '\0';
}

static int answer_of(struct copying *c, json_t **ret, struct err *err)
{
	if (json_decode(buf_view(&c->s.answer), COPY_LIST_MAX, LIST_DEPTH, ret, err) < 0)
		return err_wrap(err, "sandbox %s: its answer", c->s.id);
	return 0;
}

int copy_stat(struct copying *c, const char *path, struct copy_entry *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *answer = NULL;

	if (ask_path(c, "/filesystem.Filesystem/Stat", path, err) < 0 ||
	    answer_of(c, &answer, err) < 0)
		return -1;
	copy_entry_read(json_object_get(answer, "entry"), ret);
	return 0;
}

int copy_list(struct copying *c, const char *path, json_t **ret, struct err *err)
{
	AUTO(json_decrefp) json_t *answer = NULL;

	if (ask_path(c, "/filesystem.Filesystem/ListDir", path, err) < 0 ||
	    answer_of(c, &answer, err) < 0)
		return -1;
	*ret = json_incref(json_object_get(answer, "entries"));
	return 0;
}

int copy_make_dir(struct copying *c, const char *path, struct err *err)
{
	if (ask_path(c, "/filesystem.Filesystem/MakeDir", path, err) == 0 ||
	    err->code == ERR_EXISTS)
		return 0;
	return -1;
}

int copy_chmod(struct copying *c, const char *path, unsigned int mode, struct err *err)
{
	AUTO(buf_done) struct buf said = BUF_MAX(256);
	char bits[8];
	const char *argv[] = { "chmod", bits, "--", path, NULL };
	int code = 0;

	snprintf(bits, sizeof(bits), "%o", mode & 0777);
	if (guest_process_capture(&c->s, argv, &said, &code, err) < 0)
		return -1;
	return code == 0 ? 0 : err_set(err, ERR_INTERNAL, 0, "chmod: status %d", code);
}

/* --- one file ------------------------------------------------------------------------------- */

static void on_body(struct client_exchange *x, struct bytes piece)
{
	struct copying *c = copying_of(x);
	struct err err;
	ssize_t n = 0;

	if (x->status != 200 || c->to < 0) {
		(void)!buf_add(&c->s.answer, piece, &err); /* its beginning is enough */
		return;
	}
	for (size_t at = 0; at < piece.len && n >= 0; at += (size_t)n)
		n = write(c->to, piece.ptr + at, piece.len - at);
	c->got += piece.len;
	if (n >= 0)
		return;
	err_set(&err, errno == ENOSPC ? ERR_NO_SPACE : ERR_INTERNAL, errno, "write");
	client_cancel(x);
	run_session_end_wait(&c->s, &err);
}

static void on_done(struct client_exchange *x, const struct err *err)
{
	run_session_end_wait(&copying_of(x)->s, err);
}

static int add_encoded(struct buf *out, const char *text, struct err *err)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~/";

	for (const char *p = text; *p; p++)
		if ((strchr(plain, *p) ? buf_add(out, (struct bytes){ (const uint8_t *)p, 1 }, err)
				       : buf_printf(out, err, "%%%02X", (unsigned char)*p)) < 0)
			return -1;
	return 0;
}

static int target_of(const struct copying *c, const char *path, struct buf *ret, struct err *err)
{
	const char *user = c->s.c->user ? c->s.c->user : "user";

	if (buf_printf(ret, err, "/files?username=") < 0 || add_encoded(ret, user, err) < 0 ||
	    buf_printf(ret, err, "&path=") < 0 || add_encoded(ret, path, err) < 0)
		return -1;
	return buf_add(ret, (struct bytes){ (const uint8_t *)"", 1 }, err);
}

static void begin_file(struct copying *c, const char *path, uint64_t size)
{
	const char *slash = strrchr(path, '/');

	snprintf(c->name, sizeof(c->name), "%s", slash ? slash + 1 : path);
	table_clean(c->name);
	c->size = size;
	c->seen = c->got = 0;
	c->moved_ms = loop_now_ms(c->s.client.loop);
	buf_clear(&c->s.answer);
	c->s.over = c->s.late = false;
}

static int exchange(struct copying *c, struct client_ask *ask, const char *path, struct err *err)
{
	static const struct client_exchange_ops ops = { on_body, on_done };
	AUTO(buf_done) struct buf target = BUF_MAX(TARGET_SIZE);

	if (target_of(c, path, &target, err) < 0)
		return -1;
	ask->target = (const char *)target.ptr;
	c->s.x.ops = &ops;
	if (client_start(&c->s.x, &c->s.client, ask, err) < 0)
		return -1;
	timer_repeat(&c->tick, COPY_TICK_MS);
	run_session_wait(&c->s, FILE_MS);
	timer_stop(&c->tick);
	if (c->s.why.code != ERR_NONE) {
		*err = c->s.why;
		return -1;
	}
	return c->s.x.status == 200 ? 0 : run_session_refused(&c->s, "sandbox", err);
}

int copy_put(struct copying *c, int from, uint64_t bytes, const char *path, struct err *err)
{
	struct client_ask ask;

	begin_file(c, path, bytes);
	c->to = -1;
	run_session_to_agent(&c->s, "application/octet-stream", &ask);
	ask.file = from;
	ask.file_bytes = bytes;
	if (exchange(c, &ask, path, err) < 0)
		return -1;
	c->files++;
	c->bytes += bytes;
	return 0;
}

int copy_get(struct copying *c, const char *path, const struct copy_entry *e, int to,
	     struct err *err)
{
	struct client_ask ask;

	begin_file(c, path, e->size);
	c->to = to;
	run_session_to_agent(&c->s, "application/octet-stream", &ask);
	ask.method = "GET";
	if (exchange(c, &ask, path, err) < 0)
		return -1;
	c->files++;
	c->bytes += c->got;
	return 0;
}
