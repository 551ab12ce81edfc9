/* test_gateway_evil.c - guests that break the rules: their client is told, and nobody else suffers.
 */
#include "tests/unit/gateway_world.h"

#include <dirent.h>

#include "wire/http1_head.h"

#define OK_HEAD "HTTP/1.1 200 OK\r\n"
#define BROKEN  "The sandbox gave an answer that is not HTTP\""
#define SILENT  "The sandbox closed the connection without an answer\""
#define LATE    "The sandbox did not answer in time\""
#define F10     "a: 1\r\na: 1\r\na: 1\r\na: 1\r\na: 1\r\na: 1\r\na: 1\r\na: 1\r\na: 1\r\na: 1\r\n"

static const struct row {
	const char *name;
	struct script script;
	const char *want; /* heard by the client */
	bool cut;         /* and then its connection is reset */
	const char *fields;
} rows[] = {
	{ "a switch nobody asked for",
	  { BYTES_LIT("HTTP/1.1 101 No\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n") },
	  BROKEN },
	{ "a switch that was asked for, to nothing",
	  { BYTES_LIT("HTTP/1.1 101 No\r\n\r\n") },
	  BROKEN,
	  .fields = "connection: upgrade\r\nupgrade: websocket\r\n" },
	{ "continue, without a body", /* once ended the gateway */
	  { BYTES_LIT("HTTP/1.1 100 Continue\r\n\r\n" OK_HEAD "content-length: 2\r\n\r\nok") },
	  "\r\n\r\nok" },
	{ "nothing but continue",
	  { BYTES_LIT("HTTP/1.1 100 Continue\r\n\r\n"), .repeat = 100000 },
	  BROKEN },
	{ "continue and the end",
	  { BYTES_LIT("HTTP/1.1 100 Continue\r\n\r\n"), .then = THEN_CLOSE },
	  SILENT },
	{ "hints",
	  { BYTES_LIT("HTTP/1.1 103 Hints\r\na: b\r\n\r\n" OK_HEAD "\r\nok"), .then = THEN_CLOSE },
	  "\r\nok\r\n0\r\n\r\n" },
	{ "endless fields", { BYTES_LIT(OK_HEAD F10 F10 F10), .repeat = 100000 }, BROKEN },
	{ "an endless line", { BYTES_LIT("xxxxxxxxxxxxxxxx"), .repeat = 1000000 }, BROKEN },
	{ "too many fields",
	  { BYTES_LIT(OK_HEAD F10 F10 F10 F10 F10 F10 F10 F10 F10 F10 "b: 1\r\n\r\n") },
	  BROKEN },
	{ "many fields",
	  { BYTES_LIT(OK_HEAD F10 F10 F10 F10 F10 F10 F10 F10 F10
		      "a: 1\r\na: 1\r\na: 1\r\na: 1\r\na: 1\r\na: 1\r\na: 1\r\na: 1\r\n"
		      "content-length: 2\r\n\r\nok") },
	  "\r\n\r\nok" },
	{ "no HTTP at all", { BYTES_LIT("220 mail.test ESMTP\r\n\r\n") }, BROKEN },
	{ "a later version", { BYTES_LIT("HTTP/2.0 200 OK\r\n\r\n") }, BROKEN },
	{ "status 999", { BYTES_LIT("HTTP/1.1 999 Big\r\n\r\n") }, BROKEN },
	{ "status 000", { BYTES_LIT("HTTP/1.1 000 Nil\r\n\r\n") }, BROKEN },
	{ "bare line feeds",
	  { BYTES_LIT("HTTP/1.1 200 OK\ncontent-length: 0\n\n\r\n\r\n") },
	  BROKEN },
	{ "a NUL", { BYTES_LIT(OK_HEAD "a: \0\r\n\r\n") }, BROKEN },
	{ "a folded line", { BYTES_LIT(OK_HEAD "a: b\r\n c\r\n\r\n") }, BROKEN },
	{ "two lengths",
	  { BYTES_LIT(OK_HEAD "content-length: 1\r\ncontent-length: 2\r\n\r\nab") },
	  BROKEN },
	{ "a length and chunks",
	  { BYTES_LIT(OK_HEAD "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n") },
	  BROKEN },
	{ "another coding",
	  { BYTES_LIT(OK_HEAD "transfer-encoding: gzip, chunked\r\n\r\n") },
	  BROKEN },
	{ "a length below zero", { BYTES_LIT(OK_HEAD "content-length: -1\r\n\r\n") }, BROKEN },
	{ "a length without end",
	  { BYTES_LIT(OK_HEAD "content-length: 18446744073709551615\r\n\r\nab") },
	  BROKEN },
	{ "a body after 204",
	  { BYTES_LIT("HTTP/1.1 204 No\r\ncontent-length: 2\r\n\r\nab") },
	  BROKEN },
	{ "less than promised",
	  { BYTES_LIT(OK_HEAD "content-length: 10\r\n\r\nabc"), .then = THEN_CLOSE },
	  "\r\n\r\nabc",
	  true },
	{ "less than promised, half closed",
	  { BYTES_LIT(OK_HEAD "content-length: 10\r\n\r\nabc"), .then = THEN_SHUT },
	  "\r\n\r\nabc",
	  true },
	{ "more than promised",
	  { BYTES_LIT(OK_HEAD "content-length: 2\r\n\r\nok" OK_HEAD "\r\nsmuggled") },
	  "\r\n\r\nok" },
	{ "a chunk that is none",
	  { BYTES_LIT(OK_HEAD "transfer-encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n") },
	  "chunked\r\n\r\n",
	  true },
	{ "a huge chunk",
	  { BYTES_LIT(OK_HEAD "transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n") },
	  "chunked\r\n\r\n",
	  true },
	{ "chunks without a last one",
	  { BYTES_LIT(OK_HEAD "transfer-encoding: chunked\r\n\r\n2\r\nok\r\n"),
	    .then = THEN_CLOSE },
	  "2\r\nok\r\n",
	  true },
	{ "chunks and a reset",
	  { BYTES_LIT(OK_HEAD "transfer-encoding: chunked\r\n\r\n2\r\nok\r\n"),
	    .then = THEN_RESET },
	  "2\r\nok\r\n",
	  true },
	{ "closed at once", { BYTES_LIT(""), .then = THEN_CLOSE, .at_once = true }, SILENT },
	{ "closed", { BYTES_LIT(""), .then = THEN_CLOSE }, SILENT },
	{ "reset", { BYTES_LIT(""), .then = THEN_RESET }, SILENT },
	{ "half closed", { BYTES_LIT(""), .then = THEN_SHUT }, SILENT },
	{ "half a head", { BYTES_LIT(OK_HEAD "content-le"), .then = THEN_CLOSE }, SILENT },
	{ "answered before it was asked",
	  { BYTES_LIT(OK_HEAD "content-length: 2\r\n\r\nok"), .at_once = true },
	  "\r\n\r\nok" },
	{ "byte by byte",
	  { BYTES_LIT(OK_HEAD "transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
	    .piece = 1 },
	  "0\r\n\r\n" },
};

static bool is_clean(struct world *w)
{
	return w->http.n_conns == 0 && !world_relay(w);
}

static void check_row(const struct row *row, bool as_agent, const char *method)
{
	struct world w;

	world_open(&w);
	if (as_agent)
		w.g.guests->agent_port = w.port;
	w.script = &row->script;
	ask(&w, method, "/", row->fields ? row->fields : "");
	if (strcmp(method, "POST") == 0)
		say(&w, "2\r\nab\r\n"); /* and no more: the guest does not wait for it */
	RUN_UNTIL(w.l, heard(&w.client, row->want));
	if (row->cut)
		RUN_UNTIL(w.l, w.client.fails == 1);
	assert_false(heard(&w.client, " 400 ") || heard(&w.client, "smuggled"));
	ear_done(&w.client);
	RUN_UNTIL(w.l, is_clean(&w));
	/* the next one is served, and not what was left over */
	peers_done(&w);
	w.script = NULL;
	ask(&w, "POST", "/length", "content-length: 3\r\n");
	say(&w, "abc");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\n3") || heard(&w.client, SILENT));
	world_close(&w);
}

static void evil_answers_hurt_nobody(void **state)
{
	(void)state;
	FOR_ROWS(row, rows) {
		check_row(row, false, "GET");
		check_row(row, true, "GET");
	}
}

static void evil_answers_to_a_body_hurt_nobody(void **state)
{
	(void)state;
	FOR_ROWS(row, rows) {
		struct row with_body = *row;

		if (row->fields)
			continue;
		with_body.fields = "transfer-encoding: chunked\r\n";
		check_row(&with_body, false, "POST");
	}
}

/* Whoever took the agent's place: heard, and not answered. Half an answer's head is none. */
static void an_agent_that_does_not_answer_is_not_waited_for(void **state)
{
	static const struct script silent[] = { { BYTES_LIT("") }, { BYTES_LIT(OK_HEAD "a: ") } };
	struct world w;

	(void)state;
	for (size_t i = 0; i < COUNT(silent); i++) {
		world_open(&w);
		w.g.guests->agent_port = w.port;
		w.g.guests->agent_ms = 50;
		w.script = &silent[i];
		ask(&w, "POST", "/", "content-length: 2\r\n");
		say(&w, "ab");
		RUN_UNTIL(w.l, heard(&w.client, "504 ") && heard(&w.client, LATE));
		assert_null(world_relay(&w));
		world_close(&w);
	}
}

/* Conversations made of pieces, by chance but the same each time. */

static uint64_t chance(uint64_t *seed, uint64_t below)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (*seed >> 33) % below;
}

static const char *const pieces[] = {
	"HTTP/1.1 200 OK\r\n",
	"HTTP/1.1 200 OK\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\n",
	"HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
	"HTTP/1.1 204 No\r\n\r\n",
	"HTTP/1.0 500 Oh\r\n",
	"content-length: 4\r\n",
	"content-length: 70000\r\n\r\n",
	"transfer-encoding: chunked\r\n\r\n",
	"connection: close\r\n",
	"\r\n",
	"\r\n\r\n",
	"4\r\nabcd\r\n",
	"0\r\n\r\n",
	"fff\r\n",
	"abcd",
	"x: y\r\n",
	"\x81\x05hello",
	"\n",
	": \r\n",
};

static void make_script(uint64_t *seed, struct buf *text, struct script *ret)
{
	size_t n = chance(seed, 10);
	struct err err;

	buf_clear(text);
	if (chance(seed, 3) > 0) /* mostly something that begins well */
		assert_int_equal(buf_add(text, bytes_str(pieces[chance(seed, 5)]), &err), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(
			buf_add(text, bytes_str(pieces[chance(seed, COUNT(pieces))]), &err), 0);
	*ret = (struct script){
		.text = buf_view(text),
		.then = (enum script_end)chance(seed, 4),
		.at_once = chance(seed, 4) == 0,
		.piece = chance(seed, 3) == 0 ? 1 + chance(seed, 30) : 0,
		.repeat = chance(seed, 8) == 0 ? 1 + chance(seed, 2000) : 0,
	};
}

/* True: the client asks for a switch. */
static bool start_conversation(struct world *w, uint64_t *seed)
{
	static const char *const methods[] = { "GET", "HEAD", "POST", "OPTIONS" };
	static const char *const fields[] = {
		"",
		"content-length: 3\r\n",
		"transfer-encoding: chunked\r\n",
		"connection: upgrade\r\nupgrade: websocket\r\n",
		"content-length: 5\r\nexpect: 100-continue\r\n",
	};
	size_t kind = chance(seed, COUNT(fields));

	w->g.guests->agent_port = chance(seed, 2) ? w->port : 1;
	ask(w, methods[chance(seed, COUNT(methods))], "/", fields[kind]);
	if (kind == 1 || kind == 3)
		say(w, "abc");
	if (kind == 2)
		say(w, chance(seed, 2) ? "3\r\nabc\r\n0\r\n\r\n" : "3\r\nab");
	return kind == 3;
}

/* Whatever the guest did, its client got HTTP, and was not blamed. */
static void check_heard(const struct ear *client)
{
	size_t scanned = 0, used = 0;
	struct http1_head head;
	struct err err;
	struct bytes in = buf_view(&client->got);

	while (bytes_starts(in, BYTES_LIT("HTTP/1.1 100 ")))
		in = bytes_tail(in, strlen("HTTP/1.1 100 Continue\r\n\r\n"));
	if (in.len == 0)
		return;
	assert_int_equal(http1_head_end(in, &scanned, &used, &err), DECODE_OK);
	assert_int_equal(http1_parse_response(bytes_head(in, used), BYTES_LIT("GET"), &head, &err),
			 0);
	assert_int_not_equal(head.status, 400);
}

static void on_tick(struct timer *t)
{
	(void)t;
}

static void converse(struct world *w, uint64_t *seed)
{
	size_t turns = 1 + chance(seed, 60), gone_at = chance(seed, 200);
	struct timer tick; /* so that no turn waits for long */
	bool wants_switch;

	timer_init(&tick, w->l, on_tick);
	timer_repeat(&tick, 1);
	wants_switch = start_conversation(w, seed);
	for (size_t i = 0; i < turns && !parted(&w->client); i++) {
		if (i == gone_at)
			guest_cache_gone(w->g.guests, "abc", 1);
		if (i == gone_at / 2 && chance(seed, 20) == 0)
			guest_cache_forget(w->g.guests);
		assert_true(loop_turn(w->l));
	}
	check_heard(&w->client);
	/* a switched connection may be half closed for as long as the guest likes */
	if (chance(seed, 2) || wants_switch)
		stream_abort(TAKE(w->client.s));
	else
		ear_done(&w->client);
	buf_done(&w->client.got);
	RUN_UNTIL(w->l, is_clean(w));
	timer_stop(&tick);
	peers_done(w);
}

static size_t open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void a_thousand_evil_conversations(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(64 * 1024);
	size_t before = open_files();
	struct script script;

	(void)state;
	for (uint64_t block = 0; block < 10; block++) {
		struct world w;

		world_open(&w);
		for (uint64_t i = 0; i < 100; i++) {
			uint64_t seed = block * 100 + i + 1;

			make_script(&seed, &text, &script);
			w.script = &script;
			w.node.mood = chance(&seed, 20) == 0 ? (enum node_mood)chance(&seed, 6)
							     : NODE_GIVES;
			if (w.node.mood == NODE_SILENT)
				w.node.mood = NODE_GIVES; /* it would be silent for ever */
			converse(&w, &seed);
		}
		world_close(&w);
	}
	assert_int_equal(open_files(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evil_answers_hurt_nobody),
		cmocka_unit_test(evil_answers_to_a_body_hurt_nobody),
		cmocka_unit_test(an_agent_that_does_not_answer_is_not_waited_for),
		cmocka_unit_test(a_thousand_evil_conversations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
