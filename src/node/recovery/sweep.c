/* sweep.c - what a start finds on the disk, and what becomes of it; on a thread. */
/* #syscalls: openat openat2 newfstatat fcntl renameat2 unlinkat getdents64 fsync close */
#include "node/recovery/sweep.h"

#include <errno.h>
#include <fcntl.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/log.h"
#include "node/journal/journal_meta.h"
#include "node/files/lost_disks.h"
#include "node/node.h"
#include "node/journal/row_file.h"
#include "node/recovery/sweep_rows.h"
#include "vm/work.h"

#define HALF_MADE ".new-" /* of a snapshot */

enum { GROW = 256 };

/* --- folders without a row ---------------------------------------------------------------- */

struct search {
	struct orphans *found;
	enum lost_kind kind;
	struct sweep_facts *facts;
};

static int add(struct orphans *s, const struct orphan *one, struct err *err)
{
	if (s->n % GROW == 0) {
		struct orphan *more = realloc(s->all, (s->n + GROW) * sizeof(*more));

		if (!more)
			return err_set(err, ERR_EXHAUSTED, ENOMEM, "list folders");
		s->all = more;
	}
	s->all[s->n++] = *one;
	return 0;
}

static int look_at(int dir, const char *name, void *context, struct err *err)
{
	struct search *x = context;
	struct orphan one = { .kind = x->kind };
	enum node_reason why;
	bool half = x->kind == LOST_SNAPSHOT && strncmp(name, HALF_MADE, strlen(HALF_MADE)) == 0;

	(void)dir;
	if (!half && !folder_name_ok(name, sizeof(one.name)))
		log_warn("%s/%.64s is none of ours: it is left alone",
			 x->kind == LOST_SANDBOX ? "sandboxes" : "snapshots", name);
	if ((!half && !folder_name_ok(name, sizeof(one.name))) ||
	    strlen(name) >= sizeof(one.name) || x->found->n >= SWEEP_MAX ||
	    (!half && x->facts->has_row(x->facts, x->kind, name)))
		return 0;
	memcpy(one.name, name, strlen(name));
	why = half ? NODE_KILLED : x->facts->why_ended(x->facts, x->kind, name);
	one.ended = why != NODE_ALIVE && why != NODE_LOST; /* lost for no reason: it may be whole */
	one.wished = row_end_was_wished(why);
	return add(x->found, &one, err);
}

int orphans_find(struct orphans *s, int root, enum lost_kind kind, struct sweep_facts *f,
		 struct err *err)
{
	struct search x = { s, kind, f };

	if (folder_each(root, look_at, &x, err) < 0)
		return err_wrap(err, "look at the folders of %ss", lost_word(kind));
	return 0;
}

void orphans_done(struct orphans *s)
{
	free(s->all);
	*s = (struct orphans){ 0 };
}

/* A create that got no further than its folder, or what its owner wanted gone. */
static bool is_to_go(int root, const struct orphan *x)
{
	struct err ignored;
	AUTO(auto_close)
	int folder = folder_open(root, x->name, O_RDONLY | O_DIRECTORY, 0, &ignored);
	uint64_t size = 0;
	int there;

	if (folder < 0)
		return x->wished;
	if (row_file_is_deleted(folder))
		return true;
	/* described without the mark that a kill leaves: somebody put it back since */
	if (row_has_file(folder, ROW_FILE, NULL, &ignored) != 0)
		return false;
	if (x->wished || x->kind != LOST_SANDBOX)
		return x->wished;
	there = row_has_file(folder, "disk", &size, &ignored);
	return x->ended || there == 0 || (there > 0 && size == 0);
}

static void sweep_one(const struct orphan *x, int root, int lost, uint64_t now_ns,
		      struct swept *ret)
{
	bool goes = is_to_go(root, x);
	struct err err;
	int rc = goes ? folder_remove(root, x->name, &err)
		      : lost_move(root, x->name, x->kind, lost, now_ns, &err);

	if (rc < 0) {
		ret->left++;
		log_error("%s %s is in no row and stays where it is: %s", lost_word(x->kind),
			  x->name, err.msg);
	} else if (goes) {
		ret->removed++;
	} else {
		ret->moved++;
		log_warn("%s %s is in no row: it is in lost/ for a week", lost_word(x->kind),
			 x->name);
	}
}

struct swept orphans_sweep(const struct orphans *s, int sandboxes, int snapshots, int lost,
			   uint64_t now_ns)
{
	struct swept ret = { 0 };

	for (size_t i = 0; i < s->n; i++)
		sweep_one(&s->all[i], s->all[i].kind == LOST_SANDBOX ? sandboxes : snapshots, lost,
			  now_ns, &ret);
	return ret;
}

/* --- on the thread ------------------------------------------------------------------------ */

struct sweep_job {
	struct work work; /* first: the job is freed by it */
	struct node *node;
	int sandboxes, snapshots; /* its own */
	struct orphans orphans;
	struct rows_look rows;
	struct swept swept;
	struct lost_list lost; /* in the end: what is there */
	bool looked;           /* at what is lost */
	bool steady;           /* the clock goes as it should: what is old may go */
	size_t n_lost, n_disks;
	uint64_t lost_bytes, reserve_mib;
};

static struct sweep_job *of(struct work *w)
{
	return CONTAINER_OF(w, struct sweep_job, work);
}

/* Its name was made by a clock that did not know the time: from now on. */
static void stamp(int lost, struct lost_entry *e)
{
	struct err err;

	if (e->since_ns < LOST_SINCE_MIN_NS && lost_stamp(lost, e, clock_wall_ns(), &err) < 0)
		log_error("%s", err.msg);
}

/* True: it is gone. */
static bool drop_old(const struct sweep_job *j, int lost, const struct lost_entry *e)
{
	struct err err;

	if (!j->steady || !lost_is_old(e, clock_wall_ns()))
		return false;
	if (e->kind == LOST_SNAPSHOT &&
	    (rows_look_need(&j->rows, e->id) || lost_holds(&j->lost, e->id)))
		return false;
	if (lost_drop(lost, e, &err) < 0) {
		log_error("%s", err.msg);
		return false;
	}
	log_info("lost/%s was there for a %s: it is removed", e->name,
		 e->kind == LOST_DISK ? "day" : "week");
	return true;
}

/* Those that a row misses are brought back, those whose time is over go; the others are counted. */
static void look_at_lost(struct sweep_job *j, int lost)
{
	struct lost_list *all = &j->lost;
	size_t n = 0;
	struct err err;

	lost_tidy(lost);
	if (lost_disks_room(j->sandboxes, j->reserve_mib, 0, &err) < 0 && err.code != ERR_NO_SPACE)
		log_error("look for room: %s", err.msg);
	if (lost_list(lost, all, &err) < 0) {
		log_error("look at what is lost: %s", err.msg);
		return;
	}
	rows_bring_back(&j->rows, j->sandboxes, j->snapshots, lost, all);
	for (size_t i = 0; i < all->n; i++) {
		struct lost_entry *e = &all->all[i];

		if (j->steady)
			stamp(lost, e);
		if (drop_old(j, lost, e))
			continue;
		j->n_lost++;
		j->n_disks += e->kind == LOST_DISK;
		j->lost_bytes += e->bytes;
		all->all[n++] = *e;
	}
	all->n = n;
	j->looked = true;
}

static int run(struct work *w, struct err *err)
{
	struct sweep_job *j = of(w);
	AUTO(auto_close) int lost = lost_open(j->sandboxes, err);

	rows_look(&j->rows, j->sandboxes, j->snapshots);
	if (lost < 0)
		return -1;
	j->swept = orphans_sweep(&j->orphans, j->sandboxes, j->snapshots, lost, clock_wall_ns());
	look_at_lost(j, lost);
	return 0;
}

static void free_job(struct work *w)
{
	struct sweep_job *j = of(w);

	auto_close(&j->sandboxes);
	auto_close(&j->snapshots);
	orphans_done(&j->orphans);
	rows_look_done(&j->rows);
	lost_list_done(&j->lost);
	free(j);
}

/* --- on the loop -------------------------------------------------------------------------- */

/* Nobody need ask for room: they go by themselves. */
static void on_room(struct timer *t)
{
	struct node *n = CONTAINER_OF(t, struct node, sweep.room);
	struct err err;

	if (!n->sweep.job && files_room(n->files, 0, &err) < 0)
		sweep_look(n);
}

static void count_lost(struct sweep *s, const struct sweep_job *j)
{
	s->n_lost = j->n_lost;
	s->lost_bytes = j->lost_bytes;
	timer_stop(&s->room);
	if (j->n_disks > 0)
		timer_repeat(&s->room, SWEEP_ROOM_MS);
}

static void on_swept(struct work *w, const struct err *err)
{
	struct sweep_job *j = of(w);
	struct sweep *s = &j->node->sweep;
	bool is_last = !s->again && !j->node->lost_jobs; /* else what is lost has changed since */

	s->job = NULL;
	timer_start(&s->timer, s->again ? SWEEP_SOON_MS : SWEEP_EVERY_MS);
	s->again = false;
	if (err) {
		log_error("sweep: %s", err->msg);
		return;
	}
	rows_are_back(j->node, &j->rows);
	if (j->looked) {
		count_lost(s, j);
		aside_learn(j->node, &j->lost);
	}
	if (j->looked && is_last)
		snapshots_sweep(j->node, &j->lost);
	s->n_missing = rows_look_missing(&j->rows);
	if (j->orphans.n > 0)
		log_info("folders in no row: %zu are in lost/ now, %zu were to go and are removed, "
			 "%zu stay",
			 j->swept.moved, j->swept.removed, j->swept.left);
	if (s->n_missing > 0)
		log_error("the files of %zu saved sandboxes and snapshots are not there: are "
			  "%s/sandboxes and %s/snapshots mounted? Their rows are kept",
			  s->n_missing, j->node->set[SET_DATA_DIR].text,
			  j->node->set[SET_DATA_DIR].text);
	rows_describe(j->node, &j->rows);
}

/* A host may know the time long after its start only, and be days off until then. */
static bool is_steady(struct node *n)
{
	struct sweep *s = &n->sweep;
	uint64_t boot_ns = clock_boot_ns();
	int64_t ahead_ns = (int64_t)(clock_wall_ns() - boot_ns);

	if (s->steady_ns == 0 ||
	    llabs(ahead_ns - s->ahead_ns) > SWEEP_JUMP_S * (int64_t)NSEC_PER_SEC) {
		s->ahead_ns = ahead_ns;
		s->steady_ns = boot_ns;
	}
	return boot_ns - s->steady_ns >= n->set[SET_LOST_SETTLE_S].number * NSEC_PER_SEC;
}

static struct sweep_job *job_make(struct node *n, struct err *err)
{
	struct sweep_job *j = calloc(1, sizeof(*j));

	if (!j) {
		err_set(err, ERR_EXHAUSTED, ENOMEM, "sweep");
		return NULL;
	}
	j->node = n;
	j->reserve_mib = n->set[SET_DISK_RESERVE_MIB].number;
	j->steady = is_steady(n);
	j->work.run = run;
	j->work.on_done = on_swept;
	j->work.free = free_job;
	j->sandboxes = fcntl(files_root(n->files), F_DUPFD_CLOEXEC, 0);
	j->snapshots = fcntl(files_snapshots(n->files), F_DUPFD_CLOEXEC, 0);
	if (j->sandboxes >= 0 && j->snapshots >= 0 && rows_list(n, &j->rows, err) == 0)
		return j;
	if (j->sandboxes < 0 || j->snapshots < 0)
		err_set(err, ERR_EXHAUSTED, errno, "a descriptor");
	free_job(&j->work);
	return NULL;
}

static int begin(struct node *n, struct sweep_job *j, struct err *err)
{
	n->sweep.job = j;
	if (work_start(&j->work, n->loop, err) == 0)
		return 0;
	n->sweep.job = NULL;
	return -1;
}

static void on_time(struct timer *t)
{
	struct node *n = CONTAINER_OF(t, struct node, sweep.timer);
	struct err err;
	struct sweep_job *j = job_make(n, &err);

	if (j && begin(n, j, &err) == 0)
		return;
	log_error("look at what is lost: %s", err.msg);
	timer_start(t, SWEEP_EVERY_MS);
}

void sweep_look(struct node *n)
{
	if (n->sweep.job)
		n->sweep.again = true;
	else
		timer_start(&n->sweep.timer, 0);
}

/* There may be many at once. */
void sweep_disk_kept(struct node *n, struct snapshot *made_of)
{
	if (made_of)
		made_of->lost = true;
	if (n->sweep.job)
		n->sweep.again = true;
	else
		timer_start(&n->sweep.timer, SWEEP_SOON_MS);
}

struct start_facts {
	struct sweep_facts facts;
	struct node *node;
};

static bool has_row(struct sweep_facts *f, enum lost_kind kind, const char *id)
{
	const struct node *n = CONTAINER_OF(f, struct start_facts, facts)->node;

	if (kind == LOST_SANDBOX)
		return table_find(&n->table, id) || quarantine_has(n, QUARANTINE_SANDBOX, id);
	return snapshots_by_id(n, id) || quarantine_has(n, QUARANTINE_SNAPSHOT, id);
}

static enum node_reason why_ended(struct sweep_facts *f, enum lost_kind kind, const char *id)
{
	const struct node *n = CONTAINER_OF(f, struct start_facts, facts)->node;
	enum node_reason reason = NODE_ALIVE;

	if (kind != LOST_SANDBOX || !journal_ended(n->journal, id, &reason))
		return NODE_ALIVE;
	return reason;
}

int sweep_open(struct node *n, struct err *err)
{
	struct start_facts f = { { has_row, why_ended }, n };
	struct sweep_job *j;

	timer_init(&n->sweep.timer, n->loop, on_time);
	timer_init(&n->sweep.room, n->loop, on_room);
	j = job_make(n, err);
	if (!j)
		return -1;
	/* a folder that cannot be read is left as it is, and node starts */
	if (orphans_find(&j->orphans, j->sandboxes, LOST_SANDBOX, &f.facts, err) < 0 ||
	    orphans_find(&j->orphans, j->snapshots, LOST_SNAPSHOT, &f.facts, err) < 0)
		log_error("%s", err->msg);
	aside_expect(n, &j->orphans);
	return begin(n, j, err);
}

void sweep_close(struct node *n)
{
	timer_stop(&n->sweep.timer);
	timer_stop(&n->sweep.room);
	if (n->sweep.job)
		work_cancel(&TAKE(n->sweep.job)->work);
	aside_close(n);
	rows_describe_close(n);
}
