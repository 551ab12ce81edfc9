/* guest_cache.c - the sandboxes that have traffic: found by name, asked for at node, forgotten. */
/* #syscalls: close */
#include "gateway/relay/guest_cache.h"

#include <errno.h>

#include "base/list.h"
#include "base/random.h"
#include "gateway/relay/guest_pool.h"

static bool is_used(const struct guest *g)
{
	return g->waiting.first || g->busy.first;
}

/* By name. */

static struct guest **bucket(struct guest_cache *c, const char *id)
{
	uint64_t h = c->seed;

	for (; *id != '\0'; id++) {
		h = (h ^ (uint8_t)*id) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return &c->buckets[h % GUEST_BUCKETS];
}

static struct guest *find(struct guest_cache *c, const char *id)
{
	struct guest *g = *bucket(c, id);

	while (g && strcmp(g->id, id) != 0)
		g = g->next;
	return g;
}

/* Those without an exchange, in the order in which they became so. */

static void idle_remove(struct guest *g)
{
	struct guest_cache *c = g->cache;

	if (!g->idle)
		return;
	*(g->newer ? &g->newer->older : &c->newest) = g->older;
	*(g->older ? &g->older->newer : &c->oldest) = g->newer;
	g->idle = false;
	c->n_idle--;
}

static void idle_add(struct guest *g)
{
	struct guest_cache *c = g->cache;

	g->idle = true;
	g->idle_ms = loop_now_ms(c->gateway->loop);
	g->newer = NULL;
	g->older = c->newest;
	*(g->older ? &g->older->newer : &c->oldest) = g;
	c->newest = g;
	c->n_idle++;
}

/* Life. */

static void put_spare(struct guest *g, int fd)
{
	g->spare[g->n_spare++] = fd;
	g->cache->n_held++;
}

static int take_spare(struct guest *g)
{
	g->cache->n_held--;
	return g->spare[--g->n_spare];
}

static void drop_spare(struct guest *g)
{
	while (g->n_spare > 0)
		close(take_spare(g));
}

/* Nothing that was learnt is believed any more. */
static void unlearn(struct guest *g)
{
	g->known = false;
	drop_spare(g);
	guest_pool_drop(g);
}

static void guest_free(struct guest *g)
{
	assert(!is_used(g) && g->hold == 0);
	unlearn(g);
	idle_remove(g);
	link_cancel(&g->call);
	timer_stop(&g->failed);
	list_remove(g);
	g->cache->n_guests--;
	free(g);
}

bool guest_cache_room(struct guest_cache *c, size_t n)
{
	while (c->oldest && c->n_held + n > c->held_max)
		guest_free(c->oldest);
	return c->n_held + n <= c->held_max;
}

/* Whether it is kept is a function of its state. May free it. */
static void settle(struct guest *g)
{
	struct guest_cache *c = g->cache;

	if (g->hold > 0)
		return;
	if (is_used(g)) {
		idle_remove(g);
	} else if (!g->known && !g->asked) {
		guest_free(g);
	} else if (!g->idle && !g->asked) {
		idle_add(g);
	}
	if (c->n_idle > GUEST_IDLE_MAX)
		guest_free(c->oldest);
}

/* A token that cannot be one is none. */
static struct bytes token_of(const struct guest_user *u)
{
	return u->token.len <= GUEST_TOKEN_MAX ? u->token : (struct bytes){ 0 };
}

/* Was the question to node the one that this user would ask? */
static bool asked_alike(const struct guest *g, const struct guest_user *u)
{
	return u->to_agent == g->asked_to_agent && bytes_eq(token_of(u), bytes_str(g->asked_token));
}

/* All of them, or those who asked what was just refused. */
static void fail_waiting(struct guest *g, const struct err *err, bool all)
{
	/* those who begin to wait while these are told wait for the next answer */
	struct guest_users told = { .last = &told.first };

	list_each(struct guest_user, u, g->waiting.first)
		if (all || asked_alike(g, u))
			guest_users_move(u, &told);
	g->hold++;
	while (told.first) {
		struct guest_user *u = told.first;

		guest_users_move(u, &g->busy);
		u->ops->on_socket(u, -1, err);
	}
	g->hold--;
}

static void end_busy(struct guest *g)
{
	g->hold++;
	while (g->busy.first) {
		struct guest_user *u = g->busy.first;

		guest_users_remove(u);
		u->guest = NULL;
		g->n_users--;
		u->ops->on_gone(u);
	}
	g->hold--;
}

/* Asking node. */

static void on_failed(struct timer *t)
{
	struct guest *g = CONTAINER_OF(t, struct guest, failed);

	fail_waiting(g, &g->why, true);
	settle(g);
}

static void on_sockets(struct link_call *call, const struct link_reply *r);

/* In the name of who waits for longest. */
static void ask_as(struct guest *g, const struct guest_user *u, struct node_request *rq)
{
	g->wakes = u != NULL;
	g->asked_to_agent = u && u->to_agent;
	g->asked_token[0] = '\0';
	if (!u)
		return;
	rq->flags = NODE_AUTO_RESUME | (u->to_agent ? NODE_TO_AGENT : NODE_PRIVATE);
	(void)!bytes_to_str(token_of(u), g->asked_token, sizeof(g->asked_token));
}

static void ask_node(struct guest *g, size_t count)
{
	struct node_request rq = { .verb = NODE_SOCKETS };

	if (g->asked || g->failed.active)
		return;
	memcpy(rq.id, g->id, sizeof(rq.id));
	rq.count = (uint32_t)(count < GUEST_SPARE_MAX ? count : GUEST_SPARE_MAX);
	ask_as(g, g->waiting.first, &rq);
	g->asked =
		node_link_call(g->cache->gateway->node, &g->call, &rq, bytes_str(g->asked_token),
			       g->wakes ? GUEST_WAKE_MS : GUEST_CALL_MS, on_sockets, &g->why) == 0;
	if (g->asked)
		return;
	g->why.code = ERR_UNAVAILABLE;
	timer_start(&g->failed, 0); /* no callback from inside a call */
}

/* Sockets asked for before somebody wants them: more where there are many who may. */
static size_t ahead(const struct guest *g)
{
	return g->n_users / 4 > GUEST_AHEAD ? g->n_users / 4 : GUEST_AHEAD;
}

/* For those who still wait. */
static void ask_again(struct guest *g)
{
	size_t n = 0;

	for (struct guest_user *u = g->waiting.first; u && n < GUEST_SPARE_MAX; u = u->next)
		n++;
	if (n > 0)
		ask_node(g, n + ahead(g));
}

/* Those who wait get theirs; if there are not enough, node is asked again. */
static void hand_out(struct guest *g)
{
	g->hold++;
	while (g->known && g->n_spare > 0 && g->waiting.first) {
		struct guest_user *u = g->waiting.first;

		guest_users_move(u, &g->busy);
		u->ops->on_socket(u, take_spare(g), NULL);
	}
	g->hold--;
	if (!guest_cache_room(g->cache, 0))
		drop_spare(g);
	ask_again(g);
}

/* What node says of it, for the first time or again. What its owner said of its ports stays. */
static int learn(struct guest *g, const struct node_sandbox *info, struct bytes text, int *fds,
		 size_t n_fds, struct err *err)
{
	bool same = g->ever && g->info.generation == info->generation;
	struct ingress ingress = same ? g->ingress : (struct ingress){ 0 };

	if (!same && (info->flags & NODE_INGRESS) && ingress_recall(text, &ingress, err) < 0) {
		err->code = ERR_UNAVAILABLE; /* node's fault, not that of who asks */
		return -1;
	}
	if (g->ever && !same) {
		unlearn(g); /* its old network is no more */
		end_busy(g);
	}
	g->known = g->ever = true;
	g->info = *info;
	g->ingress = ingress;
	for (size_t i = 0; i < n_fds && g->n_spare < GUEST_SPARE_MAX; i++)
		put_spare(g, take_fd(&fds[i]));
	return 0;
}

static void sandbox_gone(struct guest *g)
{
	g->ever = false;
	unlearn(g);
	end_busy(g);
}

/* Paused and no more are the same to a question that does not wake; who began to wait meanwhile
 * asks his own. A token that is wrong is one client's. */
static void refused(struct guest *g, const struct err *err)
{
	bool over = err->code == ERR_NOT_FOUND || err->code == ERR_DENIED;

	g->hold++;
	if (over)
		sandbox_gone(g);
	else
		unlearn(g);
	if (!over || g->wakes)
		fail_waiting(g, err, err->code != ERR_DENIED);
	ask_again(g);
	g->hold--;
}

static void on_sockets(struct link_call *call, const struct link_reply *r)
{
	const struct err *err = r->err;
	const struct node_reply *reply = node_reply_of(r);
	struct guest *g = CONTAINER_OF(call, struct guest, call);
	struct err none;

	g->asked = false;
	g->hold++;
	if (err) {
		refused(g, err);
	} else if (reply->sandbox.state != NODE_RUNNING) {
		err_set(&none, ERR_NOT_FOUND, 0, "sandbox %s is ending", g->id);
		refused(g, &none);
	} else if (r->n_fds == 0 || strncmp(reply->sandbox.id, g->id, sizeof(g->id)) != 0) {
		err_set(&none, ERR_UNAVAILABLE, 0, "no sockets of sandbox %s", g->id);
		refused(g, &none);
	} else if (learn(g, &reply->sandbox, r->after, r->fds, r->n_fds, &none) < 0) {
		refused(g, &none);
	} else {
		hand_out(g);
	}
	g->hold--;
	settle(g);
}

static struct guest *guest_new(struct guest_cache *c, const char *id)
{
	struct guest *g = calloc(1, sizeof(*g));
	struct guest **at = bucket(c, id);

	if (!g)
		return NULL;
	g->cache = c;
	(void)!bytes_to_str(bytes_str(id), g->id, sizeof(g->id));
	g->waiting.last = &g->waiting.first;
	g->busy.last = &g->busy.first;
	timer_init(&g->failed, c->gateway->loop, on_failed);
	guest_pool_init(g);
	list_add(at, g);
	c->n_guests++;
	return g;
}

int guest_join(struct guest_cache *c, const char *id, struct guest_user *u,
	       const struct guest_user_ops *ops, struct err *err)
{
	struct guest *g = find(c, id);

	assert(strlen(id) <= NODE_ID_MAX);
	if (!g)
		g = guest_new(c, id);
	if (!g)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate guest");
	*u = (struct guest_user){ .ops = ops, .guest = g };
	guest_users_add(&g->busy, u);
	g->n_users++;
	settle(g);
	return 0;
}

void guest_leave(struct guest_user *u)
{
	struct guest *g = u->guest;

	if (!g)
		return;
	guest_users_remove(u);
	u->guest = NULL;
	g->n_users--;
	settle(g);
}

bool guest_socket(struct guest_user *u, int *ret_fd)
{
	struct guest *g = u->guest;

	if (!g->known || g->n_spare == 0 || g->waiting.first) {
		guest_users_move(u, &g->waiting);
		ask_node(g, 1 + ahead(g));
		return false;
	}
	*ret_fd = take_spare(g);
	if (g->n_spare == 0 && guest_cache_room(g->cache, 1))
		ask_node(g, ahead(g));
	return true;
}

void guest_doubt(struct guest_user *u)
{
	unlearn(u->guest);
}

/* The whole cache. */

static void sweep_guest(struct guest *g, uint64_t now_ms)
{
	if (g->idle && now_ms - g->idle_ms >= g->cache->idle_ms)
		guest_free(g);
	else if (!g->known && is_used(g))
		ask_node(g, 1); /* streams that go on: does their sandbox? */
}

static void on_sweep(struct timer *t)
{
	struct guest_cache *c = CONTAINER_OF(t, struct guest_cache, sweep);
	uint64_t now_ms = loop_now_ms(c->gateway->loop);

	for (size_t i = 0; i < GUEST_BUCKETS; i++)
		list_each(struct guest, g, c->buckets[i])
			sweep_guest(g, now_ms);
}

int guest_cache_open(struct gateway *g, struct err *err)
{
	struct guest_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate the cache of guests");
	c->gateway = g;
	c->address = GUEST_ADDRESS;
	c->agent_port = GUEST_AGENT_PORT;
	c->held_max = GATEWAY_HELD_MAX;
	c->idle_ms = GUEST_IDLE_MS;
	c->agent_ms = GUEST_AGENT_MS;
	c->users_max = GUEST_USERS_MAX;
	random_fill(&c->seed, sizeof(c->seed));
	timer_init(&c->sweep, g->loop, on_sweep);
	timer_repeat(&c->sweep, GUEST_SWEEP_MS);
	g->guests = c;
	return 0;
}

static void guest_close(struct guest *g)
{
	struct err why;

	err_set(&why, ERR_UNAVAILABLE, 0, "the gateway is going away");
	g->hold++;
	end_busy(g); /* some begin again and wait */
	fail_waiting(g, &why, true);
	g->hold--;
	guest_free(g);
}

void guest_cache_close(struct guest_cache *c)
{
	if (!c)
		return;
	timer_stop(&c->sweep);
	for (size_t i = 0; i < GUEST_BUCKETS; i++)
		while (c->buckets[i])
			guest_close(c->buckets[i]);
	c->gateway->guests = NULL;
	free(c);
}

void guest_cache_gone(struct guest_cache *c, const char *id, uint32_t generation)
{
	struct guest *g = find(c, id);

	if (!g || !g->ever || g->info.generation != generation)
		return;
	g->hold++;
	sandbox_gone(g);
	g->hold--;
	settle(g);
}

void guest_cache_forget(struct guest_cache *c)
{
	for (size_t i = 0; i < GUEST_BUCKETS; i++)
		list_each(struct guest, g, c->buckets[i]) {
			unlearn(g);
			if (is_used(g))
				ask_node(g, 1);
			idle_remove(g);
			settle(g);
		}
}
