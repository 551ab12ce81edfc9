/* fuzz_egress.c - a sandbox's whole way out: guests, servers, a resolver that lies, rules that
 * change, an injector that comes and goes, all played by the input.
 *
 * Promises: no order of their doings ends the process; no address inside is dialled but a service
 * of its rules; when the sandbox is forgotten nothing of it is left, not even a descriptor.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "base/log.h"
#include "egress/front_state.h"
#include "egress/hand_over.h"
#include "egress/names.h"
#include "egress/fake_ip.h"
#include "fuzz/script.h"
#include "base/fdmsg.h"

enum { PEERS = 6, PORT = 8080, STEPS_MAX = 100 };

#define GOOD      0x5db8d822 /* 93.184.216.34: a server, or the proxy */
#define OTHER     0x08080404 /* 8.8.4.4: another server */
#define INSIDE    0x0a000001 /* 10.0.0.1: the service db */
#define LOCALHOST 0x7f000001

enum { AT_GOOD, AT_OTHER, AT_INSIDE, PLACES };

static struct world {
	struct loop *loop;
	struct resolver *resolver;
	struct policy_ground ground;
	struct house house;
	struct addr proxy;
	struct sandbox_egress sandbox_egress;
	int guest[PEERS], server[PEERS];
	int injector; /* its worker's end */
	int dns_conn; /* somebody asks over TCP */
	bool served;  /* a rule allowed the service, now or before */
} w;

static struct { /* made once: nothing of a run stays in them */
	int listen[PLACES], dns, dns_tcp, door;
	uint16_t dns_port;
} net;

/* --- the network --------------------------------------------------------------------------- */

static void add_address(const char *name, uint32_t ip)
{
	struct ifreq r = { 0 };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(ip) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	memcpy(&r.ifr_addr, &a, sizeof(a));
	MUST(ioctl(fd, SIOCSIFADDR, &r) == 0);
	r.ifr_flags = IFF_UP;
	MUST(ioctl(fd, SIOCSIFFLAGS, &r) == 0);
	close(fd);
}

static int bound(int type, uint32_t ip, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(ip) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	MUST(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	MUST(type != SOCK_STREAM || listen(fd, 64) == 0);
	return fd;
}

/* A network of its own, as any user. */
static void make_network(void)
{
	static const uint32_t places[PLACES] = { GOOD, OTHER, INSIDE };
	char name[IFNAMSIZ];

	if (net.door > 0)
		return;
	MUST(unshare(CLONE_NEWNET | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) == 0);
	add_address("lo", LOCALHOST);
	for (int i = 0; i < PLACES; i++) {
		snprintf(name, sizeof(name), "lo:%d", i);
		add_address(name, places[i]);
		net.listen[i] = bound(SOCK_STREAM, places[i], PORT);
	}
	net.dns = bound(SOCK_DGRAM, LOCALHOST, 53);
	net.dns_tcp = bound(SOCK_STREAM, LOCALHOST, 53);
	net.door = bound(SOCK_DGRAM, LOCALHOST, 9);
	log_init("fuzz", LOG_ERROR);
}

/* Whoever came is somebody's peer. */
static void take_peers(void)
{
	for (int at = 0; at < PLACES; at++)
		for (int i = 0; i < PEERS; i++) {
			if (w.server[i] >= 0)
				continue;
			w.server[i] =
				accept4(net.listen[at], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
			if (w.server[i] < 0)
				break;
			MUST(at != AT_INSIDE || w.served);
		}
	if (w.dns_conn < 0)
		w.dns_conn = accept4(net.dns_tcp, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static void drain(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		script_drop(&fd, true);
}

/* --- guests ----------------------------------------------------------------------------------- */

static const char *const names[] = { "good.com",    "other.com",
				     "a.good.com",  "db.hotcell.internal",
				     "rebound.com", "opened.com" };

static void guest_begins(int *guest, uint8_t how)
{
	static const uint32_t to[] = { GOOD,       OTHER, INSIDE, FAKE_IP_FIRST, FAKE_IP_FIRST + 1,
				       0x0a010203, GOOD,  GOOD };
	static const uint16_t ports[] = { PORT, 443, 80, PORT };
	struct err err;
	int pair[2];

	if (*guest >= 0 || !w.sandbox_egress.ruled) /* its door sees to that */
		return;
	script_pair(SOCK_STREAM, pair);
	*guest = pair[0];
	(void)!front_start(&w.sandbox_egress, pair[1], to[how % COUNT(to)], ports[how >> 4 & 3],
			   &err);
}

/* A greeting, in records of `piece` bytes (0: in one). */
static size_t put_greeting(uint8_t *out, const char *name, bool hides, uint8_t piece)
{
	static const uint8_t fixed[] = { 0, 0, 2, 0x13, 1, 1, 0 };
	uint8_t m[512] = { 1, 0, 0, 0, 3, 3 };
	size_t n = 38, len = strlen(name), list, at = 0, made = 0;

	memcpy(m + n, fixed, sizeof(fixed));
	list = n += sizeof(fixed);
	n += 2;
	if (len > 0) {
		const uint8_t sni[] = {
			0, 0, 0, (uint8_t)(len + 5), 0, (uint8_t)(len + 3), 0, 0, (uint8_t)len
		};

		memcpy(m + n, sni, sizeof(sni));
		memcpy(m + n + sizeof(sni), name, len);
		n += sizeof(sni) + len;
	}
	if (hides) {
		memcpy(m + n, "\xfe\x0d\0\1\0", 5);
		n += 5;
	}
	m[3] = (uint8_t)(n - 4);
	m[list + 1] = (uint8_t)(n - list - 2);
	for (; at < n; made += 5) {
		size_t k = piece > 0 && piece < n - at ? piece : n - at;

		memcpy(out + made, (uint8_t[]){ 22, 3, 1, 0, (uint8_t)k }, 5);
		memcpy(out + made + 5, m + at, k);
		made += k;
		at += k;
	}
	return made;
}

static void guest_greets(int fd, uint8_t how, const char *name)
{
	uint8_t all[4096];
	size_t n = put_greeting(all, how & 32 ? "" : name, how & 64, how & 128 ? 9 : 0);

	script_put(fd, (struct bytes){ all, n });
}

static void guest_asks(int fd, uint8_t how, uint8_t whom)
{
	static const struct {
		const char *before, *after;
	} all[] = {
		{ "GET / HTTP/1.1\r\nHost: ", "\r\n\r\n" },
		{ "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\nHost: ",
		  "\r\n\r\n" },
		{ "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\nHost: ", "\r\n\r\n" },
		{ "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: ",
		  ":8080\r\n\r\n3\r\nabc\r\n0\r\n\r\n" },
		{ "POST / HTTP/1.1\r\nContent-Length: 70000\r\nHost: ", "\r\n\r\n" },
		{ "GET / HTTP/1.1\r\nHost: ", "" },
		{ "\1\2\3", "" },
	};
	const char *name = names[whom % COUNT(names)];
	size_t ask = how % (COUNT(all) + 1);
	char text[512];

	if (ask == COUNT(all)) {
		guest_greets(fd, how, name);
		return;
	}
	snprintf(text, sizeof(text), "%s%s%s", all[ask].before, name, all[ask].after);
	script_put(fd, bytes_str(text));
}

static void guest_resolves(uint8_t how)
{
	static const struct sockaddr_in nobody = { .sin_family = AF_INET };
	AUTO(buf_done) struct buf q = BUF_MAX(1024);
	struct err err;

	if (dns_write_query(how, names[how % COUNT(names)], how, &q, &err) < 0)
		return;
	if (how & 64)
		q.ptr[q.len - 13] = how; /* another type */
	names_ask(&w.sandbox_egress, net.door, buf_view(&q), &nobody);
}

/* --- servers, resolver, injector ----------------------------------------------------------------
 */

static void server_says(int fd, uint8_t what)
{
	static const char *const all[] = {
		"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
		"HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
		"HTTP/1.1 100 C\r\n\r\n",
		"SSH-2.0-x\r\n",
		"HTTP/1.1 426 U\r\ncontent-length: 0\r\n\r\n",
		"HTTP/1.1 200 Connected\r\n\r\nearly",
	};

	script_put(fd, bytes_str(all[what % COUNT(all)]));
}

static void spoil(struct buf *answer, uint8_t how, struct bytes with)
{
	size_t at = answer->len > with.len ? answer->len - with.len : 0;

	if (how & 8)
		answer->ptr[3] |= (uint8_t)(how >> 4 & 7); /* an error code */
	if (how & 16)
		answer->ptr[2] |= 2; /* cut: over TCP, please */
	for (size_t i = 0; how & 32 && i < with.len && at + i < answer->len; i++)
		answer->ptr[at + i] ^= with.ptr[i];
}

static void resolver_answers(uint8_t how, struct bytes said)
{
	static const uint32_t lies[] = { GOOD, OTHER, INSIDE };
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_RESOLVED_MAX);
	struct dns_addresses a = { .ttl_s = how & 1 ? 60 : 0, .n = how >> 1 & 3 };
	struct sockaddr_in who = { 0 };
	socklen_t len = sizeof(who);
	uint8_t asked[DNS_QUERY_MAX];
	struct dns_query q;
	struct err err;
	ssize_t n;

	if (how & 128 && w.dns_conn >= 0) {
		script_put(w.dns_conn, said);
		return;
	}
	n = recvfrom(net.dns, asked, sizeof(asked), 0, (struct sockaddr *)&who, &len);
	for (size_t i = 0; i < a.n; i++)
		a.ip[i] = lies[(how + i) % COUNT(lies)];
	if (n <= 0 || dns_read_query((struct bytes){ asked, (size_t)n }, &q) != DNS_ASKS ||
	    dns_write_answer(&q, &a, &out, &err) < 0)
		return;
	spoil(&out, how, said);
	(void)!sendto(net.dns, out.ptr, out.len, 0, (struct sockaddr *)&who, len);
}

static void injector_takes(void)
{
	static uint8_t room[INJECTOR_FIRST_MAX + sizeof(struct injector_hand)];
	int fds[INJECTOR_HAND_FDS];
	size_t len, n = 0;
	struct err err;

	if (w.injector < 0 || fdmsg_recv_some(w.injector, room, 1, sizeof(room), &len, fds,
					      INJECTOR_HAND_FDS, &n, &err) < 0)
		return;
	while (n > 0)
		close(fds[--n]);
}

static void injector_does(uint8_t how, struct bytes said)
{
	const struct injector_over over = { .tag = how >> 3 & 7,
					    .goes_on = how >> 6 & 1,
					    .bytes_in = how };
	struct err err;
	int pair[2];

	switch (how & 7) {
	case 0:
		script_drop(&w.injector, false);
		script_pair(SOCK_SEQPACKET, pair);
		w.injector = pair[0];
		(void)!sandbox_egress_injector(&w.sandbox_egress, pair[1], &err);
		break;
	case 1:
		script_drop(&w.injector, false);
		break;
	case 2:
		(void)!sandbox_egress_injector(&w.sandbox_egress, -1, &err);
		break;
	case 3:
		script_put(w.injector, (struct bytes){ (const uint8_t *)&over, sizeof(over) });
		break;
	case 4:
		script_put(w.injector, said);
		break;
	default:
		injector_takes();
	}
}

/* --- the operator, time ------------------------------------------------------------------------
 */

static void new_rules(uint8_t which)
{
	static const char *const all[] = {
		"{}",
		"{\"network\":{\"allowOut\":[\"good.com\",\"*.good.com\"],\"denyOut\":[\"0.0.0.0/"
		"0\"]}}",
		"{\"network\":{\"rules\":{\"opened.com\":[],\"good.com\":[]}}}",
		"{\"services\":[\"db\"]}",
		"{\"allowInternetAccess\":false}",
		"{\"network\":{\"denyOut\":[\"8.8.4.4\"]}}",
		"{\"network\":{\"allowOut\":[\"93.184.216.34\"],\"denyOut\":[\"0.0.0.0/0\"]},"
		"\"known\":[[\"good.com\",\"93.184.216.34\"]]}",
		"{broken",
	};
	struct err err;

	w.served |= which % COUNT(all) == 3;
	if (sandbox_egress_rule(&w.sandbox_egress, bytes_str(all[which % COUNT(all)]), &err) < 0)
		must_say_why(&err);
}

/* Whoever waits for something has waited long enough. */
static void time_passes(uint8_t for_whom)
{
	for (struct front *f = w.sandbox_egress.fronts; f; f = f->next) {
		if (for_whom & 1)
			script_fire(&f->quiet);
		if (for_whom & 2)
			script_fire(&f->late);
		if (for_whom & 4)
			script_fire(&f->way.late);
		if (for_whom & 8 && f->pumping)
			script_fire(&f->pump.idle);
	}
	script_fire(&w.sandbox_egress.share.again);
}

/* --- a run -------------------------------------------------------------------------------------
 */

static void begin(uint8_t mode)
{
	struct question_servers servers = { .n = 1 };
	struct err err;

	w = (struct world){ .injector = -1, .dns_conn = -1 };
	for (int i = 0; i < PEERS; i++)
		w.guest[i] = w.server[i] = -1;
	MUST(loop_open(&w.loop, &err) == 0);
	MUST(addr_ip("127.0.0.1", 53, &servers.all[0], &err) == 0);
	MUST(resolver_open(&w.resolver, w.loop, &servers, &err) == 0);
	w.ground.mode = mode & 3 ? POLICY_OPEN : POLICY_ALLOWLIST;
	MUST(policy_ground_allow(&w.ground, BYTES_LIT("good.com *.good.com 93.184.216.34"), &err) ==
	     0);
	MUST(policy_ground_services(&w.ground, BYTES_LIT("db=10.0.0.1:8080"), &err) == 0);
	w.house =
		(struct house){ w.loop, w.resolver, &w.ground, { 16, 500, mode & 8 ? 20000 : 0 } };
	if (mode & 4) {
		MUST(addr_ip("93.184.216.34", PORT, &w.proxy, &err) == 0);
		w.house.proxy = &w.proxy;
		w.ground.proxy_resolves = !(mode & 128);
	}
	sandbox_egress_open(&w.sandbox_egress, &w.house);
	new_rules(mode >> 4 & 7);
}

static void end(void)
{
	sandbox_egress_forget(&w.sandbox_egress);
	MUST(w.sandbox_egress.n_fronts == 0 && w.sandbox_egress.n_handed == 0 &&
	     w.sandbox_egress.n_asked == 0);
	MUST(!w.sandbox_egress.share.first && w.sandbox_egress.counts.bytes_out == 0);
	share_close(&w.sandbox_egress.share);
	resolver_close(w.resolver);
	policy_ground_done(&w.ground);
	for (int i = 0; i < PEERS; i++) {
		script_drop(&w.guest[i], true);
		script_drop(&w.server[i], true);
	}
	script_drop(&w.dns_conn, true);
	script_drop(&w.injector, false);
	loop_free(w.loop);
	for (int i = 0; i < PLACES; i++)
		drain(net.listen[i]);
	drain(net.dns_tcp);
	while (script_take(net.dns, 1).len > 0)
		;
}

/* `a` says who, and more. */
static void step(uint8_t op, uint8_t a, struct bytes *in)
{
	int *guest = &w.guest[a % PEERS], *server = &w.server[a % PEERS];
	uint8_t how;

	switch (op % 14) {
	case 0:
		guest_begins(guest, script_byte(in));
		break;
	case 1:
		how = script_byte(in);
		guest_asks(*guest, how, script_byte(in));
		break;
	case 2:
		script_put(*guest, script_said(in, a & 64));
		break;
	case 3:
		script_end(guest, a);
		break;
	case 4:
		(void)script_take(*guest, (size_t)script_byte(in) * 256 + 1);
		break;
	case 5:
		server_says(*server, script_byte(in));
		break;
	case 6:
		script_put(*server, script_said(in, a & 64));
		break;
	case 7:
		script_end(server, a);
		break;
	case 8:
		(void)script_take(*server, (size_t)script_byte(in) * 256 + 1);
		break;
	case 9:
		how = script_byte(in);
		resolver_answers(how, script_cut(in, a & 31));
		break;
	case 10:
		injector_does(a, script_cut(in, a & 7 ? script_byte(in) : 0));
		break;
	case 11:
		guest_resolves(a);
		break;
	case 12:
		if (a == 255)
			sandbox_egress_forget(&w.sandbox_egress);
		else
			new_rules(a);
		break;
	case 13:
		time_passes(a);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	uint8_t mode = script_byte(&in);
	int lowest;

	make_network();
	lowest = lowest_free();
	begin(mode);
	for (int i = 0; i < STEPS_MAX && in.len > 0; i++) {
		uint8_t op = script_byte(&in);

		step(op, script_byte(&in), &in);
		if (!(op & 128)) { /* else it is done in the same breath as the next */
			script_turn(w.loop, 2);
			take_peers();
		}
	}
	script_turn(w.loop, 2);
	end();
	MUST(lowest_free() == lowest);
	return 0;
}
