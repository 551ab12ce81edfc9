/* sandbox_files.c - which job comes next; see files_work.c for what each does. */
/* #syscalls: mkdir mkdirat openat openat2 newfstatat fcntl fstatfs statfs close */
#include "node/files/sandbox_files.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/list.h"
#include "base/folder.h"
#include "base/log.h"
#include "node/files/files_work.h"

struct files_job {
	struct work work;        /* first: the job is freed by it */
	struct files *files;     /* the loop's alone, as all that follows but `do_it` */
	struct files_call *call; /* NULL: nobody waits */
	bool done;               /* but for what nobody waits for */
	struct files_job *next, **prev;
	struct files_work do_it;
};

struct files {
	struct loop *loop;
	char state_dir[FILES_FOLDER_MAX], data_dir[FILES_FOLDER_MAX];
	uint64_t reserve_mib;
	int root;      /* data_dir/sandboxes */
	int snapshots; /* data_dir/snapshots */
	struct files_job *running[FILES_AT_ONCE + FILES_FREEING_MAX];
	size_t n_busy;                   /* of them: not done */
	struct files_job *first, **last; /* waiting */
	size_t n_waiting;
	struct timer turn; /* what can begin does, from the loop */
};

/* --- what was opened for a caller ----------------------------------------------------------- */

static void close_one(int *fd)
{
	auto_close(fd);
	*fd = -1;
}

void files_opened_close(struct files_opened *o)
{
	close_one(&o->disk);
	close_one(&o->pages);
	close_one(&o->memory);
	close_one(&o->state);
	for (size_t i = 0; i < o->n_layers; i++)
		close_one(&o->layers[i]);
	o->n_layers = 0;
}

size_t files_opened_give(struct files_opened *o, int *fds)
{
	size_t n = 0;

	fds[n++] = take_fd(&o->state);
	fds[n++] = take_fd(&o->memory);
	for (size_t i = 0; i < o->n_layers; i++)
		fds[n++] = take_fd(&o->layers[i]);
	o->n_layers = 0;
	return n;
}

/* --- jobs ----------------------------------------------------------------------------------- */

static struct files_job *of(struct work *w)
{
	return CONTAINER_OF(w, struct files_job, work);
}

static int run(struct work *w, struct err *err)
{
	return files_work_do(&of(w)->do_it, err);
}

static void after(struct work *w)
{
	files_work_after(&of(w)->do_it);
}

static void free_job(struct work *w)
{
	struct files_job *j = of(w);

	files_work_done(&j->do_it);
	free(j);
}

/* Its place; of no job: a free one, or NULL. */
static struct files_job **place_of(struct files *f, const struct files_job *j)
{
	for (size_t i = 0; i < COUNT(f->running); i++)
		if (f->running[i] == j)
			return &f->running[i];
	return NULL;
}

static void finish(struct files_job *j, const struct err *err)
{
	struct files_call *c = TAKE(j->call);
	const struct files_order *o = &j->do_it.order;

	if (c) {
		c->job = NULL;
		c->on_done(c, &j->do_it.opened, err);
	} else if (err) {
		log_error("%s: %s: %s", o->id, files_verb_name(o->verb), err->msg);
	}
}

static void on_done(struct work *w, const struct err *err)
{
	struct files_job *j = of(w);
	struct files *f = j->files;
	struct err named;

	j->done = true;
	f->n_busy--;
	timer_start(&f->turn, 0);
	if (err) {
		named = *err;
		files_name_room(f, &named);
		err = &named;
	}
	finish(j, err);
}

static void on_end(struct work *w)
{
	struct files *f = of(w)->files;

	*place_of(f, of(w)) = NULL;
	timer_start(&f->turn, 0);
}

/* --- which one ---------------------------------------------------------------------------- */

static bool busy_with(const struct files *f, const char *id)
{
	for (size_t i = 0; i < COUNT(f->running); i++) {
		const struct files_job *j = f->running[i];

		if (j && !j->done && strcmp(j->do_it.order.id, id) == 0)
			return true;
	}
	return false;
}

/* The first that waits and whose sandbox has nothing under way: each has its jobs in order. */
static struct files_job *take_next(struct files *f)
{
	struct files_job *j = f->first;

	while (j && busy_with(f, j->do_it.order.id))
		j = j->next;
	if (!j)
		return NULL;
	queue_remove(f, j);
	f->n_waiting--;
	return j;
}

/* Takes j in any case. */
static int start(struct files *f, struct files_job *j, struct err *err)
{
	j->work.run = run;
	j->work.on_done = on_done;
	j->work.after = after;
	j->work.on_end = on_end;
	j->work.free = free_job;
	if (files_work_open(&j->do_it, f->root, f->snapshots, err) == 0)
		return work_start(&j->work, f->loop, err);
	free_job(&j->work);
	return -1;
}

static void begin(struct files *f, struct files_job *j, struct files_job **place)
{
	struct files_call *c = j->call;
	struct err err;

	*place = j;
	j->call = NULL; /* a job that cannot be started is freed at once */
	if (start(f, j, &err) == 0) {
		j->call = c;
		f->n_busy++;
		return;
	}
	*place = NULL;
	timer_start(&f->turn, 0);
	log_error("a sandbox's files: %s", err.msg);
	if (c) {
		struct files_opened none = FILES_NONE;

		c->job = NULL;
		c->on_done(c, &none, &err);
	}
}

static void on_turn(struct timer *t)
{
	struct files *f = CONTAINER_OF(t, struct files, turn);

	for (size_t i = 0; i < FILES_AT_ONCE && f->n_busy < FILES_AT_ONCE; i++) {
		struct files_job **place = place_of(f, NULL);
		struct files_job *j = place ? take_next(f) : NULL;

		if (j)
			begin(f, j, place);
	}
}

int files_ask(struct files *f, struct files_call *c, const struct files_order *o,
	      files_done_fn *done, struct err *err)
{
	struct files_order mine = *o;
	struct files_job *j;

	assert(!c || !c->job);
	if (f->n_waiting >= FILES_JOBS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%d jobs with files wait already",
			       FILES_JOBS_MAX);
	j = calloc(1, sizeof(*j));
	mine.row = j && o->row ? strdup(o->row) : NULL;
	if (!j || (o->row && !mine.row)) {
		free(j);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a job with files");
	}
	files_work_make(&j->do_it, &mine, f->state_dir, f->reserve_mib);
	j->files = f;
	j->call = c;
	if (c)
		*c = (struct files_call){ .on_done = done, .job = j };
	queue_add(f, j);
	f->n_waiting++;
	timer_start(&f->turn, 0);
	return 0;
}

static bool forget_waiting(struct files *f, struct files_job *j)
{
	if (!j->prev)
		return false;
	queue_remove(f, j);
	f->n_waiting--;
	return true;
}

void files_cancel(struct files_call *c)
{
	struct files_job *j = TAKE(c->job);

	if (!j)
		return;
	j->call = NULL;
	if (forget_waiting(j->files, j))
		free_job(&j->work);
}

/* --- all of them -------------------------------------------------------------------------- */

int files_room(const struct files *f, uint64_t need_mib, struct err *err)
{
	if (files_work_room(f->root, f->reserve_mib + need_mib, err) == 0)
		return 0;
	files_name_room(f, err);
	return -1;
}

void files_name_room(const struct files *f, struct err *err)
{
	if (err->sys == ENOSPC || err->sys == EDQUOT)
		err->code = ERR_NO_SPACE;
	if (err->code == ERR_NO_SPACE && strncmp(err->msg, f->data_dir, strlen(f->data_dir)) != 0)
		err_wrap(err, "%s", f->data_dir);
}

static int open_root(const char *data_dir, const char *name, struct err *err)
{
	char path[FILES_FOLDER_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", data_dir, name), fd;

	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(err, ERR_INVALID, 0, "path too long");
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_set(err, ERR_INTERNAL, errno, "make %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "open %s", path);
	return fd;
}

int files_open(struct loop *l, const char *data_dir, const char *state_dir, uint64_t reserve_mib,
	       struct files **ret, struct err *err)
{
	AUTO(auto_free) struct files *f = calloc(1, sizeof(*f));
	AUTO(auto_close) int root = -1;

	if (!f)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate the folders");
	if (strlen(state_dir) >= sizeof(f->state_dir) || strlen(data_dir) >= sizeof(f->data_dir))
		return err_set(err, ERR_INVALID, 0, "path too long");
	root = open_root(data_dir, "sandboxes", err);
	if (root < 0)
		return -1;
	f->snapshots = open_root(data_dir, "snapshots", err);
	if (f->snapshots < 0)
		return -1;
	f->root = take_fd(&root);
	f->loop = l;
	f->reserve_mib = reserve_mib;
	queue_init(f);
	memcpy(f->state_dir, state_dir, strlen(state_dir) + 1);
	memcpy(f->data_dir, data_dir, strlen(data_dir) + 1);
	timer_init(&f->turn, l, on_turn);
	*ret = TAKE(f);
	return 0;
}

int files_root(const struct files *f)
{
	return f->root;
}

int files_snapshots(const struct files *f)
{
	return f->snapshots;
}

struct known { /* none: `keep` is NULL */
	files_keep_fn *keep;
	void *context;
};

static int must_keep(int dir, const char *name, void *context, struct err *err)
{
	const struct known *k = context;

	(void)dir, (void)err;
	if (!folder_name_ok(name, NODE_ID_MAX + 1)) /* a file system's own, or one being made */
		return 0;
	return k->keep && k->keep(name, k->context) ? 0 : -1;
}

bool files_all_known(const struct files *f, files_keep_fn *keep, void *context)
{
	struct known known = { keep, context }, none = { 0 };
	AUTO(auto_close) int lost = openat(f->root, "../lost", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool empty = lost < 0 && errno == ENOENT;
	struct err err;

	if (lost >= 0)
		empty = folder_each(lost, must_keep, &none, &err) == 0;
	return empty && folder_each(f->root, must_keep, &known, &err) == 0 &&
	       folder_each(f->snapshots, must_keep, &known, &err) == 0;
}

bool files_has_snapshot(const struct files *f, const char *id)
{
	struct stat st;

	return fstatat(f->snapshots, id, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

bool files_is_marked(const struct files *f, const char *id)
{
	char path[NODE_ID_MAX + sizeof("/" FILES_MARK)];
	struct stat st;

	snprintf(path, sizeof(path), "%s/" FILES_MARK, id);
	return fstatat(f->root, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void files_close(struct files *f)
{
	if (!f)
		return;
	timer_stop(&f->turn);
	for (size_t i = 0; i < COUNT(f->running); i++)
		if (f->running[i])
			work_cancel(&TAKE(f->running[i])->work);
	while (f->first)
		free_job(&queue_take(f)->work);
	close(f->root);
	close(f->snapshots);
	free(f);
}
