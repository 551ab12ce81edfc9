/* fuzz_opened.c - an injector's worker: guests, servers and egress's channel, played by the input.
 *
 * Promises: what reaches a server of plain HTTP are requests for the named host, each with our
 * field once and not the guest's; nothing of ours reaches the guest; no order of their doings ends
 * the process, and afterwards nothing is left, not even a descriptor.
 */
#include "fuzz/script.h"
#include "http/body.h"
#include "http/http_rewrite.h"
#include "base/fdmsg.h"
#include "injector/worker/opened.h"
#include "tls/authority.h"
#include "wire/http1_field.h"

enum { PEERS = 5, STEPS_MAX = 120, SEEN_MAX = 1 << 20 };

#define HOST  "a.test"
#define VALUE "what-we-add"

struct peer {
	int guest, server;
	bool checked;    /* the server's side is plain HTTP, and was not switched to another */
	struct buf seen; /* by the server */
};

static struct {
	struct loop *loop;
	struct worker worker;
	int channel; /* egress's end */
	bool ended;
	struct peer peers[PEERS];
} w;

static struct worker_tools tools; /* made once, as is what a worker is told */
static struct buf told;

/* --- what a worker is told ---------------------------------------------------------------------
 */

static void put_told(const struct buf *cert, const struct buf *key)
{
	AUTO(json_decrefp) json_t *all = NULL;
	struct err err;

	all = json_pack("{s:[{s:s,s:b,s:s,s:[[s,s]]}],s:s%,s:s%}", "rules", "host", HOST, "secret",
			0, "refuse", "", "headers", "X-Ours", VALUE, "cert", cert->ptr, cert->len,
			"key", key->ptr, key->len);
	told = BUF_MAX(WORKER_TEXT_MAX);
	MUST(all && json_encode(all, &told, &err) == 0);
}

static void make_tools(void)
{
	AUTO(buf_done) struct buf cert = BUF_MAX(AUTHORITY_TEXT_MAX);
	AUTO(buf_done) struct buf key = BUF_MAX(AUTHORITY_TEXT_MAX);
	const char *hosts[] = { HOST };
	struct authority *root, *branch;
	struct err err;

	if (told.len > 0)
		return;
	MUST(tls_client_open(&(struct tls_trust){ .roots = "" }, &tools.client, &err) == 0);
	MUST(tls_server_open(&tools.server, &err) == 0);
	MUST(authority_new("root", &root, &err) == 0);
	MUST(authority_branch(root, "branch", hosts, COUNT(hosts), &branch, &err) == 0);
	MUST(authority_cert_text(branch, &cert, &err) == 0);
	MUST(authority_key_text(branch, &key, &err) == 0);
	put_told(&cert, &key);
	authority_free(branch);
	authority_free(root);
}

/* --- what the others see -----------------------------------------------------------------------
 */

static void must_be_ours(const struct http1_head *h)
{
	struct bytes host = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < h->n_fields; i++) {
		if (!http_rewrite_same(h->fields[i].name, BYTES_LIT("x-ours")))
			continue;
		n++;
		MUST(bytes_eq(h->fields[i].value, BYTES_LIT(VALUE)));
	}
	MUST(n == 1 && http1_find(h, "host", &host) == 1);
	MUST(bytes_eq_nocase(bytes_head(host, strlen(HOST)), BYTES_LIT(HOST)));
}

/* True: all of its body is there, and *in begins behind it. */
static bool pass_body(const struct http1_head *h, struct bytes *in)
{
	struct body_in body;
	struct bytes piece;
	enum decode d;
	struct err err;

	body_in_init(&body, h);
	do
		d = body_in_next(&body, in, &piece, &err);
	while (d == DECODE_OK && piece.len > 0);
	MUST(d != DECODE_BAD);
	return d == DECODE_OK;
}

static void must_be_requests(struct bytes in)
{
	struct http1_head h;
	struct err err;

	while (in.len > 0) {
		size_t scanned = 0, used;
		enum decode d = http1_head_end(in, &scanned, &used, &err);

		MUST(d != DECODE_BAD);
		if (d == DECODE_MORE)
			return;
		MUST(http1_parse_request(bytes_head(in, used), &h, &err) == 0);
		must_be_ours(&h);
		in = bytes_tail(in, used);
		if (!pass_body(&h, &in))
			return;
	}
}

static void server_hears(struct peer *p, size_t max)
{
	struct bytes in = script_take(p->server, max);
	struct err err;

	if (!p->checked || in.len == 0)
		return;
	if (buf_add(&p->seen, in, &err) < 0)
		p->checked = false;
	else
		must_be_requests(buf_view(&p->seen));
}

static void guest_hears(const struct peer *p, size_t max)
{
	struct bytes in = script_take(p->guest, max);

	MUST(in.len == 0 || !memmem(in.ptr, in.len, VALUE, strlen(VALUE)));
}

/* --- what they do ------------------------------------------------------------------------------
 */

static struct bytes a_request(uint8_t which)
{
	static const char *const all[] = {
		"GET / HTTP/1.1\r\nHost: a.test\r\nX-Ours: mine\r\nX_Ours: mine\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello",
		"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\nabc\r\n0\r\nX-Ours: mine\r\n\r\n",
		"GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade, x-ours\r\n"
		"Upgrade: websocket\r\n\r\n",
		"TRACE / HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n",
		"GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close, x-ours\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade, HTTP2-Settings\r\n"
		"Upgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 70000\r\n\r\n",
	};

	return bytes_str(all[which % COUNT(all)]);
}

static struct bytes an_answer(uint8_t which)
{
	static const char *const all[] = {
		"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
		"HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
		"HTTP/1.1 100 C\r\n\r\n",
		"HTTP/1.1 426 U\r\ncontent-length: 0\r\n\r\n",
	};

	return bytes_str(all[which % COUNT(all)]);
}

/* egress hands over a connection; what the guest has said so far comes with it. */
static void hand(struct peer *p, uint8_t how, struct bytes first)
{
	struct injector_hand m = { .version = INJECTOR_HAND_VERSION,
				   .tls = how >> 7,
				   .tag = (uint64_t)(p - w.peers) + 1,
				   .bytes_per_s = how & 1 ? 3000 : 0,
				   .port = 80,
				   .first_len = (uint32_t)first.len };
	int guest[2], server[2];
	struct err err;

	if (p->guest >= 0 || p->server >= 0 || w.channel < 0 || (!m.tls && first.len == 0))
		return;
	script_pair(SOCK_STREAM, guest);
	script_pair(SOCK_STREAM, server);
	snprintf(m.name, sizeof(m.name), "%s", how & 2 ? "b.test" : HOST);
	(void)!fdmsg_send_pair(w.channel, (struct bytes){ (const uint8_t *)&m, sizeof(m) }, first,
			       (int[]){ guest[1], server[1] }, INJECTOR_HAND_FDS, &err);
	close(guest[1]);
	close(server[1]);
	p->guest = guest[0];
	p->server = server[0];
	p->checked = !m.tls;
	buf_clear(&p->seen);
}

/* A server that has said something may have agreed to another protocol. */
static void server_says(struct peer *p, struct bytes said)
{
	p->checked &= said.len == 0;
	script_put(p->server, said);
}

static void egress_does(uint8_t how, struct bytes said)
{
	if (how == 7)
		script_drop(&w.channel, false);
	else if (how == 9)
		script_put(w.channel, said);
	else
		(void)script_take(w.channel, sizeof(struct injector_over));
}

static void step(uint8_t op, uint8_t a, struct bytes *in)
{
	struct peer *p = &w.peers[a % PEERS];
	uint8_t how;

	switch (op % 11) {
	case 0:
		how = script_byte(in);
		hand(p, how & 127, a_request(script_byte(in)));
		break;
	case 1:
		how = script_byte(in);
		hand(p, how, script_said(in, false));
		break;
	case 2:
		script_put(p->guest, a_request(script_byte(in)));
		break;
	case 3:
		script_put(p->guest, script_said(in, a & 64));
		break;
	case 4:
		script_end(&p->guest, a);
		break;
	case 5:
		guest_hears(p, (size_t)script_byte(in) * 256 + 1);
		break;
	case 6:
		server_says(p, an_answer(script_byte(in)));
		break;
	case 7:
		server_says(p, script_said(in, a & 64));
		break;
	case 8:
		script_end(&p->server, a);
		break;
	case 9:
		server_hears(p, (size_t)script_byte(in) * 256 + 1);
		break;
	case 10:
		egress_does(a, script_said(in, false));
		break;
	}
}

/* --- a run -------------------------------------------------------------------------------------
 */

static void on_end(struct worker *k)
{
	(void)k;
	w.ended = true;
}

/* Its key takes longer to read than a run: it serves the next one, too, if it is still there. */
static void hire(void)
{
	static const struct worker_ops ops = { on_end };
	struct err err;
	int pair[2];

	MUST(loop_open(&w.loop, &err) == 0);
	script_pair(SOCK_SEQPACKET, pair);
	w.channel = pair[0];
	w.ended = false;
	MUST(worker_open(&w.worker, w.loop, &ops, &tools, pair[1], buf_view(&told), &err) == 0);
}

static void dismiss(void)
{
	worker_close(&w.worker);
	script_drop(&w.channel, false);
	loop_free(TAKE(w.loop));
}

static void begin(void)
{
	for (int i = 0; i < PEERS; i++)
		w.peers[i] = (struct peer){ -1, -1, false, BUF_MAX(SEEN_MAX) };
	share_open(&w.worker.share, w.loop, 0);
}

static void end(void)
{
	for (int i = 0; i < PEERS; i++) {
		server_hears(&w.peers[i], SEEN_MAX);
		guest_hears(&w.peers[i], SEEN_MAX);
	}
	while (w.worker.all)
		opened_cut(w.worker.all);
	MUST(w.worker.n == 0);
	share_close(&w.worker.share);
	for (int i = 0; i < PEERS; i++) {
		script_drop(&w.peers[i].guest, true);
		script_drop(&w.peers[i].server, true);
		buf_done(&w.peers[i].seen);
	}
	do
		script_turn(w.loop, 3);
	while (!w.ended && script_take(w.channel, sizeof(struct injector_over)).len > 0);
}

static void run(struct bytes in)
{
	begin();
	for (int i = 0; i < STEPS_MAX && in.len > 0 && !w.ended; i++) {
		uint8_t op = script_byte(&in);

		step(op, script_byte(&in), &in);
		if (!(op & 128)) /* else it is done in the same breath as the next */
			script_turn(w.loop, 2);
	}
	script_turn(w.loop, 2);
	end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int lowest;

	if (memmem(data, size, VALUE, strlen(VALUE)))
		return 0; /* nobody would know whose it is */
	make_tools();
	if (!w.loop)
		hire();
	lowest = lowest_free();
	run((struct bytes){ data, size });
	MUST(w.channel < 0 || lowest_free() == lowest);
	if (w.ended || w.channel < 0)
		dismiss();
	return 0;
}
