/* lost.c - folders that nobody knows, set aside by renaming. */
/* #syscalls: mkdirat openat openat2 renameat2 unlinkat fsync newfstatat getdents64 close */
#include "node/files/lost.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/log.h"
#include "node/journal/row_file.h"
#include "wire/rfc3339.h"

#define GOING ".gone-"

enum { TIME_LENGTH = 16 }; /* 20261116t104800z */

static const char *const words[LOST_KINDS] = {
	[LOST_SANDBOX] = "sandbox", [LOST_SNAPSHOT] = "snapshot", [LOST_DISK] = "disk"
};

static const uint64_t keep_s[LOST_KINDS] = {
	[LOST_SANDBOX] = LOST_KEEP_S, [LOST_SNAPSHOT] = LOST_KEEP_S, [LOST_DISK] = LOST_KEEP_DISK_S
};

const char *lost_word(enum lost_kind kind)
{
	return words[kind];
}

int lost_open(int root, struct err *err)
{
	int fd;

	if (mkdirat(root, "../lost", 0700) < 0 && errno != EEXIST)
		return err_set(err, ERR_INTERNAL, errno, "make the folder lost");
	fd = openat(root, "../lost", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_set(err, ERR_INTERNAL, errno, "open the folder lost") : fd;
}

/* --- names -------------------------------------------------------------------------------- */

void lost_name(enum lost_kind kind, const char *id, uint64_t now_ns,
	       char ret[static LOST_NAME_SIZE])
{
	char at[RFC3339_SIZE], time[TIME_LENGTH + 1];
	size_t n = 0;

	rfc3339_put(now_ns, 0, at);
	for (const char *c = at; *c && n < TIME_LENGTH; c++) {
		if (*c >= '0' && *c <= '9')
			time[n++] = *c;
		else if (*c == 'T' || *c == 'Z')
			time[n++] = (char)(*c - 'A' + 'a');
	}
	time[n] = '\0';
	snprintf(ret, LOST_NAME_SIZE, "%s-%s-%s", time, words[kind], id);
}

static bool parse_time(const char *t, uint64_t *ret)
{
	char at[RFC3339_SIZE];
	struct err err;

	snprintf(at, sizeof(at), "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", t, t + 4, t + 6, t + 9, t + 11,
		 t + 13);
	return t[8] == 't' && t[15] == 'z' && rfc3339_parse(bytes_str(at), ret, &err) == 0;
}

bool lost_parse(const char *name, struct lost_entry *ret)
{
	size_t len = strnlen(name, LOST_NAME_SIZE);

	*ret = (struct lost_entry){ 0 };
	if (len >= LOST_NAME_SIZE || len <= TIME_LENGTH || name[TIME_LENGTH] != '-' ||
	    !parse_time(name, &ret->since_ns))
		return false;
	memcpy(ret->name, name, len);
	for (int kind = 0; kind < LOST_KINDS; kind++) {
		const char *rest = name + TIME_LENGTH + 1;
		size_t word = strlen(words[kind]);

		if (strncmp(rest, words[kind], word) != 0 || rest[word] != '-')
			continue;
		ret->kind = (enum lost_kind)kind;
		snprintf(ret->id, sizeof(ret->id), "%s", rest + word + 1);
		return folder_name_ok(ret->id, sizeof(ret->id)) &&
		       strlen(rest + word + 1) < sizeof(ret->id);
	}
	return false;
}

/* --- moved -------------------------------------------------------------------------------- */

static int move(int from, const char *name, int to, const char *new_name, struct err *err)
{
	if (renameat2(from, name, to, new_name, RENAME_NOREPLACE) < 0)
		return err_set(err, errno == EEXIST ? ERR_EXISTS : ERR_INTERNAL, errno,
			       "move %s to %s", name, new_name);
	if (fsync(to) < 0 || fsync(from) < 0)
		return err_set(err, ERR_INTERNAL, errno, "sync a folder");
	return 0;
}

int lost_move(int root, const char *id, enum lost_kind kind, int lost, uint64_t now_ns,
	      struct err *err)
{
	char name[LOST_NAME_SIZE];

	lost_name(kind, id, now_ns, name);
	return move(root, id, lost, name, err);
}

int lost_move_back(int lost, const struct lost_entry *e, int root, struct err *err)
{
	return move(lost, e->name, root, e->id, err);
}

/* --- what there is ------------------------------------------------------------------------ */

static int add_bytes(int dir, const char *name, void *context, struct err *err)
{
	struct lost_entry *e = context;
	struct stat st;

	(void)err;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		e->bytes += (uint64_t)st.st_blocks * 512;
	return 0;
}

/* One that is damaged is never brought back: it was made of nothing, and is nobody's. As far as is
 * known a whole one can be: its template may be gone. */
static int read_sandbox(struct bytes text, struct lost_entry *e, struct err *err)
{
	struct journal_row row;

	if (row_get(text, &row, err) < 0)
		return err->code == ERR_INVALID ? 0 : -1;
	if (row.base_id[0])
		memcpy(e->made_of, row.sandbox.template_id, sizeof(e->made_of));
	memcpy(e->team, row.sandbox.team, sizeof(e->team));
	e->save = (struct lost_save){ row.sandbox.generation, row.pages_crc, row.state_crc };
	e->described = strcmp(row.sandbox.id, e->id) == 0;
	row_done(&row);
	return 0;
}

static int read_snapshot(struct bytes text, struct lost_entry *e, struct err *err)
{
	struct journal_snapshot row;

	if (row_get_snapshot(text, &row, err) < 0)
		return err->code == ERR_INVALID ? 0 : -1;
	memcpy(e->team, row.team, sizeof(e->team));
	e->save = (struct lost_save){ .number = row.created_ns };
	e->described = strcmp(row.id, e->id) == 0;
	row_done_snapshot(&row);
	return 0;
}

static int read_row(int folder, struct lost_entry *e, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(ROW_FILE_MAX + 1);

	if (row_file_read(folder, &text, err) < 0)
		return err->code == ERR_INVALID || err->sys == ENOENT || err->sys == ELOOP ? 0 : -1;
	return (e->kind == LOST_SNAPSHOT ? read_snapshot : read_sandbox)(buf_view(&text), e, err);
}

static int look_inside(int lost, struct lost_entry *e, struct err *err)
{
	AUTO(auto_close)
	int folder = folder_open(lost, e->name, O_RDONLY | O_DIRECTORY, 0, err);

	if (folder < 0)
		return err->sys == ENOENT || err->sys == ENOTDIR ? 0 : -1;
	if (folder_each(folder, add_bytes, e, err) < 0)
		return -1;
	if (read_row(folder, e, err) < 0)
		return -1;
	e->described &= row_has_file(folder, e->kind == LOST_SNAPSHOT ? "manifest" : "disk", NULL,
				     err) == 1;
	return 0;
}

static int add_entry(int dir, const char *name, void *context, struct err *err)
{
	struct lost_list *l = context;
	struct lost_entry e;
	struct err ignored;

	if (!lost_parse(name, &e))
		return 0;
	l->partial |= l->n >= LOST_MAX;
	if (l->n >= LOST_MAX)
		return 0;
	if (l->n % 64 == 0) {
		struct lost_entry *more = realloc(l->all, (l->n + 64) * sizeof(*more));

		if (!more)
			return err_set(err, ERR_EXHAUSTED, ENOMEM, "list what is lost");
		l->all = more;
	}
	l->partial |= look_inside(dir, &e, &ignored) < 0;
	l->bytes += e.bytes;
	l->all[l->n++] = e;
	return 0;
}

static int older(const void *a, const void *b)
{
	return strcmp(((const struct lost_entry *)a)->name, ((const struct lost_entry *)b)->name);
}

int lost_list(int lost, struct lost_list *ret, struct err *err)
{
	*ret = (struct lost_list){ 0 };
	if (folder_each(lost, add_entry, ret, err) < 0) {
		lost_list_done(ret);
		return -1;
	}
	if (ret->n > 0)
		qsort(ret->all, ret->n, sizeof(*ret->all), older);
	return 0;
}

void lost_list_done(struct lost_list *l)
{
	free(l->all);
	*l = (struct lost_list){ 0 };
}

const struct lost_entry *lost_find(const struct lost_list *l, const char *id)
{
	const struct lost_entry *found = NULL;

	for (size_t i = l->n; i > 0 && !(found && found->described); i--)
		if (strcmp(l->all[i - 1].id, id) == 0 && (!found || l->all[i - 1].described))
			found = &l->all[i - 1];
	return found;
}

const struct lost_entry *lost_find_name(const struct lost_list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->all[i].name, name) == 0)
			return &l->all[i];
	return NULL;
}

size_t lost_count(const struct lost_list *l, const char *id)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += strcmp(l->all[i].id, id) == 0;
	return n;
}

bool lost_is_save(const struct lost_entry *e, const struct lost_save *s)
{
	return e->save.number && e->save.number == s->number && e->save.pages_crc == s->pages_crc &&
	       e->save.state_crc == s->state_crc;
}

const struct lost_entry *lost_find_save(const struct lost_list *l, const char *id,
					const struct lost_save *s)
{
	for (size_t i = l->n; i > 0; i--)
		if (strcmp(l->all[i - 1].id, id) == 0 && lost_is_save(&l->all[i - 1], s))
			return &l->all[i - 1];
	return lost_find(l, id);
}

bool lost_holds(const struct lost_list *l, const char *snapshot)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->all[i].made_of, snapshot) == 0)
			return true;
	return l->partial;
}

uint64_t lost_until_ns(const struct lost_entry *e)
{
	return e->since_ns + keep_s[e->kind] * NSEC_PER_SEC;
}

bool lost_is_old(const struct lost_entry *e, uint64_t now_ns)
{
	return now_ns > e->since_ns && now_ns >= lost_until_ns(e);
}

int lost_stamp(int lost, struct lost_entry *e, uint64_t now_ns, struct err *err)
{
	char name[LOST_NAME_SIZE];

	lost_name(e->kind, e->id, now_ns, name);
	if (move(lost, e->name, lost, name, err) < 0)
		return -1;
	memcpy(e->name, name, sizeof(e->name));
	e->since_ns = now_ns;
	return 0;
}

/* --- gone --------------------------------------------------------------------------------- */

/* Another name first: it is brought back before that, or not at all. */
int lost_drop(int lost, const struct lost_entry *e, struct err *err)
{
	char name[sizeof(GOING) + LOST_NAME_SIZE];

	snprintf(name, sizeof(name), GOING "%s", e->name);
	if (renameat2(lost, e->name, lost, name, RENAME_NOREPLACE) < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, errno,
			       "remove lost/%s", e->name);
	return folder_remove(lost, name, err);
}

static int tidy_one(int dir, const char *name, void *context, struct err *err)
{
	(void)context;
	if (strncmp(name, GOING, strlen(GOING)) == 0 && folder_remove(dir, name, err) < 0)
		log_error("remove lost/%s: %s", name, err->msg);
	return 0;
}

void lost_tidy(int lost)
{
	struct err err;

	if (folder_each(lost, tidy_one, NULL, &err) < 0)
		log_error("look at what is lost: %s", err.msg);
}
