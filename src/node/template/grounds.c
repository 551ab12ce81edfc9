/* grounds.c - who wants which ground, what is built, and what goes. */
/* #syscalls: openat fcntl close */
#include "node/template/grounds.h"

#include <errno.h>
#include <fcntl.h>

#include "base/folder.h"
#include "base/list.h"
#include "base/log.h"
#include "node/files/files_work.h"
#include "node/node.h"
#include "vm/close_later.h"

/* --- who wants one ------------------------------------------------------------------------ */

static void forget(struct ground_want *w)
{
	list_remove(w);
	close_later(w->node->loop, take_fd(&w->disk)); /* it has no name, and may be large */
}

void ground_want_cancel(struct ground_want *w)
{
	if (TAKE(w->on_done))
		forget(w);
}

static void tell(struct ground_want *w, const char *id, const struct err *err)
{
	ground_done_fn *on_done = TAKE(w->on_done);

	forget(w);
	on_done(w, id, err);
}

static struct ground_want *find_want(const struct grounds *g, const char *inputs)
{
	struct ground_want *w = g->wants;

	while (w && strcmp(w->inputs, inputs) != 0)
		w = w->next;
	return w;
}

/* Whoever is told may want another, or no longer; one that is new has no inputs yet. */
static void tell_all(struct grounds *g, const char *inputs, const struct err *err)
{
	struct ground_want *w;

	while ((w = find_want(g, inputs)))
		tell(w, NULL, err);
}

int grounds_want(struct ground_want *w, struct node *n, const struct ground_spec *spec,
		 ground_done_fn *on_done, struct err *err)
{
	if (strlen(spec->source) > GROUND_SOURCE_MAX) {
		close(spec->disk);
		return err_set(err, ERR_INVALID, 0, "the name of an image has more than %d bytes",
			       GROUND_SOURCE_MAX);
	}
	*w = (struct ground_want){ .on_done = on_done, .node = n, .disk = spec->disk };
	snprintf(w->source, sizeof(w->source), "%s", spec->source);
	list_add(&n->grounds.wants, w);
	grounds_soon(n);
	return 0;
}

/* --- found -------------------------------------------------------------------------------- */

/* Somebody wants it: it is spare anew, from now on. */
static void used_now(struct node *n, const char *id)
{
	struct err err;
	AUTO(auto_close) int dir = base_open_folder(n, ".", &err);
	struct template_seen *seen = dir < 0 ? NULL : template_see(n, dir, id);

	if (!seen)
		return;
	seen->spare_ms = 0;
	seen->used_ms = loop_now_ms(n->loop);
}

/* ERR_NOT_FOUND, ERR_MISMATCH: there is none that is of use. */
static int find(struct node *n, const char *inputs, char ret_id[static NODE_ID_MAX + 1],
		struct err *err)
{
	struct manifest m;

	if (template_find(n, inputs, &m, err) < 0)
		return -1;
	snprintf(ret_id, NODE_ID_MAX + 1, "%s", m.template_id);
	used_now(n, ret_id);
	return 0;
}

bool grounds_find(struct node *n, const char *source, char ret_id[static NODE_ID_MAX + 1])
{
	char inputs[GROUND_INPUTS_SIZE];
	struct err err;

	return n->warden.facts_number > 0 && ground_name_inputs(n, source, inputs, &err) == 0 &&
	       find(n, inputs, ret_id, &err) == 0;
}

/* --- built -------------------------------------------------------------------------------- */

static void on_built(struct template_build_user *u, const struct manifest *m, const struct err *err)
{
	struct node *n = CONTAINER_OF(u, struct node, grounds.build_user);
	struct grounds *g = &n->grounds;

	g->build = NULL;
	buf_done(&g->ca);
	if (m) {
		log_info("template %s is ready", g->id);
		base_learn_whole(n, g->id);
	} else {
		log_error("template %s: %s", g->id, err->msg);
		tell_all(g, g->inputs, err);
	}
	grounds_soon(n);
}

/* Its own copy: another may be made while a build goes on. */
static int copy_ca(struct node *n, struct err *err)
{
	struct grounds *g = &n->grounds;
	struct bytes ca;

	if (base_trust_text(n, &ca, err) < 0)
		return -1;
	g->ca = BUF_MAX(ca.len + 1);
	return buf_add(&g->ca, ca, err);
}

static int begin(struct node *n, struct ground_want *w, struct err *err)
{
	static const struct template_build_user_ops ops = { on_built };
	struct grounds *g = &n->grounds;
	AUTO(auto_close) int kernel = fcntl(n->base.kernel, F_DUPFD_CLOEXEC, 0);
	AUTO(auto_close) int disk = fcntl(w->disk, F_DUPFD_CLOEXEC, 0);
	struct template_build_spec spec = { .warden = &n->warden,
					    .loop = n->loop,
					    .state_dir = n->set[SET_STATE_DIR].text,
					    .id = g->id,
					    .sizes = n->sizes,
					    .agent = n->agent,
					    .user = BYTES_LIT("root"),
					    .provision = true,
					    .ready_command = BYTES_LIT("true") };

	if (kernel < 0 || disk < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "hand on kernel and disk");
	if (copy_ca(n, err) < 0)
		return -1;
	memcpy(g->inputs, w->inputs, sizeof(g->inputs));
	template_draw_id(n, g->inputs, g->id);
	base_facts_here(n, &spec.facts);
	spec.ca = buf_view(&g->ca);
	spec.kernel = take_fd(&kernel);
	spec.disk = take_fd(&disk);
	g->build_user.ops = &ops;
	log_info("template %s is built, of %.100s", g->id, w->source);
	return template_build_start(&spec, &g->build_user, &g->build, err);
}

/* --- the turn ----------------------------------------------------------------------------- */

/* Whoever came first. */
static struct ground_want *first(const struct grounds *g)
{
	struct ground_want *w = g->wants;

	while (w && w->next)
		w = w->next;
	return w;
}

static void serve(struct node *n, struct ground_want *w)
{
	char id[NODE_ID_MAX + 1];
	struct err err;

	if (ground_name_inputs(n, w->source, w->inputs, &err) < 0) {
		tell(w, NULL, &err);
	} else if (find(n, w->inputs, id, &err) == 0) {
		tell(w, id, NULL);
	} else if ((err.code != ERR_NOT_FOUND && err.code != ERR_MISMATCH) ||
		   begin(n, w, &err) < 0) {
		buf_done(&n->grounds.ca);
		tell(w, NULL, &err);
	}
}

static bool may_work(const struct node *n)
{
	return n->base.state == BASE_READY && n->warden.link.up && n->reconcile.complete &&
	       n->reconcile.n_strays == 0 && !n->stopping;
}

static void tidy(struct node *n);

static void turn(struct timer *t)
{
	struct node *n = CONTAINER_OF(t, struct node, grounds.turn);
	struct grounds *g = &n->grounds;

	if (!may_work(n))
		return; /* whoever makes it so says it */
	if (!g->build && g->wants) {
		serve(n, first(g));
		grounds_soon(n);
	} else if (!g->build) {
		tidy(n);
	}
}

void grounds_soon(struct node *n)
{
	timer_start(&n->grounds.turn, 0);
}

/* --- what goes ---------------------------------------------------------------------------- */

struct scan {
	struct node *node;
	size_t looked, spare;
	bool unfinished; /* `oldest` is what a node left that died while it built: it goes at once
			  */
	char oldest[NODE_ID_MAX + 1], created[MANIFEST_TEXT_MAX + 1]; /* of those that may go */
	uint64_t since_ms; /* the same: nothing needs it */
};

bool ground_is(const char *id)
{
	return strncmp(id, GROUND_PREFIX, strlen(GROUND_PREFIX)) == 0 && strlen(id) <= NODE_ID_MAX;
}

/* As of `base`: nothing that anybody may need, or that another installation may have made. */
static bool may_go(const struct node *n, const char *id)
{
	return ground_is(id) && !base_is_unfit(n, id) && !base_in_use(n, id);
}

/* The one to go first: that nothing needed for the longest time, of several the oldest. */
static void note_spare(struct scan *s, const char *id, uint64_t since_ms, const char *created)
{
	if (s->spare++ > 0 && (since_ms > s->since_ms ||
			       (since_ms == s->since_ms && strcmp(created, s->created) >= 0)))
		return;
	snprintf(s->oldest, sizeof(s->oldest), "%s", id);
	snprintf(s->created, sizeof(s->created), "%s", created);
	s->since_ms = since_ms;
}

static int look(int dir, const char *name, void *context, struct err *err)
{
	struct scan *s = context;
	uint64_t now = loop_now_ms(s->node->loop);
	struct template_seen *seen;
	struct manifest m = { 0 };
	struct err why;

	(void)err;
	if (++s->looked > GROUNDS_SCAN_MAX || s->node->reconcile.n_others > 0 ||
	    installation_is_younger(&s->node->installation, dir, name))
		return 0;
	s->unfinished = strncmp(name, WARDEN_OPEN_PREFIX, strlen(WARDEN_OPEN_PREFIX)) == 0 &&
			ground_is(name + strlen(WARDEN_OPEN_PREFIX));
	if (s->unfinished) {
		snprintf(s->oldest, sizeof(s->oldest), "%s", name + strlen(WARDEN_OPEN_PREFIX));
		return -1;
	}
	seen = ground_is(name) ? template_see(s->node, dir, name) : NULL;
	if (!may_go(s->node, name)) {
		if (seen)
			seen->spare_ms = 0;
		return 0;
	}
	if (seen && seen->spare_ms == 0)
		seen->spare_ms = now;
	AUTO(auto_close) int folder = folder_open(dir, name, O_RDONLY | O_DIRECTORY, 0, &why);

	if (folder < 0 || template_manifest_read(folder, &m, &why) < 0)
		return 0;
	note_spare(s, name, seen ? seen->spare_ms : now, m.created);
	return 0;
}

static void on_dropped(struct link_call *c, const struct link_reply *r)
{
	struct node *n = CONTAINER_OF(c, struct node, grounds.drop);

	if (r->err)
		log_warn("drop %s: %s", warden_request_of(r)->template_id, r->err->msg);
	else
		grounds_soon(n); /* the next */
}

/* Both of node's files and of templates, which may be on another disk: before others have to be
 * refused for want of it. */
static bool lacks_room(const struct node *n, int templates)
{
	uint64_t reserve = n->set[SET_DISK_RESERVE_MIB].number;
	struct err err;

	return (files_room(n->files, reserve, &err) < 0 && err.code == ERR_NO_SPACE) ||
	       (files_work_room(templates, 2 * reserve, &err) < 0 && err.code == ERR_NO_SPACE);
}

static bool has_to_go(const struct node *n, const struct scan *s, int templates)
{
	uint64_t unused_ms = n->set[SET_GROUNDS_UNUSED_H].number * 3600 * 1000;

	if (s->spare == 0)
		return false;
	return s->spare > GROUNDS_SPARE || loop_now_ms(n->loop) - s->since_ms >= unused_ms ||
	       lacks_room(n, templates);
}

/* One at a time. Whoever's folder is in no row may come back: nobody knows what it needs. */
static void tidy(struct node *n)
{
	struct warden_request rq = { .verb = WARDEN_TEMPLATE_DROP };
	struct scan s = { .node = n };
	struct err err;
	AUTO(auto_close) int dir = base_open_folder(n, ".", &err);

	if (dir < 0 || n->grounds.drop.link)
		return;
	(void)!folder_each(dir, look, &s, &err);
	if ((!s.unfinished && !has_to_go(n, &s, dir)) ||
	    !files_all_known(n->files, base_has_row, n))
		return;
	log_info("template %s is not used any more: it is dropped", s.oldest);
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", s.oldest);
	warden_again(&n->warden, &n->grounds.drop, &rq, WARDEN_CALL_MS, on_dropped);
}

/* --- from begin to end -------------------------------------------------------------------- */

bool grounds_builds(const struct node *n, const char *vm_id)
{
	return n->grounds.build && strcmp(template_build_vm(n->grounds.build), vm_id) == 0;
}

void grounds_open(struct node *n)
{
	timer_init(&n->grounds.turn, n->loop, turn);
}

void grounds_close(struct node *n)
{
	struct grounds *g = &n->grounds;

	timer_stop(&g->turn);
	while (g->wants)
		ground_want_cancel(g->wants);
	template_build_cancel(TAKE(g->build));
	link_cancel(&g->drop);
	buf_done(&g->ca);
}
