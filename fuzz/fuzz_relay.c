/* fuzz_relay.c - promises of the way to a sandbox as a whole: server, cache of guests, client,
 * tunnel, TLS. The input is a script of steps of clients, guests and node in any order.
 *
 * Whatever they do: nobody aborts, everything is let go at the end, what a client hears begins as
 * an answer, and what lets a client in is not told to the guest; nor is what a client says of who
 * it is, and nobody is counted who has left.
 */
#include <netinet/in.h>
#include <sys/socket.h>

#include "fuzz/relay_node.h"
#include "fuzz/sent.h"
#include "gateway/proxies.h"
#include "net/fd_stream.h"
#include "tls/tls_stream.h"

enum {
	CLIENTS = 4,
	GUESTS = 8,
	DOORS = 2,
	STEPS_MAX = 120,
	SHORT_MS = 2, /* of times, where an input asks for short ones */
	KEPT = 4096,  /* of what somebody hears */
};

enum {
	SPEC_SHORT = 1 << 0,
	SPEC_AGENT_SHORT = 1 << 1,
	SPEC_CROWDED = 1 << 2,
	SPEC_LISTED = 1 << 3
};

struct party {  /* a client or a guest */
	int fd; /* -1: not there */
	char heard[KEPT + 1];
	size_t n;
	size_t door; /* a guest: 0 is the agent's */
};

static struct {
	struct loop *l;
	struct gateway g;
	struct http_server http;
	struct proxies proxies;
	struct node_link node;
	int door[DOORS];
	uint16_t port[DOORS];
	struct party client[CLIENTS], guest[GUESTS];
	struct timer tick;
} w;

/* --- node ------------------------------------------------------------------------------------ */

static void wish_for_ports(bool guarded)
{
	static char text[128];

	if (guarded)
		(void)snprintf(text, sizeof(text), "{\"guardedPorts\":\"%u/devtools\"}",
			       (unsigned int)w.port[1]);
	else
		(void)snprintf(
			text, sizeof(text),
			"{\"network\":{\"httpsPorts\":[%u],\"maskRequestHost\":\"m:${PORT}\"}}",
			(unsigned int)w.port[1]);
	w.node.text = text;
	w.node.flags |= NODE_INGRESS;
}

static void node_step(uint8_t how)
{
	struct guest_cache *c = w.g.guests;

	switch (how >> 4) {
	case 0:
		w.node.mood = how & 15;
		break;
	case 1:
		w.node.generation++;
		break;
	case 2:
		guest_cache_gone(c, how & 1 ? "abc" : "xyz", w.node.generation - (how >> 1 & 1));
		break;
	case 3:
		guest_cache_forget(c);
		break;
	case 4:
		w.node.flags ^= NODE_PRIVATE;
		break;
	case 5:
		wish_for_ports(how & 1);
		break;
	case 6:
		w.node.flags &= ~(uint32_t)NODE_INGRESS;
		break;
	case 7:
		(void)guest_cache_room(c, how & 15);
		break;
	case 8:
		timer_start(&w.node.answer, 0);
		break;
	case 9:
		c->held_max = how & 15;
		break;
	case 10:
		c->users_max = 1 + (how & 3);
		break;
	case 11:
		if (w.g.relays.oldest) { /* nothing moves in it for long */
			w.g.relays.oldest->moved_ms -= RELAY_REST_MS;
			(void)relays_shed(&w.g);
		}
		break;
	default:
		w.node.mood = 0;
		break;
	}
}

/* --- clients and guests ---------------------------------------------------------------------- */

static void put(struct party *p, struct bytes b)
{
	if (p->fd >= 0 && b.len > 0)
		(void)!send(p->fd, b.ptr, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A client hears answers and nothing else; after a switch whatever the guest says. */
static void check_client(const struct party *p)
{
	static const char begin[] = "HTTP/1.1 ";

	MUST(strncmp(p->heard, begin, p->n < sizeof(begin) - 1 ? p->n : sizeof(begin) - 1) == 0);
}

/* What opens the door stays at the door. */
/* One address, from us; nothing else that says such things. */
static void check_forwarded(const char *head)
{
	static const char ours[] = "\nX-Forwarded-For: ";
	const char *at = strcasestr(head, "\nx-forwarded-for:"), *end;

	MUST(!strcasestr(head, "\nx_forwarded_for:") && !strcasestr(head, "\nforwarded:"));
	if (!at)
		return;
	MUST(strncmp(at, ours, sizeof(ours) - 1) == 0);
	MUST(!strcasestr(at + 1, "\nx-forwarded-for:"));
	end = strchr(at, '\r');
	MUST(!end || !memchr(at, ',', (size_t)(end - at)));
}

static void check_guest(struct party *p)
{
	char *end = strstr(p->heard, "\r\n\r\n");

	if (end)
		*end = '\0';
	MUST(!strcasestr(p->heard, "\n" RELAY_TRAFFIC_TOKEN ":"));
	check_forwarded(p->heard);
	MUST(p->door != 0 || strncmp(p->heard, "GET /control/", 13) != 0);
}

static void hear(struct party *p, size_t n)
{
	static char sink[65536];
	ssize_t got = -1;

	if (p->fd >= 0)
		got = recv(p->fd, sink, n < sizeof(sink) ? n : sizeof(sink), MSG_DONTWAIT);
	if (got <= 0)
		return;
	n = (size_t)got < KEPT - p->n ? (size_t)got : KEPT - p->n;
	for (size_t i = 0; i < n; i++)
		p->heard[p->n + i] = sink[i] == '\0' ? '?' : sink[i];
	p->n += n;
	p->heard[p->n] = '\0';
}

static void part(struct party *p, bool reset)
{
	struct linger now = { .l_onoff = 1 };

	if (p->fd < 0)
		return;
	if (reset)
		(void)setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(p->fd);
	p->fd = -1;
}

static void client_part(struct party *p)
{
	check_client(p);
	part(p, false);
	p->n = 0;
	p->heard[0] = '\0';
}

static void guest_part(struct party *p, bool reset)
{
	check_guest(p);
	part(p, reset);
	p->n = 0;
	p->heard[0] = '\0';
}

static void take_guests(void)
{
	for (size_t d = 0; d < DOORS; d++)
		for (size_t i = 0; i < GUESTS; i++) {
			if (w.guest[i].fd >= 0)
				continue;
			w.guest[i].fd =
				accept4(w.door[d], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
			if (w.guest[i].fd < 0)
				break;
			w.guest[i].door = d;
		}
}

static void client_come(struct party *p)
{
	struct stream *s;
	struct err err;
	struct addr from;
	int fd[2];

	if (p->fd >= 0)
		return;
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0);
	p->fd = fd[0];
	MUST(addr_ip("192.0.2.7", 4711, &from, &err) == 0 &&
	     fd_stream_open(w.l, fd[1], FD_STREAM_BOTH, &s, &err) == 0 &&
	     http_server_add(&w.http, s, &from, &err) == 0);
}

static const char *const requests[] = {
	"GET / HTTP/1.1\r\n",
	"POST /files?path=a HTTP/1.1\r\ncontent-length: 20\r\n",
	"POST /x HTTP/1.1\r\ntransfer-encoding: chunked\r\n",
	"HEAD /x HTTP/1.1\r\n",
	"GET /ws HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n",
	"PUT /big HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 200000\r\n",
	"GET /files?path=a&signature=v1_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\n",
	"OPTIONS /x HTTP/1.1\r\norigin: a\r\naccess-control-request-method: GET\r\n",
	"GET /control/x HTTP/1.1\r\n",
	"GET http://gw.test/y?z HTTP/1.1\r\n",
	"GET /x HTTP/1.0\r\nconnection: keep-alive\r\n",
	"DELETE /d HTTP/1.1\r\nuser-agent: mozilla\r\ncontent-length: 0\r\n",
	"GET / HTTP/1.1\r\nconnection: x-a, x-b,,close\r\nx-a: 1\r\n",
	"GET /json?e2b-traffic-access-token=sesame HTTP/1.1\r\ncookie: hotcell-pass=c1.2\r\n",
	"GET /json/version HTTP/1.1\r\norigin: http://a\r\ncookie: a; hotcell-pass=x\r\n",
};
enum { SIGNED = 6, NAMED = 13 };

static const char *const answers[] = {
	"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
	"0\r\n\r\n",
	"HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhello",
	"HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: hotcell-tunnel\r\n\r\n",
	"HTTP/1.1 100 C\r\n\r\n",
	"HTTP/1.1 204 N\r\n\r\n",
	"HTTP/1.1 200 OK\r\n\r\nclose me",
	"HTTP/1.1 304 N\r\ncontent-length: 5\r\n\r\n",
	"HTTP/1.1 500 E\r\ncontent-length: 70000\r\nconnection: close\r\n\r\n",
	"HTTP/1.0 200 OK\r\n\r\n",
	"1\r\nx\r\n1\r\ny\r\n",
	"HTTP/1.1 502 x\r\ncontent-length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n\"ws://a\" www",
};

static void client_ask(struct party *p, uint8_t which, uint8_t how)
{
	uint16_t port = how & 1 ? w.port[0] : how & 2 ? w.port[1] : (uint16_t)1;
	char text[1024];

	which %= COUNT(requests);
	client_come(p);
	if (which == NAMED)
		(void)snprintf(text, sizeof(text), "%shost: %u-abc.gw.test\r\n", requests[which],
			       (unsigned int)port);
	else
		(void)snprintf(text, sizeof(text), "%shost: gw.test\r\n", requests[which]);
	put(p, bytes_str(text));
	(void)snprintf(text, sizeof(text), "e2b-sandbox-id: %s\r\ne2b-sandbox-port: %u\r\n",
		       how & 8 ? "xyz" : "abc", (unsigned int)port);
	if (which != SIGNED || !(how & 4))
		put(p, bytes_str(text));
	if (how & 16)
		put(p, BYTES_LIT(RELAY_TRAFFIC_TOKEN ": sesame\r\n"));
	if (how & 32)
		put(p, BYTES_LIT("x-access-token: tok\r\n"));
	if (how & 64)
		put(p, BYTES_LIT("x-forwarded-for: 198.51.100.1, 203.0.113.9\r\n"));
	if (how & 128)
		put(p, BYTES_LIT("x_forwarded_for: 198.51.100.1\r\nforwarded: 198.51.100.1\r\n"));
	put(p, BYTES_LIT("\r\n"));
}

/* --- the script ------------------------------------------------------------------------------ */

static void on_tick(struct timer *t)
{
	(void)t;
}

static void turn(int n)
{
	while (n-- > 0) {
		timer_start(&w.tick, 0);
		(void)loop_turn(w.l);
	}
	timer_stop(&w.tick);
	take_guests();
}

static struct bytes cut(struct bytes *in, size_t n)
{
	struct bytes b = bytes_head(*in, n);

	*in = bytes_tail(*in, b.len);
	return b;
}

static uint8_t next(struct bytes *in)
{
	struct bytes b = cut(in, 1);

	return b.len > 0 ? b.ptr[0] : 0;
}

static struct bytes block_of(size_t n)
{
	static const uint8_t block[70000];

	return (struct bytes){ block, n };
}

static void client_step(uint8_t op, struct party *p, struct bytes *in)
{
	uint8_t n = next(in);

	switch (op) {
	case 0:
	case 1:
		client_ask(p, n, next(in));
		break;
	case 2:
		client_come(p);
		put(p, cut(in, n));
		break;
	case 3:
		client_part(p);
		break;
	case 4:
		if (p->fd >= 0)
			(void)shutdown(p->fd, SHUT_WR);
		break;
	case 5:
		hear(p, (size_t)n * 256 + 1);
		break;
	default:
		put(p, block_of((size_t)n * 270));
		break;
	}
}

static void guest_step(uint8_t op, struct party *p, struct bytes *in)
{
	uint8_t n = next(in);

	switch (op) {
	case 0:
	case 1:
		put(p, bytes_str(answers[n % COUNT(answers)]));
		break;
	case 2:
		put(p, cut(in, n));
		break;
	case 3:
		guest_part(p, n & 1);
		break;
	case 4:
		if (p->fd >= 0)
			(void)shutdown(p->fd, SHUT_WR);
		break;
	case 5:
		hear(p, (size_t)n * 256 + 1);
		break;
	default:
		put(p, block_of((size_t)n * 270));
		break;
	}
}

static void play(struct bytes in)
{
	for (int steps = 0; in.len > 0 && steps < STEPS_MAX; steps++) {
		uint8_t op = next(&in) % 16, who = next(&in);

		if (op < 7)
			client_step(op, &w.client[who % CLIENTS], &in);
		else if (op < 14)
			guest_step((uint8_t)(op - 7), &w.guest[who % GUESTS], &in);
		else if (op == 14)
			node_step(who);
		else
			turn(1 + (who & 7));
		if (op != 15 && who < 128) /* else several at once */
			turn(2);
	}
}

static void on_request(struct http_server *sv, struct http_request *rq)
{
	struct dispatch to;

	(void)sv;
	if (!proxies_admit(&w.proxies, rq))
		return;
	dispatch_find(http_request_head(rq), "", &to);
	if (to.plane == PLANE_API)
		http_fail(rq, 404, "api");
	else
		relay_request(&w.g, rq, &to);
}

static int listen_on(uint16_t *ret)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 64) == 0 &&
	     getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	*ret = ntohs(a.sin_port);
	return fd;
}

static void world_open(struct tls_context *tls, uint8_t spec)
{
	static const struct http_server_ops ops = { on_request };
	struct http_limits lim = HTTP_LIMITS;
	struct err err;

	memset(&w, 0, sizeof(w));
	for (size_t i = 0; i < CLIENTS; i++)
		w.client[i].fd = -1;
	for (size_t i = 0; i < GUESTS; i++)
		w.guest[i].fd = -1;
	for (size_t i = 0; i < DOORS; i++)
		w.door[i] = listen_on(&w.port[i]);
	MUST(loop_open(&w.l, &err) == 0);
	if (spec & SPEC_SHORT)
		lim.head_ms = lim.idle_ms = lim.body_stall_ms = lim.write_stall_ms = SHORT_MS;
	w.node = (struct node_link){ .generation = 1 };
	timer_init(&w.node.answer, w.l, on_answer);
	timer_init(&w.tick, w.l, on_tick);
	w.g = (struct gateway){ .loop = w.l, .node = &w.node, .guest_tls = tls };
	if (spec & SPEC_CROWDED)
		w.g.relays.max = 1;
	if (spec & SPEC_LISTED)
		MUST(proxies_parse(&w.proxies, "192.0.2.7", &err) == 0);
	w.proxies.requests_max = 2;
	MUST(guest_cache_open(&w.g, &err) == 0);
	w.g.guests->address = "127.0.0.1";
	w.g.guests->agent_port = w.port[0];
	if (spec & SPEC_AGENT_SHORT)
		w.g.guests->agent_ms = SHORT_MS;
	http_server_init(&w.http, w.l, &ops, &lim);
}

static void world_close(void)
{
	http_server_done(&w.http);
	guest_cache_close(w.g.guests);
	MUST(!w.node.calls && w.http.n_conns == 0 && !w.http.waiting.first);
	MUST(w.g.relays.n == 0 && !w.g.relays.oldest && !w.g.relays.newest);
	for (size_t i = 0; i < ADDRESS_BUCKETS; i++)
		MUST(!w.proxies.requests.buckets[i]);
	timer_stop(&w.node.answer);
	for (size_t i = 0; i < CLIENTS; i++)
		client_part(&w.client[i]);
	for (size_t i = 0; i < GUESTS; i++)
		guest_part(&w.guest[i], true);
	for (size_t i = 0; i < DOORS; i++)
		close(w.door[i]);
	loop_free(w.l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tls_context *tls;
	struct bytes in = { data, size };
	struct err err;
	int lowest;

	if (!tls)
		MUST(tls_client_open(&(struct tls_trust){ .unverified = true }, &tls, &err) == 0);
	lowest = lowest_free();
	world_open(tls, next(&in));
	play(in);
	turn(3);
	world_close();
	MUST(lowest_free() == lowest);
	return 0;
}
