/* network_secrets.c - one sandbox after the other: row, worker, the next. */
#include "node/network/network_secrets.h"

#include <errno.h>

#include "base/list.h"
#include "base/log.h"
#include "node/life/create_text.h"
#include "node/life/fork.h"
#include "node/network/network_text.h"
#include "node/node.h"
#include "node/life/requests_paused.h"
#include "node/life/sandbox_row.h"
#include "node/life/deferred.h"
#include "node/network/network_verbs.h"

struct secret_job {
	struct node *node;
	struct door_asked *asked;
	json_t *said; /* owns what is in `change` */
	struct secret_change change;
	char (*ids)[NODE_ID_MAX + 1]; /* who may use it, n of them */
	size_t n, at;
	char *was;       /* the text of that sandbox before, until it is noted; may be NULL */
	uint64_t number; /* of this change, among those of its network */
	uint64_t until_ms;
	struct timer look;
	struct journal_write write;
	struct network_telling telling;
	struct secret_job *next, **prev;
};

static void turn(struct secret_job *j);

/* --- its end ------------------------------------------------------------------------------ */

static void job_free(struct secret_job *j)
{
	timer_stop(&j->look);
	journal_write_cancel(&j->write);
	network_telling_cancel(&j->telling);
	list_remove(j);
	json_decref(j->said);
	free(j->was);
	free(j->ids);
	free(j);
}

void secrets_close(struct node *n)
{
	while (n->secret_jobs)
		job_free(n->secret_jobs);
}

static void finish(struct secret_job *j, const struct err *err)
{
	if (err)
		door_refuse(j->asked, err);
	else
		door_answer(j->asked, &(struct node_reply){ .code = ERR_NONE }, (struct bytes){ 0 },
			    NULL, 0);
	job_free(j);
}

/* --- one sandbox -------------------------------------------------------------------------- */

/* Its network is closed then, or its hosts with rules: the value is not used any more either way.
 */
static void on_told(struct network_telling *t, const struct err *err)
{
	struct secret_job *j = CONTAINER_OF(t, struct secret_job, telling);

	if (err)
		log_warn("%s: with another secret: %s", t->id, err->msg);
	j->at++;
	turn(j);
}

/* So that it is not taken for done when it is asked for again. */
static void not_noted(struct secret_job *j, struct sandbox *s, const struct err *err)
{
	if (s && s->network.changes == j->number) {
		free(s->text);
		s->text = TAKE(j->was);
	}
	finish(j, err);
}

static void on_noted(struct journal_write *w, const struct err *failed)
{
	struct secret_job *j = CONTAINER_OF(w, struct secret_job, write);
	struct sandbox *s = table_find(&j->node->table, j->ids[j->at]);
	struct err err;

	if (failed) {
		not_noted(j, s, failed);
		return;
	}
	free(TAKE(j->was));
	if (!s || s->state != SANDBOX_RUNNING) { /* a worker of later has the new one */
		j->at++;
		turn(j);
	} else if (network_telling_begin(&j->telling, s, s->text, on_told, &err) < 0) {
		on_told(&j->telling, &err);
	}
}

/* False: it did not need it. */
static bool change(struct secret_job *j, struct sandbox *s, struct err *err)
{
	char *next = NULL;
	int rc = network_text_secret(s->text, j->change.name, j->change.sealed, &next, err);

	if (rc == 0 && !next)
		return false;
	if (rc < 0) {
		finish(j, err);
		return true;
	}
	j->was = s->text;
	s->text = next;
	j->number = ++s->network.changes;
	rc = s->state == SANDBOX_RUNNING
		     ? sandbox_note(s, &j->write, JOURNAL_RUNNING, on_noted, err)
		     : sandbox_note_durable(s, &j->write, JOURNAL_PAUSED, on_noted, err);
	if (rc < 0)
		not_noted(j, s, err);
	return true;
}

/* Which row it has is known when it has come to rest. */
static void wait_for_rest(struct secret_job *j)
{
	struct err err;

	if (loop_now_ms(j->node->loop) < j->until_ms) {
		timer_start(&j->look, SECRETS_LOOK_MS);
		return;
	}
	err_set(&err, ERR_TIMEOUT, 0, "sandbox %s does not come to rest", j->ids[j->at]);
	finish(j, &err);
}

static void turn(struct secret_job *j)
{
	struct err err;

	for (; j->at < j->n; j->at++) {
		struct sandbox *s = table_find(&j->node->table, j->ids[j->at]);

		if (!s || s->state == SANDBOX_ENDING)
			continue;
		if (s->state != SANDBOX_RUNNING && !requests_rests(s)) {
			wait_for_rest(j);
			return;
		}
		if (change(j, s, &err))
			return;
	}
	finish(j, NULL);
}

static void on_look(struct timer *t)
{
	turn(CONTAINER_OF(t, struct secret_job, look));
}

/* --- the beginning ------------------------------------------------------------------------ */

/* Those who are still at it go on with the newest value: whoever comes to a sandbox last, it is the
 * same. */
static void outdate(struct secret_job *j)
{
	for (struct secret_job *old = j->next; old; old = old->next) {
		if (strcmp(old->change.team, j->change.team) != 0 ||
		    strcmp(old->change.name, j->change.name) != 0)
			continue;
		json_decref(old->said);
		old->said = json_incref(j->said);
		old->change = j->change;
	}
}

/* Whoever has it already was told of the old value. */
static void retell_claimed(const struct node *n, const struct create *c)
{
	for (struct sandbox *s = n->table.all; s; s = s->next)
		if (s->create == c && s->state == SANDBOX_NAMING)
			network_retell(s);
}

void secrets_note_missing(struct sandbox *s)
{
	char names[EVENT_MESSAGE_MAX];

	network_text_missing(s->text, names, sizeof(names));
	if (names[0])
		events_add(&s->record.events, EVENT_WARN, "secret",
			   "Rules name a secret that does not exist: %s", names);
}

bool secret_change_text(const struct secret_change *c, char **text)
{
	char *next = NULL;
	struct err err;

	if (network_text_secret(*text, c->name, c->sealed, &next, &err) < 0)
		log_error("what is to have a secret: %s", err.msg);
	if (!next)
		return false;
	free(*text);
	*text = next;
	return true;
}

/* What becomes a sandbox's text later is in no row yet. */
static void change_waiting(const struct secret_job *j)
{
	struct node *n = j->node;

	for (struct create *c = n->creates.all; c; c = c->all_next)
		if (strcmp(c->team, j->change.team) == 0 &&
		    secret_change_text(&j->change, &c->text))
			retell_claimed(n, c);
	forks_change_secret(n, &j->change);
	network_jobs_change_secret(n, &j->change);
	for (struct sandbox *s = n->table.all; s; s = s->next)
		if (strcmp(s->info.team, j->change.team) == 0)
			deferred_change_secret(s, &j->change);
}

static int list(struct secret_job *j, struct err *err)
{
	j->ids = calloc(j->node->table.n + 1, sizeof(*j->ids));
	if (!j->ids)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "change a secret");
	for (const struct sandbox *s = j->node->table.all; s; s = s->next)
		if (strcmp(s->info.team, j->change.team) == 0)
			memcpy(j->ids[j->n++], s->info.id, sizeof(s->info.id));
	return 0;
}

static int read_text(struct secret_job *j, struct bytes text, struct err *err)
{
	struct secret_change *c = &j->change;

	if (json_decode(text, NODE_TEXT_MAX, CREATE_TEXT_DEPTH, &j->said, err) < 0)
		return -1;
	c->name = json_string_value(json_object_get(j->said, "name"));
	c->sealed = json_object_get(j->said, "sealed");
	if (json_is_null(c->sealed))
		c->sealed = NULL;
	if (!c->name || (c->sealed && !json_is_string(c->sealed)))
		return err_set(err, ERR_INVALID, 0, "a secret has a name and a sealed value");
	return 0;
}

void secrets_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		 struct bytes text)
{
	struct secret_job *j = calloc(1, sizeof(*j));
	struct err err;

	if (!j) {
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "change a secret");
		door_refuse(a, &err);
		return;
	}
	*j = (struct secret_job){ .node = n, .asked = a };
	list_add(&n->secret_jobs, j);
	timer_init(&j->look, n->loop, on_look);
	j->until_ms = loop_now_ms(n->loop) + SECRETS_WAIT_MS;
	memcpy(j->change.team, rq->team, sizeof(j->change.team));
	if (read_text(j, text, &err) < 0 || list(j, &err) < 0) {
		finish(j, &err);
		return;
	}
	outdate(j);
	change_waiting(j);
	turn(j);
}

/* Who opens what is sealed: its key, or *err. */
static const char *key_of(const struct node *n, bool images, struct err *err)
{
	const struct link *l = images ? &n->images.link : &n->injector.link;
	const char *key = images ? n->images.seal_key : n->injector.seal_key;

	if (key)
		return key;
	if (link_exists(l))
		err_set(err, ERR_UNAVAILABLE, 0, "the %s is not there yet",
			images ? "images daemon" : "injector");
	else
		err_set(err, ERR_UNAVAILABLE, 0, "%s",
			images ? IMAGES_NONE : "this server runs without the injector");
	return NULL;
}

void secrets_key_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_TEXT_MAX);
	AUTO(json_decrefp) json_t *v = NULL;
	struct err err;
	const char *key = key_of(n, rq->flags & NODE_FOR_IMAGES, &err);

	(void)text;
	if (!key) {
		door_refuse(a, &err);
		return;
	}
	v = json_pack("{s:s}", "sealKey", key);
	if (!v)
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "tell the key");
	if (!v || json_encode(v, &out, &err) < 0)
		door_refuse(a, &err);
	else
		door_answer(a, &(struct node_reply){ .code = ERR_NONE }, buf_view(&out), NULL, 0);
}
