/* idempotency.c - names of creates, by team and name. */
#include "node/life/idempotency.h"

#include <errno.h>

#include "base/clock.h"
#include "base/hash.h"
#include "node/life/sandbox_row.h"
#include "node/node.h"
#include "wire/sha256.h"

struct repeat_wait {
	struct door_asked *asked;
	struct repeat_wait *next;
};

struct repeat {
	struct node *node;
	char team[NODE_ID_MAX + 1], name[NODE_ID_MAX + 1];
	uint64_t print;
	struct sandbox *sandbox; /* NULL: it is being made */
	struct repeat_wait *waits;
	size_t n_waits;
	struct repeat *next;
};

static struct repeat **bucket_of(struct idempotency *r, const char *team, const char *name)
{
	return &r->buckets[hash_text(hash_text(HASH_START, team), name) % IDEMPOTENCY_BUCKETS];
}

static struct repeat *find(struct node *n, const char *team, const char *name)
{
	struct repeat *r = *bucket_of(&n->idempotency, team, name);

	while (r && (strcmp(r->team, team) != 0 || strcmp(r->name, name) != 0))
		r = r->next;
	return r;
}

static struct repeat *add(struct node *n, const char *team, const char *name, uint64_t print)
{
	struct repeat **bucket = bucket_of(&n->idempotency, team, name);
	struct repeat *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->node = n;
	snprintf(r->team, sizeof(r->team), "%s", team);
	snprintf(r->name, sizeof(r->name), "%s", name);
	r->print = print;
	r->next = *bucket;
	*bucket = r;
	return r;
}

static void drop(struct repeat *r)
{
	struct repeat **at = bucket_of(&r->node->idempotency, r->team, r->name);

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	if (r->sandbox)
		r->sandbox->repeat = NULL;
	while (r->waits) {
		struct repeat_wait *w = r->waits;

		r->waits = w->next;
		free(w);
	}
	free(r);
}

/* NULL: there are none any more. */
static struct door_asked *take_wait(struct repeat *r)
{
	struct repeat_wait *w = r->waits;
	struct door_asked *a = w ? w->asked : NULL;

	if (w)
		r->waits = w->next;
	free(w);
	return a;
}

uint64_t idempotency_print(const struct node_request *rq, struct bytes text)
{
	const uint32_t numbers[] = { rq->timeout_s, rq->flags & ~(uint32_t)NODE_AGAIN };
	uint8_t digest[SHA256_SIZE];
	struct sha256 h;
	uint64_t print;

	sha256_init(&h);
	sha256_add(&h,
		   (struct bytes){ (const uint8_t *)rq->template_id, strlen(rq->template_id) + 1 });
	sha256_add(&h, bytes_str(rq->template_tag));
	sha256_add(&h, (struct bytes){ (const uint8_t *)numbers, sizeof(numbers) });
	sha256_add(&h, text);
	sha256_end(&h, digest);
	memcpy(&print, digest, sizeof(print));
	return print;
}

/* --- the second --------------------------------------------------------------------------- */

static int wait_for(struct repeat *r, struct door_asked *a, struct err *err)
{
	struct repeat_wait *w = r->n_waits < REPEAT_WAITS_MAX ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "%zu requests wait for the same create already", r->n_waits);
	w->asked = a;
	w->next = r->waits;
	r->waits = w;
	r->n_waits++;
	return 0;
}

static bool is_old(const struct repeat *r)
{
	return r->sandbox &&
	       clock_wall_ns() > r->sandbox->info.started_ns + REPEAT_KEEP_S * NSEC_PER_SEC;
}

bool idempotency_take(struct node *n, struct door_asked *a, const struct node_request *rq,
		      struct bytes text)
{
	struct repeat *r = rq->idempotency[0] ? find(n, rq->team, rq->idempotency) : NULL;
	struct err err;

	if (r && is_old(r)) {
		drop(r);
		return false;
	}
	if (!r)
		return false;
	if (r->print != idempotency_print(rq, text)) {
		err_set(&err, ERR_EXISTS, 0,
			"the Idempotency-Key was used for another request already");
		door_refuse(a, &err);
	} else if (r->sandbox) {
		door_answer(a, &(struct node_reply){ .sandbox = sandbox_told(r->sandbox) },
			    (struct bytes){ 0 }, NULL, 0);
	} else if (wait_for(r, a, &err) < 0) {
		door_refuse(a, &err);
	}
	return true;
}

/* --- the first ---------------------------------------------------------------------------- */

int idempotency_begin(struct node *n, struct create *c, const struct node_request *rq,
		      struct bytes text, struct err *err)
{
	if (!rq->idempotency[0])
		return 0;
	c->repeat = add(n, rq->team, rq->idempotency, idempotency_print(rq, text));
	return c->repeat ? 0 : err_set(err, ERR_EXHAUSTED, ENOMEM, "a create");
}

void idempotency_done(struct create *c, struct sandbox *s)
{
	struct repeat *r = TAKE(c->repeat);
	struct door_asked *a;

	if (!r)
		return;
	r->sandbox = s;
	s->repeat = r;
	while ((a = take_wait(r)))
		door_answer(a, &(struct node_reply){ .sandbox = sandbox_told(s) },
			    (struct bytes){ 0 }, NULL, 0);
}

void idempotency_failed(struct create *c, const struct err *why)
{
	struct repeat *r = TAKE(c->repeat);
	struct door_asked *a;

	if (!r)
		return;
	while ((a = take_wait(r)))
		door_refuse(a, why);
	drop(r);
}

bool idempotency_awaited(const struct create *c)
{
	const struct repeat_wait *w = c->repeat ? c->repeat->waits : NULL;

	while (w && !door_wanted(w->asked))
		w = w->next;
	return w;
}

void idempotency_forget(struct sandbox *s)
{
	if (s->repeat)
		drop(s->repeat);
}

void idempotency_close(struct node *n)
{
	for (size_t i = 0; i < IDEMPOTENCY_BUCKETS; i++)
		while (n->idempotency.buckets[i])
			drop(n->idempotency.buckets[i]);
}

/* --- in the journal ----------------------------------------------------------------------- */

void idempotency_note(const struct sandbox *s, struct journal_row *row)
{
	const struct repeat *r = s->create ? s->create->repeat : s->repeat;

	if (!r)
		return;
	memcpy(row->idempotency, r->name, sizeof(row->idempotency));
	row->request_print = r->print;
}

int idempotency_load(struct sandbox *s, const struct journal_row *row, struct err *err)
{
	/* two of the same name: the older one's was a day old, its row not written since */
	struct repeat *before = find(s->node, row->sandbox.team, row->idempotency);

	if (!row->idempotency[0])
		return 0;
	if (before)
		drop(before);
	s->repeat = add(s->node, row->sandbox.team, row->idempotency, row->request_print);
	if (!s->repeat)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "load %s", row->sandbox.id);
	s->repeat->sandbox = s;
	return 0;
}
