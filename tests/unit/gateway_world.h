/* gateway_world.h - for tests of the sandbox plane: a gateway, a node that says what the test
 * wants, and a guest that behaves well (test_http_service.h) or follows a script.
 *
 * node_link.h is played here, so the test is not linked with the real one.
 */
#pragma once

#include "tests/unit/test_http_service.h"

#include "gateway/proxies.h"
#include "gateway/relay/relay.h"
#include "net/listen.h"

enum node_mood {
	NODE_GIVES,
	NODE_REFUSES,
	NODE_AWAY,
	NODE_BUSY,
	NODE_CROWDED,
	NODE_ELSEWHERE,
	NODE_SILENT,
	NODE_BARE,
	NODE_FULL,
};
enum script_end { THEN_HOLD, THEN_CLOSE, THEN_RESET, THEN_SHUT };

struct peer { /* the guest's end of a connection, in script mode */
	struct ear ear;
	const struct script *script;
	struct timer look;
	size_t written;
	bool ended;
	struct peer *next;
};

struct script {
	struct bytes text;
	enum script_end then;
	bool at_once;  /* not after the head of the request */
	size_t piece;  /* written so much at a time; 0: all */
	size_t repeat; /* the text, so often; 0: once */
};

struct node_link {
	struct link link; /* of which nothing is used */
	struct loop *l;
	struct link_call *calls; /* not answered yet */
	struct timer answer;
	enum node_mood mood;
	uint32_t generation, state;
	size_t n_calls, n_sockets;
	uint32_t signed_flags; /* of the last NODE_SIGNED */
	uint32_t flags;        /* of the last NODE_SOCKETS */
	char token[GUEST_TOKEN_MAX + 1];
	bool paused;               /* until somebody may resume it, */
	const char *wants;         /* at the agent's port with this token */
	const char *traffic_token; /* NULL: it is open to everybody */
	bool open;                 /* with a token all the same: for ports that are guarded */
	const char *text;          /* with what its owner said of its ports; NULL: nothing */
	size_t n_resumes;
};

struct world {
	struct loop *l;
	struct gateway g;
	struct http_server http;
	struct proxies proxies; /* none */
	struct node_link node;
	struct listener door;
	uint16_t port;
	struct service sv; /* the guest, when there is no script */
	const struct script *script;
	struct stream *(*wrap)(struct world *w,
			       struct stream *s); /* NULL: the guest speaks plainly */
	struct peer *peers;
	size_t n_accepted;
	struct ear client;
};

/* The node. */

static inline void call_unlink(struct link_call *c)
{
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->link = NULL;
}

void link_cancel(struct link_call *c)
{
	if (c->link)
		call_unlink(c);
}

/* What is wrong with the question. */
static inline enum err_code node_minds(struct node_link *n)
{
	static const enum err_code moods[] = { [NODE_REFUSES] = ERR_NOT_FOUND,
					       [NODE_AWAY] = ERR_UNAVAILABLE,
					       [NODE_BUSY] = ERR_EXISTS,
					       [NODE_CROWDED] = ERR_EXHAUSTED,
					       [NODE_ELSEWHERE] = ERR_MISMATCH };

	if (n->mood < COUNT(moods) && moods[n->mood])
		return moods[n->mood];
	if (!n->paused)
		return ERR_NONE;
	if (!(n->flags & NODE_AUTO_RESUME))
		return ERR_NOT_FOUND;
	if ((n->flags & NODE_TO_AGENT) && n->wants && strcmp(n->token, n->wants) != 0)
		return ERR_DENIED;
	if ((n->flags & NODE_PRIVATE) && n->traffic_token && !n->open &&
	    strcmp(n->token, n->traffic_token) != 0)
		return ERR_DENIED;
	n->paused = false;
	n->n_resumes++;
	n->generation++;
	return ERR_NONE;
}

static inline void node_answer(struct node_link *n, struct link_call *c)
{
	struct node_reply reply = { .tag = c->tag };
	bool is_signed = c->len == 0; /* nobody asks for no sockets */
	size_t count = n->mood == NODE_BARE ? 0 : c->len;
	enum err_code code = node_minds(n);
	int fds[NODE_FDS_MAX];
	struct err err;

	call_unlink(c);
	if (code) {
		err_set(&err, code, 0, "no");
		c->on_done(c, &(struct link_reply){ .err = &err });
		return;
	}
	for (size_t i = 0; i < count; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		assert_true(fds[i] >= 0);
	}
	n->n_sockets += count;
	if (is_signed)
		(void)snprintf(reply.sandbox.id, sizeof(reply.sandbox.id), "abc");
	else
		memcpy(reply.sandbox.id, CONTAINER_OF(c, struct guest, call)->id,
		       sizeof(reply.sandbox.id));
	reply.sandbox.generation = n->generation;
	reply.sandbox.state = n->state;
	reply.sandbox.flags =
		(n->traffic_token && !n->open ? NODE_PRIVATE : 0u) | (n->text ? NODE_INGRESS : 0u);
	if (n->traffic_token)
		(void)snprintf(reply.sandbox.traffic_token, sizeof(reply.sandbox.traffic_token),
			       "%s", n->traffic_token);
	c->on_done(c, &(struct link_reply){ .head = { (const uint8_t *)&reply, sizeof(reply) },
					    .after = bytes_str(n->text ? n->text : ""),
					    .fds = fds,
					    .n_fds = count });
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static inline void node_on_answer(struct timer *t)
{
	struct node_link *n = CONTAINER_OF(t, struct node_link, answer);

	while (n->calls && n->mood != NODE_SILENT)
		node_answer(n, n->calls);
}

int node_link_call(struct node_link *n, struct link_call *c, const struct node_request *rq,
		   struct bytes text, uint64_t deadline_ms, link_done_fn *on_done, struct err *err)
{
	if (rq->verb == NODE_SIGNED) {
		assert_true(text.len > 0);
		n->signed_flags = rq->flags;
	} else {
		assert_int_equal(rq->verb, NODE_SOCKETS);
		assert_true(rq->count >= 1 && rq->count <= NODE_FDS_MAX);
		assert_true(text.len <= GUEST_TOKEN_MAX);
		assert_true((rq->flags & (NODE_TO_AGENT | NODE_PRIVATE)) || text.len == 0);
		n->flags = rq->flags;
		assert_true(bytes_to_str(text, n->token, sizeof(n->token)));
	}
	assert_true(deadline_ms > 0 && !c->link);
	n->n_calls++;
	if (n->mood == NODE_FULL)
		return err_set(err, ERR_EXHAUSTED, 0, "too many calls");
	*c = (struct link_call){ .on_done = on_done, .link = &n->link, .tag = n->n_calls };
	c->len = rq->count;
	c->next = n->calls;
	c->prev = &n->calls;
	if (c->next)
		c->next->prev = &c->next;
	n->calls = c;
	timer_start(&n->answer, 0);
	return 0;
}

/* The guest. */

static inline void peer_write(struct peer *p)
{
	const struct script *s = p->script;
	size_t all = s->text.len * (s->repeat ? s->repeat : 1);
	struct err err;

	while (p->written < all && !p->ear.fails && stream_queued(p->ear.s) < STREAM_LOW_WATER) {
		struct bytes next = bytes_tail(s->text, p->written % s->text.len);

		next = bytes_head(next, s->piece ? s->piece : next.len);
		if (stream_write(p->ear.s, next, &err) < 0)
			return;
		p->written += next.len;
		if (s->piece)
			return;
	}
	if (p->written < all || p->ended || p->ear.fails || stream_queued(p->ear.s) > 0)
		return;
	p->ended = true;
	if (s->then == THEN_SHUT)
		stream_shut(p->ear.s);
	else if (s->then == THEN_CLOSE)
		stream_close(TAKE(p->ear.s));
	else if (s->then == THEN_RESET)
		stream_abort(TAKE(p->ear.s));
}

static inline void peer_on_look(struct timer *t)
{
	struct peer *p = CONTAINER_OF(t, struct peer, look);
	bool asked = p->ear.got.len >= 4 && memmem(p->ear.got.ptr, p->ear.got.len, "\r\n\r\n", 4);

	if (p->ear.s && (asked || p->script->at_once))
		peer_write(p);
}

static inline void world_on_accept(struct listener *ln, struct stream *s, const struct addr *from)
{
	struct world *w = CONTAINER_OF(ln, struct world, door);
	struct peer *p;

	(void)from;
	w->n_accepted++;
	if (w->wrap)
		s = w->wrap(w, s);
	if (!w->script) {
		service_add(&w->sv, s);
		return;
	}
	p = calloc(1, sizeof(*p));
	assert_non_null(p);
	p->script = w->script;
	p->next = w->peers;
	w->peers = p;
	ear_init(&p->ear, s);
	stream_read(s, true);
	timer_init(&p->look, w->l, peer_on_look);
	timer_repeat(&p->look, 1);
}

static inline void peers_done(struct world *w)
{
	while (w->peers) {
		struct peer *p = w->peers;

		w->peers = p->next;
		timer_stop(&p->look);
		ear_done(&p->ear);
		free(p);
	}
}

/* The gateway. */

static inline void world_on_request(struct http_server *sv, struct http_request *rq)
{
	struct world *w = CONTAINER_OF(sv, struct world, http);
	struct dispatch to;

	if (!proxies_admit(&w->proxies, rq))
		return;
	dispatch_find(http_request_head(rq), "", &to);
	assert_int_not_equal(to.plane, PLANE_API);
	relay_request(&w->g, rq, &to);
}

static inline void world_open(struct world *w)
{
	static const struct http_server_ops ops = { world_on_request };
	static const struct listener_ops door_ops = { world_on_accept };
	const struct http_limits lim = HTTP_LIMITS;
	struct err err = { 0 };
	struct addr at;

	*w = (struct world){ .l = test_loop() };
	w->node = (struct node_link){ .l = w->l, .generation = 1 };
	timer_init(&w->node.answer, w->l, node_on_answer);
	w->g = (struct gateway){ .loop = w->l, .node = &w->node };
	if (guest_cache_open(&w->g, &err) < 0 || addr_ip("127.0.0.1", 0, &at, &err) < 0 ||
	    listener_open(&w->door, w->l, &door_ops, &at, 0, 1000, &err) < 0)
		fail_msg("%s", err.msg);
	listener_addr(&w->door, &at);
	w->port = addr_port(&at);
	w->g.guests->address = "127.0.0.1";
	http_server_init(&w->http, w->l, &ops, &lim);
	service_open(&w->sv, w->l, &lim);
}

/* A client with an empty ear; the one before is gone. */
static inline void world_client(struct world *w)
{
	struct err err = { 0 };
	struct addr from;
	int fd[2];

	if (w->client.s)
		ear_done(&w->client);
	buf_done(&w->client.got);
	tcp_pair(fd);
	ear_init(&w->client, test_stream(w->l, fd[0]));
	stream_read(w->client.s, true);
	if (addr_ip("192.0.2.7", 4711, &from, &err) < 0 ||
	    http_server_add(&w->http, test_stream(w->l, fd[1]), &from, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline void world_close(struct world *w)
{
	if (w->client.s)
		ear_done(&w->client);
	http_server_done(&w->http);
	guest_cache_close(w->g.guests);
	assert_null(w->node.calls);
	timer_stop(&w->node.answer);
	listener_close(&w->door);
	peers_done(w);
	service_close(&w->sv);
	loop_free(w->l);
}

static inline void say(struct world *w, const char *text)
{
	struct err err = { 0 };

	if (stream_write(w->client.s, bytes_str(text), &err) < 0)
		fail_msg("%s", err.msg);
}

/* The head of a request, from a new client. */
static inline void ask_of(struct world *w, const char *id, const char *method, const char *target,
			  const char *fields)
{
	char text[4096];

	world_client(w);
	(void)snprintf(text, sizeof(text),
		       "%s %s HTTP/1.1\r\nhost: gw.test\r\ne2b-sandbox-id: %s\r\n"
		       "e2b-sandbox-port: %u\r\n%s\r\n",
		       method, target, id, (unsigned int)w->port, fields);
	say(w, text);
}

static inline void ask(struct world *w, const char *method, const char *target, const char *fields)
{
	ask_of(w, "abc", method, target, fields);
}

static inline bool heard(const struct ear *e, const char *part)
{
	return e->got.len > 0 && memmem(e->got.ptr, e->got.len, part, strlen(part));
}

static inline bool parted(const struct ear *e)
{
	return e->ends > 0 || e->fails > 0;
}

/* The only relay there is. */
static inline struct relay *world_relay(struct world *w)
{
	for (size_t i = 0; i < GUEST_BUCKETS; i++)
		for (struct guest *g = w->g.guests->buckets[i]; g; g = g->next)
			if (g->busy.first)
				return CONTAINER_OF(g->busy.first, struct relay, user);
	return NULL;
}
