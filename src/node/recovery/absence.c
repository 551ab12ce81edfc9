/* absence.c - who is missed, for how long, and when to believe it. */
#include "node/recovery/absence.h"

#include "base/list.h"
#include "base/log.h"
#include "node/life/end.h"
#include "node/node.h"

/* Its QEMU talks to us, whatever warden's list says. */
static bool lives(const struct sandbox *s)
{
	return s->monitor.up && s->machine.qmp;
}

static bool is_absent(const struct sandbox *s)
{
	return reconcile_wants_vm(s) && s->seen < s->node->reconcile.number;
}

/* Those of an earlier boot end, the others are marked. */
static void mark(struct node *n, size_t *ret_absent, size_t *ret_all)
{
	uint64_t now = loop_now_ms(n->loop);

	list_each(struct sandbox, s, n->table.all) {
		*ret_all += reconcile_wants_vm(s);
		if (!is_absent(s))
			continue;
		if (s->absent.other_boot) {
			sandbox_end(s, NODE_LOST, "the host was booted since");
			continue;
		}
		if (!(s->info.flags & NODE_ABSENT))
			s->absent.since_ms = now;
		s->info.flags |= NODE_ABSENT;
		(*ret_absent)++;
	}
}

enum absent_end absent_end_of(const struct absent *a, bool lives, uint64_t now_ms, size_t n_absent,
			      size_t n_all)
{
	if (a->kept)
		return ABSENT_KEPT;
	if (n_absent <= ABSENT_AT_ONCE_MAX && !lives)
		return ABSENT_LOST;
	if (now_ms - a->since_ms < ABSENT_AGAIN_MS)
		return ABSENT_WAITS;
	return lives || n_absent * ABSENT_SHARE > n_all ? ABSENT_KEPT : ABSENT_LOST;
}

static bool is_lost(struct sandbox *s, size_t n_absent, size_t n_all)
{
	enum absent_end end =
		absent_end_of(&s->absent, lives(s), loop_now_ms(s->node->loop), n_absent, n_all);

	s->absent.kept = end == ABSENT_KEPT;
	return end == ABSENT_LOST;
}

/* One that does not run has no timer for it. */
static bool time_is_over(const struct sandbox *s)
{
	return s->state == SANDBOX_WAKING && !(s->info.flags & NODE_AUTO_PAUSE) &&
	       lease_left_ns(&s->lease, lease_clock()) == 0;
}

static void tell(const struct node *n, const struct absence *before, size_t n_all)
{
	const struct absence *a = &n->absence;

	if (a->n == before->n && a->n_kept == before->n_kept)
		return;
	if (a->n_kept > 0)
		log_error("%zu of %zu sandboxes that run have no VM in warden's list, %zu of them "
			  "wait for an operator: are warden's state_dir and cgroup right? "
			  "`hotcell confirm-lost` ends them",
			  a->n, n_all, a->n_kept);
	else if (a->n > 0)
		log_warn("%zu of %zu sandboxes that run have no VM in warden's list: they wait for "
			 "another look in %d s",
			 a->n, n_all, ABSENT_AGAIN_MS / 1000);
	else
		log_info("no sandbox lacks its VM any more");
}

void absence_judge(struct node *n)
{
	const struct absence before = n->absence;
	size_t n_absent = 0, n_all = 0;

	n->absence = (struct absence){ 0 };
	mark(n, &n_absent, &n_all);
	list_each(struct sandbox, s, n->table.all) {
		if (!is_absent(s))
			continue;
		if (is_lost(s, n_absent, n_all)) {
			sandbox_end(s, NODE_LOST, "its VM is gone");
		} else if (time_is_over(s)) {
			sandbox_end(s, NODE_LIFETIME, "its time is over");
		} else {
			n->absence.n++;
			n->absence.n_kept += s->absent.kept;
		}
	}
	tell(n, &before, n_all);
}

void absence_over(struct sandbox *s)
{
	if (!(s->info.flags & NODE_ABSENT))
		return;
	log_info("%s: its VM is in warden's list again", s->info.id);
	s->info.flags &= ~(uint32_t)NODE_ABSENT;
	s->absent = (struct absent){ 0 };
}

int absence_check(const struct sandbox *s, struct err *err)
{
	if (!(s->info.flags & NODE_ABSENT))
		return 0;
	return err_set(
		err, ERR_UNAVAILABLE, 0,
		"the host does not find the VM of sandbox %s at the moment: it is kept until "
		"it is certain that it is lost",
		s->info.id);
}

int absence_describe(const struct node *n, json_t *status)
{
	const struct absence *a = &n->absence;

	return json_object_set_new(status, "installation",
				   json_text(bytes_str(n->installation.id))) |
	       json_object_set_new(status, "vmsOfOthers",
				   json_integer((json_int_t)n->reconcile.n_others)) |
	       json_object_set_new(status, "vmsAbsent", json_integer((json_int_t)a->n)) |
	       json_object_set_new(status, "vmsToConfirm", json_integer((json_int_t)a->n_kept));
}

void absence_confirm(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	struct node_reply r = { 0 };

	(void)rq, (void)text;
	list_each(struct sandbox, s, n->table.all) {
		if (!reconcile_wants_vm(s) || !(s->info.flags & NODE_ABSENT))
			continue;
		sandbox_end(s, NODE_LOST, "an operator says that it is lost");
		r.count++;
	}
	n->absence = (struct absence){ 0 };
	door_answer(a, &r, (struct bytes){ 0 }, NULL, 0);
}
