/* requests.c - each verb of a gateway: what it needs, what it answers. */
#include "node/life/requests.h"

#include <errno.h>

#include "base/list.h"
#include "base/clock.h"
#include "node/life/admission.h"
#include "node/life/end.h"
#include "node/catalog/template_verbs.h"
#include "node/life/fork.h"
#include "node/recovery/lost_verbs.h"
#include "node/network/network_secrets.h"
#include "node/node.h"
#include "node/life/pause.h"
#include "node/life/pools_text.h"
#include "node/life/ready.h"
#include "node/life/requests_paused.h"
#include "node/life/sandbox_row.h"
#include "node/life/snapshot_steps.h"
#include "node/life/snapshot_take.h"
#include "node/life/deferred.h"
#include "node/network/network_verbs.h"
#include "wire/port_pass.h"

enum { LIST_ENTRIES_MAX = 256 };

struct node_job { /* a request whose answer waits for warden or the journal */
	struct node *node;
	struct door_asked *asked;
	struct journal_write write;
	struct guest_sockets sockets;
	struct node_reply reply;
	char *text; /* follows the reply; NULL: none */
	struct node_job *next, **prev;
};

static struct node_job *job_add(struct node *n, struct door_asked *asked, const struct sandbox *s)
{
	struct node_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->node = n;
	j->asked = asked;
	j->reply.sandbox = sandbox_told(s);
	list_add(&n->jobs, j);
	return j;
}

static void job_free(struct node_job *j)
{
	journal_write_cancel(&j->write);
	guest_sockets_cancel(&j->sockets);
	list_remove(j);
	free(j->text);
	free(j);
}

static void refuse_memory(struct door_asked *a)
{
	struct err err;

	err_set(&err, ERR_EXHAUSTED, ENOMEM, "answer a request");
	door_refuse(a, &err);
}

static struct bytes text_of(const struct sandbox *s)
{
	return s->text ? bytes_str(s->text) : (struct bytes){ 0 };
}

int requests_not_found(const char *id, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, 0,
		       "Sandbox \"%s\" doesn't exist or you don't have access to it", id);
}

/* A sandbox of the team, in any state in which the team knows of it. No team: an operator asks. */
struct sandbox *requests_find(struct node *n, const struct node_request *rq, struct err *err)
{
	struct sandbox *s = table_find(&n->table, rq->id);
	bool known = s && (s->team || s->state == SANDBOX_ENDING);
	bool may = s && (!rq->team[0] || strcmp(s->info.team, rq->team) == 0);

	if (known && s->info.started_ns > 0 && may)
		return s;
	if (!quarantine_tells(n, rq, err) && !aside_tells(n, LOST_SANDBOX, rq->team, rq->id, err))
		requests_not_found(rq->id, err);
	return NULL;
}

struct sandbox *requests_alive(struct node *n, const struct node_request *rq, struct err *err)
{
	struct sandbox *s = requests_find(n, rq, err);

	if (s && s->state != SANDBOX_ENDING)
		return s;
	if (s)
		requests_not_found(rq->id, err);
	return NULL;
}

/* --- the verbs ---------------------------------------------------------------------------- */

static void verb_get(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	struct err err;
	const struct sandbox *s = requests_alive(n, rq, &err);

	(void)text;
	if (!s)
		ended_refuse(n, a, rq, &err);
	else
		door_answer(a, &(struct node_reply){ .sandbox = sandbox_told(s) }, text_of(s), NULL,
			    0);
}

static void verb_kill(struct node *n, struct door_asked *a, const struct node_request *rq,
		      struct bytes text)
{
	struct err err;
	struct sandbox *s = requests_find(n, rq, &err);

	(void)text;
	if (!s && !rq->team[0])
		s = quarantine_give_up(n, rq->id, &err);
	if (s)
		sandbox_end_asked(s, a, rq->team[0] ? NODE_KILLED : NODE_EVICTED);
	else
		ended_refuse(n, a, rq, &err);
}

/* --- longer, shorter ---------------------------------------------------------------------- */

static void on_touched(struct journal_write *w, const struct err *err)
{
	struct node_job *j = CONTAINER_OF(w, struct node_job, write);

	if (err)
		door_refuse(j->asked, err);
	else
		door_answer(j->asked, &j->reply, j->text ? bytes_str(j->text) : (struct bytes){ 0 },
			    NULL, 0);
	job_free(j);
}

/* The lease was moved: noted, then answered. */
static void note_lease(struct sandbox *s, struct door_asked *a, bool with_text)
{
	struct node_job *j;
	struct err err;

	sandbox_set_deadline(s);
	events_add(&s->record.events, EVENT_INFO, "timeout", "Sandbox ends in %u seconds",
		   (uint32_t)(lease_left_ns(&s->lease, lease_clock()) / NSEC_PER_SEC));
	j = job_add(s->node, a, s);
	if (!j || (with_text && s->text && !(j->text = strdup(s->text)))) {
		if (j)
			job_free(j);
		refuse_memory(a);
		return;
	}
	if (sandbox_note(s, &j->write, JOURNAL_RUNNING, on_touched, &err) < 0)
		on_touched(&j->write, &err);
}

/* False: it would be shorter, and may not be. */
static bool move_lease(struct sandbox *s, uint32_t timeout_s, bool may_shorten)
{
	struct lease_now now = lease_clock();
	uint64_t max_s = s->node->set[SET_TIMEOUT_MAX_S].number;

	if (!lease_move(&s->lease, now, timeout_s, max_s, may_shorten))
		return false;
	s->info.end_ns = lease_end_wall(&s->lease, now);
	return true;
}

/* One that is paused has no end. */
static int rest_check(const struct sandbox *s, struct err *err)
{
	if (s->info.state != NODE_PAUSED || s->resuming)
		return 0;
	return err_set(err, ERR_EXISTS, 0, "Sandbox %s is paused", s->info.id);
}

static void verb_timeout(struct node *n, struct door_asked *a, const struct node_request *rq,
			 struct bytes text)
{
	struct err err;
	struct sandbox *s = requests_alive(n, rq, &err);

	(void)text;
	if (!s || rest_check(s, &err) < 0) {
		ended_refuse(n, a, rq, &err);
	} else if (s->state != SANDBOX_RUNNING) {
		deferred_add(s, a, rq);
	} else {
		(void)move_lease(s, rq->timeout_s, true);
		note_lease(s, a, false);
	}
}

/* It runs: longer, never shorter. */
static void prolong(struct sandbox *s, struct door_asked *a, const struct node_request *rq)
{
	if (move_lease(s, rq->timeout_s, false))
		note_lease(s, a, true);
	else
		door_answer(a, &(struct node_reply){ .sandbox = sandbox_told(s) }, text_of(s), NULL,
			    0);
}

/* Also NODE_RESUME. */
static void verb_connect(struct node *n, struct door_asked *a, const struct node_request *rq,
			 struct bytes text)
{
	struct err err;
	struct sandbox *s = requests_alive(n, rq, &err);

	(void)text;
	if (s && lease_check(rq->timeout_s, n->set[SET_TIMEOUT_MAX_S].number, &err) < 0)
		s = NULL;
	if (s && s->state == SANDBOX_RUNNING && rq->verb == NODE_RESUME) {
		err_set(&err, ERR_EXISTS, 0, "Sandbox %s is already running", rq->id);
		s = NULL;
	}
	if (!s)
		ended_refuse(n, a, rq, &err);
	else if (s->state == SANDBOX_RUNNING)
		prolong(s, a, rq);
	else
		requests_resume(s, a, rq);
}

/* --- lists -------------------------------------------------------------------------------- */

static bool add_entry(struct buf *out, const struct sandbox *s, bool usage)
{
	AUTO(buf_done) struct buf point = BUF_MAX(METRICS_POINT_TEXT);
	struct bytes text = text_of(s);
	struct node_entry e = { .sandbox = sandbox_told(s) };
	struct err err;

	if (usage)
		text = metrics_put_latest(s, &point, &err) == 0 ? buf_view(&point)
								: (struct bytes){ 0 };
	e.text_len = (uint32_t)text.len;
	if (out->len + sizeof(e) + e.text_len > out->max)
		return false;
	return buf_add(out, (struct bytes){ (const uint8_t *)&e, sizeof(e) }, &err) == 0 &&
	       buf_add(out, text, &err) == 0;
}

static void verb_list(struct node *n, struct door_asked *a, const struct node_request *rq,
		      struct bytes text)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_MESSAGE_MAX - sizeof(struct node_reply));
	struct node_reply r = { 0 };
	size_t all = 0;
	struct sandbox *const *s = table_after(&n->table, rq->team, rq->after_ns, rq->id, &all);

	(void)text;
	while (r.count < all && r.count < LIST_ENTRIES_MAX &&
	       add_entry(&out, s[r.count], rq->flags & NODE_USAGE))
		r.count++;
	door_answer(a, &r, buf_view(&out), NULL, 0);
}

static void verb_templates(struct node *n, struct door_asked *a, const struct node_request *rq,
			   struct bytes text)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_TEXT_MAX);
	struct err err;

	(void)text;
	if (base_describe(n, !rq->team[0], &out, &err) < 0)
		door_refuse(a, &err);
	else
		door_answer(a, &(struct node_reply){ 0 }, buf_view(&out), NULL, 0);
}

/* They are in nobody's list; who looks for what is left over must know them. */
static json_t *pooled_json(const struct node *n)
{
	json_t *ids = json_array();

	for (const struct sandbox *s = n->table.all; ids && s; s = s->next)
		if (s->state == SANDBOX_WAITING)
			json_array_append_new(ids, json_text(bytes_str(s->info.id)));
	return ids;
}

/* What is promised, of what may be, and what is there. */
static int add_memory(const struct node *n, json_t *status)
{
	return json_object_set_new(status, "memoryAvailableMB",
				   json_integer((json_int_t)n->memory.available_mib)) |
	       json_object_set_new(status, "memoryPromisedMB",
				   json_integer((json_int_t)admission_promised_mib(n))) |
	       json_object_set_new(status, "memoryPromisedMaxMB",
				   json_integer((json_int_t)admission_promise_max_mib(n)));
}

/* VMs that are node's own: of builders, and of what templates are built with. */
static json_t *builders_json(const struct node *n)
{
	json_t *ids = json_array();

	for (const struct sandbox *s = n->table.all; s; s = s->next)
		if ((s->info.flags & NODE_BUILDER) && s->state != SANDBOX_ENDING)
			(void)json_array_append_new(ids, json_text(bytes_str(s->info.id)));
	if (n->base.build)
		(void)json_array_append_new(ids,
					    json_text(bytes_str(template_build_vm(n->base.build))));
	if (n->grounds.build)
		(void)json_array_append_new(
			ids, json_text(bytes_str(template_build_vm(n->grounds.build))));
	return ids;
}

static json_t *status_json(const struct node *n)
{
	const struct warden_facts *f = &n->warden.facts;

	return json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:o, s:o, s:b, s:b, s:b, s:I, "
		"s:o, s:o, s:I, s:o, s:o, s:o}",
		"sandboxes", (json_int_t)n->table.in_state[SANDBOX_RUNNING], "paused",
		(json_int_t)(n->table.in_state[SANDBOX_PAUSED] +
			     n->table.in_state[SANDBOX_PARKING]),
		"pausedMax", (json_int_t)n->set[SET_PAUSED_MAX].number, "saving",
		(json_int_t)n->table.in_state[SANDBOX_PAUSING], "pooled",
		(json_int_t)n->table.in_state[SANDBOX_WAITING], "sandboxesMax",
		(json_int_t)n->set[SET_SANDBOXES_MAX].number, "waiting", (json_int_t)n->creates.n,
		"ending", (json_int_t)n->table.in_state[SANDBOX_ENDING], "emulated",
		(int)f->emulated, "accel", json_text(bytes_str(f->accel)), "qemu",
		json_text(bytes_str(f->vmm_version)), "warden", (int)n->warden.link.up, "egress",
		(int)n->egress.up, "injector",
		(int)(n->injector.link.up && link_exists(&n->injector.link)), "slotsReady",
		(json_int_t)n->slots.n_ready, "pooledIDs", pooled_json(n), "builderIDs",
		builders_json(n), "quarantined", (json_int_t)n->quarantine.n, "quarantine",
		quarantine_json(n), "templatesLost", base_lost_ids(n), "sharedTeam",
		json_text(bytes_str(n->set[SET_SHARED_TEAM].text)));
}

/* Which build each daemon is that node asks, and what keeps them from understanding each other. */
static int add_versions(const struct node *n, json_t *status)
{
	const struct link *const links[] = { &n->warden.link, &n->egress, &n->injector.link,
					     &n->images.link };
	static const char *const names[] = { "warden", "egress", "injector", "images" };
	json_t *versions = json_object(), *mismatches = json_array();
	int failed = json_object_set_new(versions, "node", json_text(bytes_str(link_build)));
	struct err err;

	for (size_t i = 0; i < COUNT(links); i++) {
		const char *build = links[i]->peer.build;

		failed |= json_object_set_new(versions, names[i],
					      build[0] ? json_text(bytes_str(build)) : json_null());
		if (links[i]->mismatch)
			link_why(links[i], &err);
		if (links[i]->mismatch)
			failed |= json_array_append_new(mismatches, json_text(bytes_str(err.msg)));
	}
	return failed | json_object_set_new(status, "versions", versions) |
	       json_object_set_new(status, "mismatches", mismatches);
}

static int add_number(json_t *to, const char *name, uint64_t n)
{
	return json_object_set_new(to, name, json_integer((json_int_t)n));
}

/* Whether images can be fetched (null: no daemon was configured), what is built, what is kept. */
static int add_builds(const struct node *n, json_t *status)
{
	const struct steps_kept steps = snapshots_steps(n);
	json_t *images =
		link_exists(&n->images.link) ? json_boolean(n->images.link.up) : json_null();

	return json_object_set_new(status, "images", images) |
	       add_number(status, "buildsRunning", builds_running(n)) |
	       add_number(status, "buildsWaiting", builds_waiting(n)) |
	       add_number(status, "buildsMax", n->set[SET_BUILDS_MAX].number) |
	       add_number(status, "steps", steps.n) |
	       add_number(status, "stepsBytes", steps.bytes) |
	       add_number(status, "stepsMaxBytes", n->set[SET_STEPS_MIB].number << 20) |
	       template_use_describe(n, status);
}

/* Where things are on this host: for who looks for what is left over, or at the disks. */
static int add_places(const struct node *n, json_t *status)
{
	const struct warden_facts *f = &n->warden.facts;
	json_t *places = json_pack("{s:o, s:o, s:o}", "stateDir",
				   json_text(bytes_str(n->set[SET_STATE_DIR].text)), "dataDir",
				   json_text(bytes_str(n->set[SET_DATA_DIR].text)), "cgroup",
				   json_text(bytes_str(n->set[SET_CGROUP].text)));
	int failed = 0;

	if (f->uids > 0) /* warden has said it, and is new enough to */
		failed = add_number(places, "uidBase", f->uid_base) |
			 add_number(places, "uids", f->uids);
	return failed | json_object_set_new(status, "places", places);
}

static void verb_status(struct node *n, struct door_asked *a, const struct node_request *rq,
			struct bytes text)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_TEXT_MAX);
	AUTO(json_decrefp) json_t *v = status_json(n);
	struct err err;

	(void)rq, (void)text;
	lost_status(n, v);
	if (!v || add_memory(n, v) != 0 || pools_describe(n, v) != 0 || add_versions(n, v) != 0 ||
	    add_builds(n, v) != 0 || add_places(n, v) != 0 || absence_describe(n, v) < 0)
		refuse_memory(a);
	else if (json_encode(v, &out, &err) < 0)
		door_refuse(a, &err);
	else
		door_answer(a, &(struct node_reply){ 0 }, buf_view(&out), NULL, 0);
}

/* --- sockets ------------------------------------------------------------------------------ */

static void on_sockets(struct guest_sockets *g, int *fds, const struct err *failed)
{
	struct node_job *j = CONTAINER_OF(g, struct node_job, sockets);
	const struct sandbox *s = table_find(&j->node->table, j->reply.sandbox.id);
	struct node_request again = { .verb = NODE_SOCKETS, .count = j->reply.count };
	int given[NODE_FDS_MAX];

	if (!s || !s->team || s->info.generation != j->reply.sandbox.generation) {
		memcpy(again.id, j->reply.sandbox.id, sizeof(again.id));
		/* it ended or paused meanwhile */
		requests_again(j->node, j->asked, &again, (struct bytes){ 0 });
	} else if (failed) {
		door_refuse(j->asked, failed);
	} else {
		for (size_t i = 0; i < j->reply.count; i++)
			given[i] = take_fd(&fds[i]);
		j->reply.sandbox = sandbox_told(s);
		door_answer(j->asked, &j->reply,
			    s->info.flags & NODE_INGRESS ? text_of(s) : (struct bytes){ 0 }, given,
			    j->reply.count);
	}
	job_free(j);
}

/* A paused sandbox wants to see the token of the port that is asked for. This is decided when it is
 * asked: who has to wait is asked for again without his text, and with neither flag. */
static bool token_right(const struct sandbox *s, const struct node_request *rq, struct bytes text)
{
	bool private = rq->flags & s->info.flags & NODE_PRIVATE;
	const char *token = rq->flags & NODE_TO_AGENT ? s->info.access_token
			    : private                 ? s->info.traffic_token
						      : "";
	struct port_pass pass;

	return token[0] == '\0' || bytes_eq_secret(text, bytes_str(token)) ||
	       (private && port_pass_right(text, s->info.id, bytes_str(token),
					   clock_wall_ns() / NSEC_PER_SEC, &pass));
}

static void verb_sockets(struct node *n, struct door_asked *a, const struct node_request *rq,
			 struct bytes text)
{
	struct sandbox *s = table_find(&n->table, rq->id);
	struct node_request checked = *rq;
	struct node_job *j;
	struct err err;

	if (!s || !s->team || absence_check(s, &err) < 0) {
		if (!s || !s->team)
			requests_not_found(rq->id, &err);
		door_refuse(a, &err);
		return;
	}
	if (s->state != SANDBOX_RUNNING && !pause_waits(s)) {
		if (token_right(s, rq, text))
			checked.flags &= ~((uint32_t)NODE_TO_AGENT | (uint32_t)NODE_PRIVATE);
		requests_traffic(s, a, &checked);
		return;
	}
	j = job_add(n, a, s);
	if (!j) {
		refuse_memory(a);
		return;
	}
	j->reply.count = rq->count; /* 1 to NODE_FDS_MAX: request_check.c */
	guest_sockets_ask(&j->sockets, &n->warden, s->info.id, rq->count, NODE_SOCKETS_WAIT_MS,
			  on_sockets);
}

/* --- the table ---------------------------------------------------------------------------- */

static verb_fn *const verbs[] = {
#define VERB(verb, needs, serve) serve,
#include "node/verbs.def"
};

static void on_request(struct door_user *u, struct door_asked *a, const struct node_request *rq,
		       struct bytes text)
{
	struct node *n = CONTAINER_OF(u, struct node, door_user);

	if (once_wanted(a, rq) && !once_take(n, a, rq))
		verbs[rq->verb](n, a, rq, text);
}

void requests_again(struct node *n, struct door_asked *a, const struct node_request *rq,
		    struct bytes text)
{
	if (once_wanted(a, rq))
		verbs[rq->verb](n, a, rq, text);
}

void requests_open(struct node *n)
{
	static const struct door_user_ops ops = { on_request };

	n->door_user.ops = &ops;
	signed_open(n);
	once_open(n);
}

void requests_close(struct node *n)
{
	while (n->jobs)
		job_free(n->jobs);
	once_close(n);
	network_jobs_close(n);
	lost_jobs_close(n);
	secrets_close(n);
	signed_close(n);
}
