/* network_verbs.c - what a gateway asks of a sandbox's network. */
/* #syscalls: memfd_create pwrite64 fstat pread64 close */
#include "node/network/network_verbs.h"

#include <errno.h>

#include "base/list.h"
#include "base/memory_file.h"
#include "node/life/create_text.h"
#include "node/network/network.h"
#include "node/network/network_secrets.h"
#include "node/network/network_text.h"
#include "node/node.h"
#include "node/life/requests.h"
#include "node/life/requests_paused.h"
#include "node/life/sandbox_row.h"
#include "node/life/deferred.h"

enum {
	SAID_MAX = 1024 * 1024, /* by egress, whatever it was asked */
	ANSWER_MAX = NODE_MESSAGE_MAX - sizeof(struct node_reply),
};

struct network_job { /* a request whose answer waits for egress or the journal */
	struct node *node;
	struct door_asked *asked;
	struct node_request request;
	char *text; /* of the request */
	char *was;  /* the sandbox's text before; NULL: none */
	uint64_t change;
	struct network_telling telling;
	struct link_call call;
	struct journal_write write;
	struct network_job *next, **prev;
};

static struct network_job *job_add(struct node *n, struct door_asked *a,
				   const struct node_request *rq, struct bytes text)
{
	struct network_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	*j = (struct network_job){ .node = n, .asked = a, .request = *rq };
	j->text = text.len ? strndup((const char *)text.ptr, text.len) : strdup("");
	list_add(&n->network_jobs, j);
	return j;
}

static void job_free(struct network_job *j)
{
	network_telling_cancel(&j->telling);
	link_cancel(&j->call);
	journal_write_cancel(&j->write);
	list_remove(j);
	free(j->text);
	free(j->was);
	free(j);
}

void network_jobs_close(struct node *n)
{
	while (n->network_jobs)
		job_free(n->network_jobs);
}

void network_jobs_change_secret(struct node *n, const struct secret_change *change)
{
	for (struct network_job *j = n->network_jobs; j; j = j->next)
		if (j->request.verb == NODE_NETWORK && strcmp(j->request.team, change->team) == 0)
			(void)secret_change_text(change, &j->text);
}

static void refuse(struct network_job *j, const struct err *err)
{
	door_refuse(j->asked, err);
	job_free(j);
}

/* --- other rules -------------------------------------------------------------------------- */

static void on_noted(struct journal_write *w, const struct err *err)
{
	struct network_job *j = CONTAINER_OF(w, struct network_job, write);

	if (err) {
		refuse(j, err);
		return;
	}
	door_answer(j->asked, &(struct node_reply){ .code = ERR_NONE }, (struct bytes){ 0 }, NULL,
		    0);
	job_free(j);
}

/* As before, unless it was changed again meanwhile. */
static void take_back(struct sandbox *s, struct network_job *j)
{
	if (s->network.changes != j->change)
		return;
	free(s->text);
	s->text = TAKE(j->was);
	s->network.changes++;
	network_retell(s);
}

/* It is on its way to another state: what is to become of the request is known when it is there. */
static void again(struct network_job *j)
{
	struct node *n = j->node;
	struct door_asked *a = j->asked;
	struct node_request rq = j->request;
	AUTO(auto_free) char *text = TAKE(j->text);

	job_free(j);
	requests_again(n, a, &rq, bytes_str(text));
}

static void on_told(struct network_telling *t, const struct err *failed)
{
	struct network_job *j = CONTAINER_OF(t, struct network_job, telling);
	struct err err;
	struct sandbox *s = requests_alive(j->node, &j->request, &err);

	if (!s) {
		refuse(j, &err);
	} else if (failed) {
		take_back(s, j);
		refuse(j, failed);
	} else if (s->state != SANDBOX_RUNNING) {
		again(j);
	} else {
		events_add(&s->record.events, EVENT_INFO, "network", "Network rules changed");
		secrets_note_missing(s);
		if (sandbox_note(s, &j->write, JOURNAL_RUNNING, on_noted, &err) < 0)
			on_noted(&j->write, &err);
	}
}

/* Its text is changed first: a pause or a new egress meanwhile goes by it. */
static void put(struct sandbox *s, struct door_asked *a, const struct node_request *rq,
		struct bytes text)
{
	struct network_job *j = job_add(s->node, a, rq, text);
	char *next = NULL;
	struct err err;

	if (!j || !j->text) {
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "change a network");
		door_refuse(a, &err);
		if (j)
			job_free(j);
		return;
	}
	if (network_text_put(s->text, text, NODE_TEXT_MAX, &next, &err) < 0 ||
	    network_allow(s->node, next, &err) < 0) {
		free(next);
		refuse(j, &err);
		return;
	}
	j->was = s->text;
	s->text = next;
	j->change = ++s->network.changes;
	if (!link_exists(&s->node->egress)) /* it reaches nobody, whatever the rules */
		on_told(&j->telling, NULL);
	else if (network_telling_begin(&j->telling, s, s->text, on_told, &err) < 0)
		on_told(&j->telling, &err);
}

void network_put_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	struct err err;
	struct sandbox *s = requests_alive(n, rq, &err);

	if (s && requests_rests(s) && !s->deferred) {
		err_set(&err, ERR_EXISTS, 0, "Sandbox %s is paused", rq->id);
		s = NULL;
	}
	if (!s)
		ended_refuse(n, a, rq, &err);
	else if (s->state == SANDBOX_RUNNING)
		put(s, a, rq, text);
	else
		deferred_add_text(s, a, rq, text);
}

/* --- questions ---------------------------------------------------------------------------- */

static struct network_job *question_add(struct node *n, struct door_asked *a,
					const struct node_request *rq)
{
	struct network_job *j = job_add(n, a, rq, (struct bytes){ 0 });
	struct err err;

	if (j)
		return j;
	err_set(&err, ERR_EXHAUSTED, ENOMEM, "a question about a network");
	door_refuse(a, &err);
	return NULL;
}

static void answer_text(struct network_job *j, struct bytes text)
{
	struct err err;

	if (text.len > ANSWER_MAX) {
		err_set(&err, ERR_EXHAUSTED, 0, "the answer has %zu bytes, more than %zu", text.len,
			(size_t)ANSWER_MAX);
		refuse(j, &err);
		return;
	}
	door_answer(j->asked, &(struct node_reply){ .code = ERR_NONE }, text, NULL, 0);
	job_free(j);
}

/* As many as an answer holds, the newest. */
static int shorten(struct buf *said, struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;

	if (said->len <= ANSWER_MAX)
		return 0;
	if (json_decode(buf_view(said), SAID_MAX, CREATE_TEXT_DEPTH, &all, err) < 0)
		return -1;
	while (said->len > ANSWER_MAX && json_array_size(all) > 0) {
		size_t half = (json_array_size(all) + 1) / 2;

		while (half-- > 0)
			(void)json_array_remove(all, 0);
		buf_clear(said);
		if (json_encode(all, said, err) < 0)
			return -1;
	}
	return 0;
}

static void on_said(struct link_call *c, const struct link_reply *r)
{
	struct network_job *j = CONTAINER_OF(c, struct network_job, call);
	bool log = j->request.verb == NODE_EGRESS_LOG;
	AUTO(buf_done) struct buf said = BUF_MAX(SAID_MAX);
	struct err err;

	if (r->err)
		refuse(j, r->err);
	else if (memory_file_read(link_reply_fd(r), &said, &err) < 0 ||
		 (log && shorten(&said, &err) < 0))
		refuse(j, &err);
	else
		answer_text(j, buf_view(&said));
}

/* {"rules":{}, "question":""}: what was asked, with the rules put in. */
static int with_rules(const struct node *n, const struct sandbox *s, struct bytes asked,
		      struct buf *out, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(NETWORK_RULES_MAX);
	AUTO(json_decrefp) json_t *all = NULL;
	json_t *rules = NULL;

	if (json_decode(asked.len ? asked : BYTES_LIT("{}"), NODE_TEXT_MAX, CREATE_TEXT_DEPTH, &all,
			err) < 0)
		return err_wrap(err, "a question about a network");
	if ((s ? network_rules(s, s->text, &text, err) : network_rules_none(n, &text, err)) < 0 ||
	    json_decode(buf_view(&text), NETWORK_RULES_MAX, CREATE_TEXT_DEPTH, &rules, err) < 0)
		return -1;
	if (json_object_set_new(all, "rules", rules) < 0)
		return err_set(err, ERR_INVALID, 0, "a question about a network is an object");
	return json_encode(all, out, err);
}

/* `s` may be NULL: of none in particular. */
static int ask_why(struct network_job *j, const struct sandbox *s, struct bytes asked,
		   struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(NETWORK_RULES_MAX + NODE_TEXT_MAX);
	struct egress_asked what = { .verb = EGRESS_EXPLAIN, .n_fds = 1 };

	if (with_rules(j->node, s, asked, &text, err) < 0)
		return -1;
	what.fds[0] = memory_file_make("question", buf_view(&text), err);
	if (what.fds[0] < 0)
		return -1;
	return egress_ask(&j->node->egress, &j->call, &what, on_said, err);
}

void network_explain_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
			 struct bytes text)
{
	struct err err;
	const struct sandbox *s = rq->id[0] ? requests_alive(n, rq, &err) : NULL;
	struct network_job *j;

	if (!s && rq->id[0]) {
		ended_refuse(n, a, rq, &err);
		return;
	}
	j = question_add(n, a, rq);
	if (j && ask_why(j, s, text, &err) < 0)
		refuse(j, &err);
}

/* One that does not run has none: they are egress's, and go with its doors. */
void network_log_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text)
{
	struct egress_asked what = { .verb = EGRESS_LOG };
	struct err err;
	const struct sandbox *s = requests_alive(n, rq, &err);
	struct network_job *j;

	(void)text;
	if (!s) {
		ended_refuse(n, a, rq, &err);
		return;
	}
	j = question_add(n, a, rq);
	if (!j)
		return;
	what.slot = s->slot;
	if (s->slot == WARDEN_NO_SLOT || !link_exists(&n->egress))
		answer_text(j, BYTES_LIT("[]"));
	else if (egress_ask(&n->egress, &j->call, &what, on_said, &err) < 0)
		refuse(j, &err);
}
