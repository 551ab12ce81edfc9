/* snapshot_take.c - from copied files to a snapshot that others may be made of. */
#include "node/life/snapshot_take.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/list.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "node/node.h"
#include "node/life/pause.h"
#include "node/life/requests.h"
#include "node/life/requests_paused.h"
#include "node/life/snapshot_steps.h"
#include "node/life/step.h"
#include "node/life/deferred.h"
#include "vm/disk_copy.h"

struct taking {
	struct node *node;
	struct taking_user *user;
	struct journal_snapshot row;
	struct snapshot *below; /* held: its source may end meanwhile. NULL: the template */
	uint64_t base_sums;     /* of what its source was made of */
	uint32_t blank_mib;     /* so much of its memory was mapped from zeros */
	bool booted;            /* its source was, on `host`, with `kernel` */
	struct manifest_facts host;
	struct checksum kernel;
	struct sandbox *source; /* while QEMU copies its disk; else NULL */
	struct disk_copy *disk; /* the same */
	bool copied;            /* the disk is; its source is kept for what it knows of names */
	bool flat;              /* all layers become one */
	struct turn turn;       /* to be made one: much to read and to write */
	struct files_call files;
	struct journal_write write;
	uint64_t asked_ns;
	struct taking *next, **prev;
};

/* --- its end ------------------------------------------------------------------------------ */

/* The sandbox may be paused again, and so on. */
static void let_go(struct taking *t)
{
	struct disk_copy *d = TAKE(t->disk);

	if (!d)
		return;
	TAKE(t->source)->copying = NULL;
	disk_copy_cancel(d);
	free(d);
}

static void taking_free(struct taking *t)
{
	struct snapshot *below = t->below;

	let_go(t);
	turn_leave(&t->turn);
	files_cancel(&t->files);
	journal_write_cancel(&t->write);
	list_remove(t);
	free(t->row.known);
	free(t->row.context);
	explicit_bzero(&t->row, sizeof(t->row));
	free(t);
	if (below)
		below->readers--;
	snapshot_release(below);
}

void takings_close(struct node *n)
{
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, 0, "node is being stopped");
	while (n->takings) {
		struct taking_user *u = n->takings->user;

		taking_free(n->takings);
		u->on_taken(u, NULL, &err);
	}
}

bool takings_need(const struct node *n, const char *base_id)
{
	for (const struct taking *t = n->takings; t; t = t->next)
		if (strcmp(t->row.base_id, base_id) == 0)
			return true;
	return false;
}

void taking_failed(struct taking *t, const struct err *why)
{
	struct taking_user *u = t->user;
	struct node *n = t->node;
	struct err err, named = *why;
	struct files_order o;

	files_name_room(n->files, &named);
	n->figures.snapshots_failed++;
	log_warn("%s: no snapshot of it: %s", t->row.source, named.msg);
	taking_order(t, FILES_SNAP_DROP, &o);
	if (files_ask(n->files, NULL, &o, NULL, &err) < 0) /* the next node does */
		log_error("drop snapshot %s: %s", t->row.id, err.msg);
	taking_free(t);
	u->on_taken(u, NULL, &named);
}

/* --- from files to a row ------------------------------------------------------------------ */

static void on_noted(struct journal_write *w, const struct err *failed)
{
	struct taking *t = CONTAINER_OF(w, struct taking, write);
	struct taking_user *u = t->user;
	struct snapshot *p;
	struct err err;

	if (failed) {
		taking_failed(t, failed);
		return;
	}
	step("snapshot.row");
	p = snapshots_add(t->node, &t->row);
	if (!p) { /* the next node has it */
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "a snapshot");
		taking_free(t);
		u->on_taken(u, NULL, &err);
		return;
	}
	p->verified = true;
	figures_took(&t->node->figures.snapshot, t->asked_ns);
	log_info("snapshot %s of %s: %" PRIu64 " KiB memory, %" PRIu64 " KiB disk, in %" PRIu64
		 " ms",
		 t->row.id, t->row.source, t->row.memory_bytes / 1024, t->row.disk_bytes / 1024,
		 (uint64_t)((clock_mono_ns() - t->asked_ns) / NSEC_PER_MSEC));
	taking_free(t);
	snapshots_rename_older(p);
	if (p->row.kind == JOURNAL_STEP)
		snapshots_trim_steps(p);
	catalog_snapshot_taken(p);
	u->on_taken(u, p, NULL);
}

static void on_kept(struct files_call *c, struct files_opened *got, const struct err *failed)
{
	struct taking *t = CONTAINER_OF(c, struct taking, files);
	struct err err;

	if (failed) {
		taking_failed(t, failed);
		return;
	}
	step("snapshot.renamed");
	t->row.memory_bytes = got->memory_bytes;
	t->row.disk_bytes = got->disk_bytes;
	if (journal_put_snapshot(t->node->journal, &t->write, &t->row, on_noted, &err) < 0)
		taking_failed(t, &err);
}

static void on_synced(struct files_call *c, struct files_opened *got, const struct err *failed)
{
	struct taking *t = CONTAINER_OF(c, struct taking, files);
	struct files_order o;
	struct err err;

	if (failed) {
		taking_failed(t, failed);
		return;
	}
	step("snapshot.synced");
	t->row.base_sums = got->base_sums;
	taking_order(t, FILES_SNAP_KEEP, &o);
	if (files_ask(t->node->files, &t->files, &o, on_kept, &err) < 0)
		taking_failed(t, &err);
}

static void on_turn(struct turn *turn)
{
	struct taking *t = CONTAINER_OF(turn, struct taking, turn);
	struct files_order o;
	struct err err;

	taking_order(t, FILES_SNAP_JOIN, &o);
	if (files_ask(t->node->files, &t->files, &o, on_synced, &err) < 0)
		taking_failed(t, &err);
}

static void on_all_copied(struct taking *t)
{
	step("snapshot.disk");
	turn_take(&t->node->joins, &t->turn, on_turn);
}

/* The row must have what its source knew of names: egress may be slower than a small disk. */
static void go_on(struct taking *t)
{
	if (!t->copied || network_learns(t->source))
		return;
	let_go(t);
	on_all_copied(t);
}

static void on_disk(struct disk_copy *d, const struct err *failed)
{
	struct taking *t = d->owner;
	struct err err;

	if (failed) {
		err = *failed; /* it goes with the copy */
		taking_failed(t, &err);
		return;
	}
	t->copied = true;
	go_on(t);
}

static void set_known(struct taking *t, const char *known)
{
	free(t->row.known);
	t->row.known = known ? strdup(known) : NULL; /* it can do without */
}

void taking_known(struct taking *t, const char *known)
{
	set_known(t, known);
	go_on(t);
}

void taking_copied(struct taking *t, struct sandbox *s, struct disk_copy *d)
{
	t->source = s;
	s->copying = t;
	t->disk = d;
	d->owner = t;
	set_known(t, s->network.known);
	disk_copy_finish(d, t->flat, on_disk);
}

void taking_lost(struct sandbox *s)
{
	struct err err;

	if (!s->copying)
		return;
	requests_not_found(s->info.id, &err);
	taking_failed(s->copying, &err);
}

/* --- the beginning ------------------------------------------------------------------------ */

/* What works on the sandbox's files is in line with its other jobs; the rest is not. */
void taking_order(const struct taking *t, enum files_verb verb, struct files_order *ret)
{
	bool of_sandbox = verb == FILES_SNAP_OPEN || verb == FILES_SNAP_PAUSED;

	*ret = (struct files_order){ .verb = verb,
				     .memory = t->row.kind != JOURNAL_STEP,
				     .blank_mib = t->blank_mib };
	memcpy(ret->id, of_sandbox ? t->row.source : t->row.id, sizeof(ret->id));
	memcpy(ret->template_id, t->row.base_id, sizeof(ret->template_id));
	if (t->below)
		memcpy(ret->snapshot_id, t->below->row.id, sizeof(ret->snapshot_id));
	memcpy(ret->into, t->row.id, sizeof(ret->into));
	ret->layer = t->row.layers;
	ret->base_sums = t->base_sums;
	base_fill_order(t->node, ret);
	ret->booted = t->booted;
	ret->host = t->host;
	ret->kernel = t->kernel;
}

static void describe_host(struct taking *t, const struct sandbox *s)
{
	t->base_sums = s->base_sums;
	t->blank_mib = s->blank ? s->info.memory_mib : 0;
	t->booted = s->host != NULL;
	if (!s->host)
		return;
	t->host = *s->host;
	t->kernel = s->kernel;
	t->host.vcpus = s->info.vcpus;
	t->host.memory_mib = s->info.memory_mib;
}

static void describe(struct taking *t, const struct sandbox *s, const struct taking_spec *spec)
{
	const struct node_request *rq = spec->name;
	struct journal_snapshot *r = &t->row;

	r->kind = spec->kind;
	snprintf(r->key, sizeof(r->key), "%s", spec->key ? spec->key : "");
	random_name(r->id, SNAPSHOT_ID_LENGTH);
	memcpy(r->team, s->info.team, sizeof(r->team));
	memcpy(r->base_id, s->base_id, sizeof(r->base_id));
	memcpy(r->parent, s->info.template_id, sizeof(r->parent));
	memcpy(r->source, s->info.id, sizeof(r->source));
	memcpy(r->control_token, s->control_token, sizeof(r->control_token));
	snprintf(r->name, sizeof(r->name), "%s", rq ? rq->template_id : "");
	snprintf(r->tag, sizeof(r->tag), "%s",
		 rq && rq->template_tag[0] ? rq->template_tag : SNAPSHOT_TAG);
	snprintf(r->token, sizeof(r->token), "%s", rq ? rq->token : "");
	r->created_ns = clock_wall_ns();
	r->vcpus = s->info.vcpus;
	r->memory_mib = s->info.memory_mib;
	r->disk_mib = s->info.disk_mib;
	r->layers = 1 + (s->snapshot ? s->snapshot->row.layers : 0);
	t->flat = s->state != SANDBOX_PAUSED && r->layers > s->node->set[SET_LAYERS_MAX].number;
	if (t->flat)
		r->layers = 1;
	r->hidden = (spec->kind == JOURNAL_SNAPSHOT && !rq) || spec->kind == JOURNAL_BUILD;
	set_known(t, s->network.known);
	describe_host(t, s);
	if (!s->snapshot)
		return;
	t->below = snapshot_hold(s->snapshot);
	t->below->readers++;
}

/* What was built into what it is a copy of was built into it, too. */
static int describe_context(struct taking *t, const struct taking_spec *spec, struct err *err)
{
	const char *text = spec->context ? spec->context : t->below ? t->below->row.context : NULL;

	t->row.context = text ? strdup(text) : NULL;
	return !t->row.context == !text ? 0 : err_set(err, ERR_EXHAUSTED, ENOMEM, "a snapshot");
}

static void on_paused_copied(struct files_call *c, struct files_opened *got,
			     const struct err *failed)
{
	struct taking *t = CONTAINER_OF(c, struct taking, files);

	base_learn(t->node, t->row.base_id, got);
	if (failed) {
		unloaded_note(t->node, LOST_SANDBOX, t->row.source, failed);
		taking_failed(t, failed);
	} else {
		on_all_copied(t);
	}
}

/* Its files are all there is of it, and stay as they are. */
static int copy_paused(struct sandbox *s, struct taking *t, struct err *err)
{
	struct files_order o;

	taking_order(t, FILES_SNAP_PAUSED, &o);
	o.state_crc = s->state_crc;
	o.disk_crc = s->disk_crc;
	return files_ask(t->node->files, &t->files, &o, on_paused_copied, err);
}

static int copy(struct sandbox *s, struct taking *t, struct err *err)
{
	if (s->state == SANDBOX_PAUSED)
		return copy_paused(s, t, err);
	return pause_for_copy(s, t, (enum journal_kind)t->row.kind, err);
}

int taking_begin(struct sandbox *s, const struct taking_spec *spec, struct taking_user *u,
		 struct err *err)
{
	struct node *n = s->node;
	struct taking *t;

	assert(s->state == SANDBOX_RUNNING ||
	       (s->state == SANDBOX_PAUSED && spec->kind != JOURNAL_STEP));
	if (s->state == SANDBOX_PAUSED && s->snapshot &&
	    s->snapshot->row.layers >= WARDEN_LAYERS_MAX)
		return err_set(err, ERR_INVALID, 0,
			       "its disk has %d layers already, as many as there may be: resume it "
			       "first, then they become one",
			       WARDEN_LAYERS_MAX);
	if (n->snapshots.n >= SNAPSHOTS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "this host holds %d snapshots, as it may",
			       SNAPSHOTS_MAX);
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a snapshot");
	*t = (struct taking){ .node = n, .user = u, .asked_ns = clock_mono_ns() };
	describe(t, s, spec);
	list_add(&n->takings, t);
	if (describe_context(t, spec, err) < 0 || copy(s, t, err) < 0) {
		taking_free(t);
		return -1;
	}
	return 0;
}

/* --- the verb ----------------------------------------------------------------------------- */

struct snapshot_asked {
	struct taking_user user;
	struct node *node;
	struct door_asked *asked;
};

static void on_taken(struct taking_user *u, struct snapshot *p, const struct err *failed)
{
	struct snapshot_asked *q = CONTAINER_OF(u, struct snapshot_asked, user);

	if (q->node->door && p)
		snapshot_answer(p, q->asked);
	else if (q->node->door)
		door_refuse(q->asked, failed);
	free(q);
}

static void take(struct sandbox *s, struct door_asked *a, const struct node_request *rq)
{
	struct snapshot_asked *q = calloc(1, sizeof(*q));
	struct err err;

	if (!q) {
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "a snapshot");
		door_refuse(a, &err);
		return;
	}
	*q = (struct snapshot_asked){ { on_taken }, s->node, a };
	if (taking_begin(s, &(struct taking_spec){ .name = rq }, &q->user, &err) < 0) {
		free(q);
		door_refuse(a, &err);
	}
}

void snapshot_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		  struct bytes text)
{
	struct err err;
	struct sandbox *s = requests_to_copy(n, rq, &err);

	(void)text;
	if (!s)
		ended_refuse(n, a, rq, &err);
	else if (requests_copies_now(s, rq))
		take(s, a, rq);
	else
		deferred_add(s, a, rq);
}
