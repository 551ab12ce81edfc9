/* resolver.c - see resolver.h. */
#include "egress/resolver.h"

#include <errno.h>

#include "base/hash.h"
#include "base/list.h"

enum { BUCKETS = 1024 };

struct resolver_name {
	struct resolver *resolver;
	char text[DOMAIN_SIZE];
	struct question question;
	struct asker *asker; /* who began it; NULL: nobody, any more */
	bool asking, known, telling;
	enum dns_reading reading;
	struct dns_addresses found;
	uint64_t until_ms;
	struct timer told; /* those who asked for what is known are told in the next turn */
	struct lookup *waiting;
	struct resolver_name *in_bucket;
	struct resolver_name *older, *newer;
};

struct resolver {
	struct loop *loop;
	struct question_servers servers;
	struct resolver_name *buckets[BUCKETS];
	struct resolver_name *oldest, *newest;
	size_t n, asking;
};

/* --- the names that are remembered -------------------------------------------------------- */

static size_t bucket_of(const char *text)
{
	return hash_text(HASH_START, text) % BUCKETS;
}

static struct resolver_name *find(const struct resolver *r, const char *text)
{
	struct resolver_name *n = r->buckets[bucket_of(text)];

	while (n && strcmp(n->text, text) != 0)
		n = n->in_bucket;
	return n;
}

static void leave_order(struct resolver_name *n)
{
	struct resolver *r = n->resolver;

	*(n->older ? &n->older->newer : &r->oldest) = n->newer;
	*(n->newer ? &n->newer->older : &r->newest) = n->older;
}

static void enter_order(struct resolver_name *n)
{
	struct resolver *r = n->resolver;

	n->older = r->newest;
	n->newer = NULL;
	*(r->newest ? &r->newest->newer : &r->oldest) = n;
	r->newest = n;
}

/* Its question is over. */
static void no_more_asking(struct resolver_name *n)
{
	n->resolver->asking--;
	n->asking = false;
	if (n->asker)
		n->asker->asking--;
	n->asker = NULL;
}

static void forget(struct resolver_name *n)
{
	struct resolver *r = n->resolver;
	struct resolver_name **at = &r->buckets[bucket_of(n->text)];

	while (*at != n)
		at = &(*at)->in_bucket;
	*at = n->in_bucket;
	leave_order(n);
	if (n->asking)
		no_more_asking(n);
	question_cancel(&n->question);
	timer_stop(&n->told);
	r->n--;
	free(n);
}

/* The oldest that nobody waits for. */
static bool make_room(struct resolver *r)
{
	for (struct resolver_name *n = r->oldest; n; n = n->newer)
		if (!n->waiting && !n->telling) {
			forget(n);
			return true;
		}
	return false;
}

void lookup_cancel(struct lookup *l)
{
	list_remove(l);
	*l = (struct lookup){ 0 };
}

/* --- answers ------------------------------------------------------------------------------ */

static void tell_all(struct timer *t)
{
	struct resolver_name *n = CONTAINER_OF(t, struct resolver_name, told);
	uint64_t now = loop_now_ms(n->resolver->loop);
	struct dns_addresses found = n->found;
	struct lookup *l;

	found.ttl_s = n->until_ms > now ? (uint32_t)((n->until_ms - now) / 1000) : 0;
	n->telling = true; /* who is told may ask for more, which must not make room here */
	while ((l = n->waiting)) {
		__auto_type on_done = l->on_done;

		lookup_cancel(l);
		on_done(l, n->reading, &found);
	}
	n->telling = false;
}

static uint32_t keep_s(enum dns_reading reading, const struct dns_addresses *found)
{
	if (reading != DNS_ANSWERED || found->n == 0)
		return RESOLVER_NONE_S;
	if (found->ttl_s < RESOLVER_TTL_MIN_S)
		return RESOLVER_TTL_MIN_S;
	return found->ttl_s < RESOLVER_TTL_MAX_S ? found->ttl_s : RESOLVER_TTL_MAX_S;
}

static void on_answer(struct question *q, enum dns_reading reading,
		      const struct dns_addresses *found)
{
	struct resolver_name *n = CONTAINER_OF(q, struct resolver_name, question);
	uint64_t now = loop_now_ms(n->resolver->loop);

	no_more_asking(n);
	n->known = true;
	n->reading = reading;
	n->found = *found;
	n->until_ms = now + (uint64_t)keep_s(reading, found) * 1000;
	tell_all(&n->told);
}

/* --- questions ---------------------------------------------------------------------------- */

static struct resolver_name *add(struct resolver *r, const char *text, struct err *err)
{
	struct resolver_name *n, **at;

	if (r->n >= RESOLVER_NAMES_MAX && !make_room(r)) {
		err_set(err, ERR_EXHAUSTED, 0, "%d names are being asked for", RESOLVER_NAMES_MAX);
		return NULL;
	}
	n = calloc(1, sizeof(*n));
	if (!n) {
		err_set(err, ERR_EXHAUSTED, ENOMEM, "a name");
		return NULL;
	}
	n->resolver = r;
	snprintf(n->text, sizeof(n->text), "%s", text);
	timer_init(&n->told, r->loop, tell_all);
	at = &r->buckets[bucket_of(text)];
	n->in_bucket = *at;
	*at = n;
	enter_order(n);
	r->n++;
	return n;
}

/* What one sandbox asks for takes nothing from the others. */
static int may_begin(const struct resolver *r, const struct asker *who, struct err *err)
{
	if (who->asking >= RESOLVER_OF_ONE_MAX)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "%d names of this sandbox are being asked for", RESOLVER_OF_ONE_MAX);
	if (r->asking >= RESOLVER_ASKING_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%d questions are under way",
			       RESOLVER_ASKING_MAX);
	return 0;
}

static int begin(struct resolver_name *n, struct asker *who, struct err *err)
{
	struct resolver *r = n->resolver;

	if (question_start(&n->question, r->loop, &r->servers, n->text, on_answer, err) < 0)
		return -1;
	r->asking++;
	who->asking++;
	n->asker = who;
	n->asking = true;
	n->known = false;
	leave_order(n);
	enter_order(n);
	return 0;
}

static void wait_for(struct resolver_name *n, struct lookup *l)
{
	struct lookup **at = &n->waiting;

	while (*at)
		at = &(*at)->next;
	l->name = n;
	list_add(at, l);
}

int resolver_ask(struct resolver *r, struct lookup *l, struct asker *who, const char *name,
		 lookup_done_fn *on_done, struct err *err)
{
	struct resolver_name *n = find(r, name);

	bool fresh = n && n->known && n->until_ms > loop_now_ms(r->loop);
	bool asks = !fresh && !(n && n->asking);

	if (asks && may_begin(r, who, err) < 0)
		return -1;
	if (!n)
		n = add(r, name, err);
	if (!n || (asks && begin(n, who, err) < 0))
		return -1;
	if (fresh)
		timer_start(&n->told, 0);
	*l = (struct lookup){ .on_done = on_done };
	wait_for(n, l);
	return 0;
}

void resolver_leave(struct resolver *r, struct asker *who)
{
	if (who->asking == 0)
		return;
	for (struct resolver_name *n = r->oldest; n; n = n->newer)
		if (n->asker == who) {
			n->asker = NULL;
			who->asking--;
		}
}

/* --- open and close ----------------------------------------------------------------------- */

int resolver_open(struct resolver **ret, struct loop *l, const struct question_servers *servers,
		  struct err *err)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "the resolver");
	r->loop = l;
	r->servers = *servers;
	*ret = r;
	return 0;
}

void resolver_close(struct resolver *r)
{
	if (!r)
		return;
	while (r->oldest)
		forget(r->oldest);
	free(r);
}
