/* refreeze.c - which builds do not fit this host, whose turn it is, and what becomes of them. */
/* #syscalls: openat2 close */
#include "node/build/refreeze.h"

#include <assert.h>
#include <fcntl.h>

#include "base/folder.h"
#include "base/log.h"
#include "node/build/builds.h"
#include "node/node.h"
#include "vm/manifest_check.h"

/* --- states ------------------------------------------------------------------------------- */

static void enter(struct build *b, enum refreeze_state to)
{
	static const bool legal[REFREEZE_STATES][REFREEZE_STATES] = {
		[REFREEZE_NONE] = { [REFREEZE_DUE] = true },
		[REFREEZE_DUE] = { [REFREEZE_NONE] = true, [REFREEZE_RUNNING] = true },
		[REFREEZE_RUNNING] = { [REFREEZE_NONE] = true,
				       [REFREEZE_DUE] = true,
				       [REFREEZE_RESTING] = true,
				       [REFREEZE_FAILED] = true },
		[REFREEZE_RESTING] = { [REFREEZE_NONE] = true, [REFREEZE_DUE] = true },
		[REFREEZE_FAILED] = { [REFREEZE_NONE] = true, [REFREEZE_DUE] = true },
	};

	assert(b->refreeze.state == to || legal[b->refreeze.state][to]);
	b->refreeze.state = to;
}

const char *refreeze_name(const struct build *b)
{
	static const char *const names[REFREEZE_STATES] = {
		[REFREEZE_DUE] = "to be frozen again",
		[REFREEZE_RUNNING] = "freezing again",
		[REFREEZE_RESTING] = "freezing again",
		[REFREEZE_FAILED] = "not frozen again",
	};

	return names[b->refreeze.state];
}

static struct node *node_of(const struct build *b)
{
	return b->template->node;
}

/* --- which do not fit --------------------------------------------------------------------- */

/* What a tag names and a build made. What was taken of somebody's sandbox has processes that no
 * command brings back. */
static bool is_ours(const struct build *b)
{
	return b->held && b->snapshot && b->row.status == BUILD_READY && !b->template->going &&
	       b->snapshot->row.kind == JOURNAL_BUILD;
}

enum fit { FIT, FIT_OLD_KERNEL, FIT_NOT };

static enum fit compare(const struct build *b, const struct manifest *m, struct err *ret_why)
{
	const struct node *n = node_of(b);
	const struct manifest *base = &n->base.manifest;
	enum manifest_reason reason;
	struct manifest_facts here;

	base_facts_sized(n, b->snapshot->row.vcpus, b->snapshot->row.memory_mib, &here);
	if (manifest_check(m, &here, &reason, ret_why) < 0)
		return FIT_NOT;
	if (checksum_eq(&m->files[MANIFEST_KERNEL_FILE], &base->files[MANIFEST_KERNEL_FILE]))
		return FIT;
	err_set(ret_why, ERR_MISMATCH, 0, "kernel: made with \"%.80s\", here \"%.80s\"",
		m->made_with.kernel_version, base->made_with.kernel_version);
	return FIT_OLD_KERNEL;
}

/* One that cannot be read fits: whoever loads it says what is wrong with it. */
static enum fit fits(const struct build *b, struct err *ret_why)
{
	int all = files_snapshots(node_of(b)->files);
	AUTO(auto_close)
	int folder = folder_open(all, b->snapshot->row.id, O_RDONLY | O_DIRECTORY, 0, ret_why);
	struct manifest m;

	if (folder < 0 || template_manifest_read(folder, &m, ret_why) < 0)
		return FIT;
	return compare(b, &m, ret_why);
}

static void look_at(struct build *b)
{
	struct refreeze *f = &b->refreeze;
	enum fit fit;

	if (f->state == REFREEZE_RUNNING) /* it is looked at when that ended */
		return;
	f->looked = node_of(b)->refreezes.number;
	f->tries = f->waits = 0;
	f->wanted = false;
	fit = fits(b, &f->why);
	b->snapshot->unfit = fit == FIT_NOT;
	f->serves = fit == FIT_OLD_KERNEL;
	enter(b, fit == FIT ? REFREEZE_NONE : REFREEZE_DUE);
	if (fit != FIT)
		log_info("template %s: build %s is to be frozen again: %s", b->template->row.id,
			 b->row.id, f->why.msg);
}

static bool is_looked_at(const struct build *b)
{
	return !is_ours(b) || b->refreeze.state == REFREEZE_RUNNING ||
	       b->refreeze.looked == node_of(b)->refreezes.number;
}

/* How many were looked at, of those that were not yet. */
static size_t look_at_some(const struct node *n)
{
	size_t done = 0;

	for (struct template *t = n->catalog.all; t; t = t->next)
		for (struct build *b = t->builds; b && done < REFREEZE_LOOKS; b = b->next)
			if (!is_looked_at(b)) {
				look_at(b);
				done++;
			}
	return done;
}

/* --- whose turn it is --------------------------------------------------------------------- */

static uint64_t used_ns(const struct build *b)
{
	uint64_t spawned = b->template->row.spawned_ns;

	return spawned > b->row.finished_ns ? spawned : b->row.finished_ns;
}

static bool is_before(const struct build *a, const struct build *b)
{
	if (a->refreeze.serves != b->refreeze.serves)
		return b->refreeze.serves;
	return used_ns(a) > used_ns(b);
}

static bool may_work(const struct node *n)
{
	return n->base.state == BASE_READY && node_links_up(n) && !n->stopping;
}

struct build *refreeze_next(const struct node *n, bool wanted)
{
	struct build *best = NULL;

	if (!may_work(n))
		return NULL;
	for (struct template *t = n->catalog.all; t; t = t->next)
		for (struct build *b = t->builds; b; b = b->next)
			if (b->refreeze.state == REFREEZE_DUE && (!wanted || b->refreeze.wanted) &&
			    (!best || is_before(b, best)))
				best = b;
	return best;
}

/* Those that have rested are due. In how many ms the next one is; 0: none rests. */
static uint64_t wake(const struct node *n)
{
	uint64_t now = loop_now_ms(n->loop), first = 0;

	for (struct template *t = n->catalog.all; t; t = t->next)
		for (struct build *b = t->builds; b; b = b->next) {
			const struct refreeze *f = &b->refreeze;

			if (f->state != REFREEZE_RESTING)
				continue;
			if (f->rests_until_ms <= now)
				enter(b, REFREEZE_DUE);
			else if (!first || f->rests_until_ms - now < first)
				first = f->rests_until_ms - now;
		}
	return first;
}

static void turn(struct timer *t)
{
	struct node *n = CONTAINER_OF(t, struct node, refreezes.turn);
	uint64_t next;

	if (!may_work(n))
		return; /* whoever makes it so says it */
	if (look_at_some(n) > 0) {
		timer_start(t, 0);
		return;
	}
	next = wake(n);
	if (next > 0)
		timer_start(t, next);
	builds_more(n);
}

void refreezes_soon(struct node *n)
{
	timer_start(&n->refreezes.turn, 0);
}

void refreezes_host_known(struct node *n)
{
	n->refreezes.number++;
	refreezes_soon(n);
}

void refreezes_open(struct node *n)
{
	timer_init(&n->refreezes.turn, n->loop, turn);
}

void refreezes_close(struct node *n)
{
	timer_stop(&n->refreezes.turn);
}

/* --- what creates ask --------------------------------------------------------------------- */

static struct build *build_of(const struct snapshot *p)
{
	return p->build && p->build->snapshot == p && is_ours(p->build) ? p->build : NULL;
}

struct snapshot *refreeze_instead(const struct snapshot *p)
{
	const struct build *b = p->row.kind == JOURNAL_BUILD ? p->build : NULL;

	return b && b->snapshot != p && b->held ? b->snapshot : NULL;
}

bool refreeze_doubt(struct snapshot *p)
{
	struct build *b = build_of(p);

	if (b)
		b->refreeze.looked = 0;
	return b;
}

static void say_failed(const struct build *b, struct err *err)
{
	err_set(err, ERR_MISMATCH, 0,
		"template %.63s was frozen by another QEMU or processor, and not again: %.100s; "
		"\"memory\": false boots from its disk",
		b->template->row.name, b->refreeze.why.msg);
}

enum refreeze_answer refreeze_ask(struct snapshot *p, struct err *err)
{
	struct build *b = build_of(p);
	struct refreeze *f = b ? &b->refreeze : NULL;

	if (b && !is_looked_at(b))
		look_at(b);
	if (!b || f->state == REFREEZE_NONE || f->serves)
		return REFREEZE_GO;
	if (f->state == REFREEZE_FAILED || (f->state == REFREEZE_RESTING && !f->passing)) {
		say_failed(b, err);
		return REFREEZE_REFUSE;
	}
	if (!f->wanted) {
		f->rests_until_ms = 0;
		refreezes_soon(node_of(b));
	}
	f->wanted = true;
	return REFREEZE_WAIT;
}

/* --- how it goes -------------------------------------------------------------------------- */

void refreeze_begun(struct build *b)
{
	struct err err;

	enter(b, REFREEZE_RUNNING);
	log_info("template %s: build %s is frozen again", b->template->row.id, b->row.id);
	if (build_log_reopen(&b->log, node_of(b)->catalog.builds_dir, b->row.id, &err) < 0)
		log_warn("build %s: nothing is added to its log: %s", b->row.id, err.msg);
}

void refreeze_dropped(struct build *b)
{
	build_log_close(&b->log);
	enter(b, REFREEZE_DUE);
}

static uint64_t rest_ms(const struct refreeze *f)
{
	if (!f->passing)
		return (uint64_t)REFREEZE_AGAIN_MS << (2 * f->tries);
	return (uint64_t)REFREEZE_AGAIN_MS
	       << (f->waits < REFREEZE_WAITS ? f->waits : REFREEZE_WAITS);
}

void refreeze_failed(struct build *b, const struct err *why)
{
	struct node *n = node_of(b);
	struct refreeze *f = &b->refreeze;

	build_log_close(&b->log);
	f->why = *why;
	f->passing = why->code == ERR_EXHAUSTED || why->code == ERR_NO_SPACE || !may_work(n);
	log_warn("template %s: build %s was not frozen again: %s", b->template->row.id, b->row.id,
		 why->msg);
	f->rests_until_ms = loop_now_ms(n->loop) + rest_ms(f);
	f->tries += !f->passing;
	f->waits = f->passing ? f->waits + 1 : 0;
	f->wanted = f->wanted && f->passing;
	enter(b, f->tries < REFREEZE_TRIES_MAX ? REFREEZE_RESTING : REFREEZE_FAILED);
	creates_soon(n);
	refreezes_soon(n);
}

static void on_switched(struct journal_write *w, const struct err *failed)
{
	struct build *b = CONTAINER_OF(w, struct build, write);
	struct refreeze *f = &b->refreeze;
	struct snapshot *p = TAKE(f->next);
	struct node *n = node_of(b);

	if (failed) {
		refreeze_failed(b, failed);
		snapshot_release(p); /* it is hidden, and goes */
		return;
	}
	log_info("template %s: build %s is frozen again: snapshot %s in the place of %s",
		 b->template->row.id, b->row.id, p->row.id, b->row.snapshot_id);
	enter(b, REFREEZE_NONE);
	f->looked = 0; /* the host may have been replaced meanwhile */
	build_replace(b, p);
	snapshot_release(p);
	creates_soon(n);
	refreezes_soon(n);
}

void refreeze_done(struct build *b, struct snapshot *p)
{
	struct journal_build row = b->row;
	struct err err;

	build_log_close(&b->log);
	b->refreeze.next = snapshot_hold(p);
	memcpy(row.snapshot_id, p->row.id, sizeof(row.snapshot_id));
	row.disk_mib = p->row.disk_mib;
	if (journal_put_template(node_of(b)->journal, &b->write, NULL, &row, on_switched, &err) < 0)
		on_switched(&b->write, &err);
}

void refreeze_forget(struct build *b)
{
	struct snapshot *next = TAKE(b->refreeze.next);

	if (b->refreeze.state == REFREEZE_NONE)
		return;
	if (next)
		journal_write_cancel(&b->write);
	builds_drop(node_of(b), b);
	build_log_close(&b->log);
	enter(b, REFREEZE_NONE);
	b->refreeze.looked = 0;
	snapshot_release(next);
}
