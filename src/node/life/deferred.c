/* deferred.c - a list, taken as a whole whenever it is looked at. */
#include "node/life/deferred.h"

#include "base/list.h"
#include "node/life/requests.h"
#include "node/network/network_secrets.h"
#include "node/life/sandbox_row.h"
#include "node/node.h"

struct deferred_request { /* asked meanwhile; asked again when it has come to rest */
	struct door_asked *asked;
	struct node_request request;
	char *text; /* NULL: without */
	struct deferred_request *next;
};

static void wait_free(struct deferred_request *w)
{
	free(w->text);
	free(w);
}

static void append(struct sandbox *s, struct deferred_request *w)
{
	w->next = NULL;
	if (!s->deferred)
		s->deferred_last = &s->deferred;
	*s->deferred_last = w;
	s->deferred_last = &w->next;
	s->n_deferred++;
}

void deferred_add_text(struct sandbox *s, struct door_asked *asked, const struct node_request *rq,
		       struct bytes text)
{
	struct deferred_request *w = s->n_deferred < DEFERRED_MAX ? calloc(1, sizeof(*w)) : NULL;
	struct err err;

	if (w && text.len > 0 && !(w->text = strndup((const char *)text.ptr, text.len)))
		wait_free(TAKE(w));
	if (!w) {
		err_set(&err, ERR_EXHAUSTED, 0, "%zu requests wait for %s already", s->n_deferred,
			s->info.id);
		door_refuse(asked, &err);
		return;
	}
	w->asked = asked;
	w->request = *rq;
	append(s, w);
}

void deferred_add(struct sandbox *s, struct door_asked *asked, const struct node_request *rq)
{
	deferred_add_text(s, asked, rq, (struct bytes){ 0 });
}

static struct deferred_request *take_all(struct sandbox *s)
{
	s->n_deferred = 0;
	return TAKE(s->deferred);
}

void deferred_serve(struct sandbox *s)
{
	struct node *n = s->node;

	list_each(struct deferred_request, w, take_all(s)) {
		requests_again(n, w->asked, &w->request, bytes_str(w->text ? w->text : ""));
		wait_free(w);
	}
}

static void refuse(struct sandbox *s, bool all, enum node_verb verb, const struct err *why)
{
	list_each(struct deferred_request, w, take_all(s)) {
		if (all || w->request.verb == verb) {
			door_refuse(w->asked, why);
			wait_free(w);
		} else {
			append(s, w);
		}
	}
}

void deferred_refuse(struct sandbox *s, enum node_verb verb, const struct err *why)
{
	refuse(s, false, verb, why);
}

void deferred_refuse_all(struct sandbox *s, const struct err *why)
{
	refuse(s, true, NODE_VERBS, why);
}

void deferred_resumed(struct sandbox *s)
{
	const struct node_reply r = { .sandbox = sandbox_told(s), .resumed = 1 };
	struct bytes text = s->text ? bytes_str(s->text) : (struct bytes){ 0 };

	list_each(struct deferred_request, w, take_all(s)) {
		if (w->request.verb == NODE_CONNECT || w->request.verb == NODE_RESUME) {
			door_answer(w->asked, &r, text, NULL, 0);
			wait_free(w);
		} else {
			append(s, w);
		}
	}
}

void deferred_change_secret(struct sandbox *s, const struct secret_change *change)
{
	for (struct deferred_request *w = s->deferred; w; w = w->next)
		if (w->request.verb == NODE_NETWORK)
			(void)secret_change_text(change, &w->text);
}

void deferred_forget(struct sandbox *s)
{
	list_each(struct deferred_request, w, take_all(s))
		wait_free(w);
}
