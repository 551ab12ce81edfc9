/* lost_verbs.c - what is lost is listed, brought back or dropped, each by a thread of its own.
 *
 *	back: described and whole, its template and snapshot there -> its folder has its name again
 *	-> its row, durable -> it is paused, or can be made from -> whoever asked is answered
 *	one whose row is there and whose files are not: its folder alone, if it is the same save
 */
/* #syscalls: openat openat2 newfstatat fcntl close */
#include "node/recovery/lost_verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/list.h"
#include "base/folder.h"
#include "base/log.h"
#include "node/recovery/adopt.h"
#include "node/journal/journal_meta.h"
#include "node/files/lost.h"
#include "node/node.h"
#include "node/journal/rebuild.h"
#include "node/journal/row_file.h"
#include "node/life/park.h"
#include "node/life/requests_paused.h"
#include "node/recovery/sweep_rows.h"
#include "vm/work.h"
#include "wire/rfc3339.h"

struct lost_job {
	struct work work; /* first: the job is freed by it */
	struct node *node;
	struct door_asked *asked;
	enum node_verb verb;
	char id[NODE_ID_MAX + 1];
	char name[NODE_ID_MAX + 1];       /* of its folder, where that was named; or empty */
	char state_dir[CONFIG_VALUE_MAX]; /* warden's */
	int sandboxes, snapshots;         /* its own */
	struct lost_list list;
	size_t from;            /* of a list */
	struct saved_row known; /* of one to be restored: its row is there; or no id */
	struct lost_entry entry;
	struct journal_row row;           /* of a sandbox that is back */
	struct journal_snapshot snapshot; /* or of a snapshot */
	bool held;                        /* until its row is written */
	struct journal_write write;
	struct lost_job *next, **prev;
};

static struct lost_job *of(struct work *w)
{
	return CONTAINER_OF(w, struct lost_job, work);
}

/* --- on the thread ------------------------------------------------------------------------ */

static int check_template(const struct lost_job *j, const char *id, struct err *err)
{
	char path[CONFIG_VALUE_MAX + 128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/" WARDEN_TEMPLATE_PATH, j->state_dir, id);
	if (folder_name_ok(id, NODE_ID_MAX + 1) && stat(path, &st) == 0)
		return 0;
	return err_set(err, ERR_NOT_FOUND, 0, "the template it was made of, %s, is gone", id);
}

static int read_sandbox(struct lost_job *j, int folder, struct err *err)
{
	const struct journal_row *r = &j->row;
	struct stat st;

	if (rebuild_read(folder, j->id, &j->row, err) < 0)
		return -1;
	if (!r->base_id[0])
		return check_template(j, r->sandbox.template_id, err);
	if (fstatat(j->snapshots, r->sandbox.template_id, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, ERR_NOT_FOUND, 0,
			       "the snapshot it was made of, %s, is not there: restore it first",
			       r->sandbox.template_id);
	return check_template(j, r->base_id, err);
}

static int read_snapshot(struct lost_job *j, int folder, struct err *err)
{
	if (rebuild_read_snapshot(folder, j->id, &j->snapshot, err) < 0)
		return -1;
	return check_template(j, j->snapshot.base_id, err);
}

/* Whoever killed it for the sake of the copy would lose what is newer. */
static int is_there(const char *id, struct err *err)
{
	return err_set(err, ERR_EXISTS, 0,
		       "%s is there, with its files: what lost/ has of it is another copy, and "
		       "stays there for its time",
		       id);
}

/* Nobody knows whether the files that its row means are elsewhere: nothing of it is overwritten. */
static int is_another(const struct lost_job *j, struct err *err)
{
	const uint64_t it = j->entry.save.number, row = j->known.save.number;

	return err_set(err, ERR_EXISTS, 0,
		       "lost/%s is %s save than the row's, whose files are not there: both stay. "
		       "See \"a row without its files\" in docs/operations.md",
		       j->entry.name,
		       it > row   ? "a newer"
		       : it < row ? "an older"
				  : "another");
}

/* The journal's row stays. Of what cannot be read of its description the row's own sums tell. */
static int give_back(const struct lost_job *j, int lost, struct err *err)
{
	const struct lost_entry *e = &j->entry;
	int root = j->known.kind == LOST_SNAPSHOT ? j->snapshots : j->sandboxes;
	struct stat st;

	if (fstatat(root, j->id, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return is_there(j->id, err);
	if (e->kind != j->known.kind || (e->save.number && !lost_is_save(e, &j->known.save)))
		return is_another(j, err);
	return lost_move_back(lost, e, root, err);
}

static int restore(struct lost_job *j, int lost, struct err *err)
{
	const struct lost_entry *e = &j->entry;
	AUTO(auto_close) int folder = folder_open(lost, e->name, O_RDONLY | O_DIRECTORY, 0, err);
	bool sandbox = e->kind != LOST_SNAPSHOT;

	if (folder < 0)
		return -1;
	if ((sandbox ? read_sandbox : read_snapshot)(j, folder, err) < 0)
		return err_wrap(err, "lost/%s cannot be brought back", e->name);
	return lost_move_back(lost, e, sandbox ? j->sandboxes : j->snapshots, err);
}

/* Which of those with that id is restored is known; which is to go, only whoever asks knows. */
static int find(struct lost_job *j, struct err *err)
{
	const struct lost_entry *e = j->name[0] ? lost_find_name(&j->list, j->name)
						: lost_find_save(&j->list, j->id, &j->known.save);
	size_t n = lost_count(&j->list, j->id);

	if (!e)
		return err_set(err, ERR_NOT_FOUND, 0,
			       "nothing lost has the id or folder %s: hotcell lost shows what is",
			       j->name[0] ? j->name : j->id);
	if (j->verb == NODE_LOST_DROP && !j->name[0] && n > 1)
		return err_set(err, ERR_EXISTS, 0,
			       "lost/ has %zu of %s: name the folder, as hotcell lost shows it", n,
			       j->id);
	j->entry = *e;
	return 0;
}

static int run(struct work *w, struct err *err)
{
	struct lost_job *j = of(w);
	AUTO(auto_close) int lost = lost_open(j->sandboxes, err);
	const struct lost_entry *e = &j->entry;

	if (lost < 0 || lost_list(lost, &j->list, err) < 0)
		return -1;
	if (j->verb == NODE_LOST_LIST)
		return 0;
	if (find(j, err) < 0)
		return -1;
	if (j->verb == NODE_LOST_DROP)
		return lost_drop(lost, e, err);
	return j->known.id[0] ? give_back(j, lost, err) : restore(j, lost, err);
}

static void free_job(struct work *w)
{
	struct lost_job *j = of(w);

	auto_close(&j->sandboxes);
	auto_close(&j->snapshots);
	lost_list_done(&j->list);
	row_done(&j->row);
	row_done_snapshot(&j->snapshot);
	free(j);
}

/* --- on the loop -------------------------------------------------------------------------- */

static void answer(struct lost_job *j, struct bytes text, const struct err *err)
{
	struct door_asked *a = TAKE(j->asked);

	if (err)
		door_refuse(a, err);
	else
		door_answer(a, &(struct node_reply){ 0 }, text, NULL, 0);
	sweep_look(j->node);
}

static json_t *entry_json(const struct lost_entry *e)
{
	char since[RFC3339_SIZE], until[RFC3339_SIZE];

	rfc3339_put(e->since_ns, 0, since);
	rfc3339_put(lost_until_ns(e), 0, until);
	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:b, s:s}", "id", e->id, "kind",
			 lost_word(e->kind), "since", since, "until", until, "bytes",
			 (json_int_t)e->bytes, "described", (int)e->described, "folder", e->name);
}

static void answer_list(struct lost_job *j)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_MESSAGE_MAX - sizeof(struct node_reply));
	AUTO(json_decrefp) json_t *all = json_array();
	struct err err;

	for (size_t i = j->from; i < j->list.n && json_array_size(all) < LOST_PAGE; i++)
		(void)json_array_append_new(all, entry_json(&j->list.all[i]));
	if (json_encode(all, &out, &err) < 0)
		answer(j, (struct bytes){ 0 }, &err);
	else
		answer(j, buf_view(&out), NULL);
}

/* --- it is back --------------------------------------------------------------------------- */

/* The look that comes after a start is over: whether warden has a VM of it is asked now. */
static int load_sandbox(struct lost_job *j, struct err *err)
{
	struct node *n = j->node;

	if (sandbox_load(n, &j->row, err) < 0)
		return -1;
	if (n->reconcile.complete)
		park_looked(table_find(&n->table, j->id), true);
	return 0;
}

static int load(struct lost_job *j, struct err *err)
{
	struct node *n = j->node;

	if (j->entry.kind != LOST_SNAPSHOT)
		return load_sandbox(j, err);
	if (!snapshots_add(n, &j->snapshot))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a snapshot");
	return 0;
}

static void on_noted(struct journal_write *w, const struct err *failed)
{
	struct lost_job *j = CONTAINER_OF(w, struct lost_job, write);
	struct err err;

	if (!failed && load(j, &err) < 0)
		failed = &err; /* the next node has it */
	if (!failed) {
		log_info("%s %s was lost and is back", lost_word(j->entry.kind), j->id);
		aside_forget(j->node, j->id);
	}
	answer(j, (struct bytes){ 0 }, failed);
	list_remove(j);
	free_job(&j->work);
}

static void given_back(struct lost_job *j)
{
	log_info("%s %s has its files again", lost_word(j->known.kind), j->id);
	j->known.back = true;
	rows_are_back(j->node, &(struct rows_look){ &j->known, 1 });
	aside_forget(j->node, j->id);
	answer(j, (struct bytes){ 0 }, NULL);
}

/* The thread has let go of the job: what is left of it is kept for the row. */
static struct lost_job *keep(struct lost_job *j)
{
	struct lost_job *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	*k = (struct lost_job){ .node = j->node,
				.asked = TAKE(j->asked),
				.entry = j->entry,
				.row = j->row,
				.snapshot = j->snapshot,
				.sandboxes = -1,
				.snapshots = -1,
				.held = true };
	memcpy(k->id, j->id, sizeof(k->id));
	j->row = (struct journal_row){ 0 };
	j->snapshot = (struct journal_snapshot){ 0 };
	list_add(&k->node->lost_jobs, k);
	return k;
}

static void note(struct lost_job *done)
{
	struct lost_job *j = keep(done);
	struct err err;
	int rc;

	if (!j) {
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "restore %s", done->id);
		answer(done, (struct bytes){ 0 }, &err);
		return;
	}
	if (j->entry.kind != LOST_SNAPSHOT)
		rc = journal_put(j->node->journal, &j->write, &j->row, true, on_noted, &err);
	else
		rc = journal_put_snapshot(j->node->journal, &j->write, &j->snapshot, on_noted,
					  &err);
	if (rc < 0)
		on_noted(&j->write, &err);
}

static void on_done(struct work *w, const struct err *err)
{
	struct lost_job *j = of(w);

	list_remove(j);
	if (err)
		answer(j, (struct bytes){ 0 }, err);
	else if (j->verb == NODE_LOST_LIST)
		answer_list(j);
	else if (j->verb == NODE_LOST_RESTORE && j->known.id[0])
		given_back(j);
	else if (j->verb == NODE_LOST_RESTORE)
		note(j);
	else {
		aside_forget(j->node, j->id);
		answer(j, (struct bytes){ 0 }, NULL);
	}
}

/* --- asked -------------------------------------------------------------------------------- */

/* An id, or the folder of one. */
static const char *asked_id(const struct node_request *rq, struct lost_entry *e)
{
	return lost_parse(rq->id, e) ? e->id : rq->id;
}

static struct lost_job *make(struct node *n, const struct node_request *rq,
			     const struct saved_row *known, struct err *err)
{
	struct lost_entry named;
	struct lost_job *j;
	size_t busy = 0;

	for (j = n->lost_jobs; j; j = j->next)
		busy++;
	j = busy < LOST_JOBS_MAX ? calloc(1, sizeof(*j)) : NULL;
	if (!j) {
		err_set(err, ERR_EXHAUSTED, 0, "%zu requests about what is lost are under way",
			busy);
		return NULL;
	}
	*j = (struct lost_job){ .work = { .run = run, .on_done = on_done, .free = free_job },
				.node = n,
				.verb = (enum node_verb)rq->verb,
				.from = rq->count,
				.known = *known };
	snprintf(j->id, sizeof(j->id), "%s", asked_id(rq, &named));
	if (strcmp(j->id, rq->id) != 0)
		snprintf(j->name, sizeof(j->name), "%s", rq->id);
	snprintf(j->state_dir, sizeof(j->state_dir), "%s", n->set[SET_STATE_DIR].text);
	j->sandboxes = fcntl(files_root(n->files), F_DUPFD_CLOEXEC, 0);
	j->snapshots = fcntl(files_snapshots(n->files), F_DUPFD_CLOEXEC, 0);
	if (j->sandboxes >= 0 && j->snapshots >= 0)
		return j;
	err_set(err, ERR_EXHAUSTED, errno, "a descriptor");
	free_job(&j->work);
	return NULL;
}

static void begin(struct node *n, struct door_asked *a, const struct node_request *rq,
		  const struct saved_row *known)
{
	struct err err;
	struct lost_job *j = make(n, rq, known, &err);

	if (!j || work_start(&j->work, n->loop, &err) < 0) {
		door_refuse(a, &err);
		return;
	}
	j->asked = a;
	list_add(&n->lost_jobs, j);
}

void lost_list_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		   struct bytes text)
{
	(void)text;
	begin(n, a, rq, &(struct saved_row){ 0 });
}

/* No id: there is none. -1: its folder cannot be what lost/ has. */
static int find_row(const struct node *n, const char *id, struct saved_row *ret, struct err *err)
{
	const struct sandbox *s = table_find(&n->table, id);
	const struct snapshot *p = snapshots_by_id(n, id);

	*ret = (struct saved_row){ .kind = p ? LOST_SNAPSHOT : LOST_SANDBOX };
	if ((s && s->state == SANDBOX_ENDING) || (p && p->going)) /* its folder may be in lost/ */
		return err_set(err, ERR_UNAVAILABLE, 0, "%s still ends: try again soon", id);
	if (quarantine_has(n, QUARANTINE_SANDBOX, id) || quarantine_has(n, QUARANTINE_SNAPSHOT, id))
		return err_set(err, ERR_EXISTS, 0,
			       "%s has a row that makes no sense (hotcell doctor): what lost/ has "
			       "of it stays there for its time",
			       id);
	if (s && !requests_rests(s))
		return is_there(id, err);
	if (s)
		ret->save = rows_save(s);
	else if (p)
		ret->save = rows_save_snapshot(p);
	if (s || p)
		snprintf(ret->id, sizeof(ret->id), "%s", id);
	return 0;
}

void lost_restore_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		      struct bytes text)
{
	struct lost_entry named;
	struct saved_row known;
	struct err err;

	(void)text;
	if (find_row(n, asked_id(rq, &named), &known, &err) < 0)
		door_refuse(a, &err);
	else
		begin(n, a, rq, &known);
}

void lost_drop_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		   struct bytes text)
{
	(void)text;
	begin(n, a, rq, &(struct saved_row){ 0 });
}

void lost_jobs_close(struct node *n)
{
	while (n->lost_jobs) {
		struct lost_job *j = n->lost_jobs;

		journal_write_cancel(&j->write);
		list_remove(j);
		if (j->held)
			free_job(&j->work);
		else
			work_cancel(&j->work);
	}
}

void lost_status(const struct node *n, json_t *status)
{
	(void)json_object_set_new(status, "lost", json_integer((json_int_t)n->sweep.n_lost));
	(void)json_object_set_new(status, "lostBytes",
				  json_integer((json_int_t)n->sweep.lost_bytes));
	(void)json_object_set_new(status, "filesMissing",
				  json_integer((json_int_t)n->sweep.n_missing));
	(void)json_object_set_new(status, "savedElsewhere",
				  json_integer((json_int_t)base_saved_elsewhere(n)));
	(void)json_object_set_new(status, "unloaded", unloaded_json(n));
	(void)json_object_set_new(status, "journalFailure",
				  json_text(bytes_str(journal_failure(n->journal))));
}
