/* test_tls_stream.c - TLS between two streams: what arrives, who is believed, what hostile bytes
 * do. */
#include "tests/unit/test_net_layers.h"

#include <errno.h>
#include <fcntl.h>

#include "base/random.h"
#include "tls/authority.h"
#include "tls/tls_stream.h"

struct world { /* a root, a client that trusts it, and a server with a leaf of a branch */
	struct loop *l;
	struct authority *root, *branch;
	struct identity *leaf;
	struct tls_context *client, *server, *anybody;
	struct tls_chooser chooser;
	char asked[TLS_NAME_MAX + 1];
	bool refuse;
	char trust_file[32];
	struct ear c, s;
};

static int choose(struct tls_chooser *c, const char *name, const struct identity **ret,
		  struct err *err)
{
	struct world *w = CONTAINER_OF(c, struct world, chooser);

	if (!bytes_to_str(bytes_str(name), w->asked, sizeof(w->asked)) || w->refuse)
		return err_set(err, ERR_DENIED, 0, "not for %s", name);
	*ret = w->leaf;
	return 0;
}

static void write_trust(struct world *w)
{
	AUTO(buf_done) struct buf text = BUF_MAX(AUTHORITY_TEXT_MAX);
	struct err err = { 0 };
	int fd;

	memcpy(w->trust_file, "/tmp/test_tls_XXXXXX", sizeof("/tmp/test_tls_XXXXXX"));
	fd = mkstemp(w->trust_file);
	assert_true(fd >= 0);
	assert_int_equal(authority_cert_text(w->root, &text, &err), 0);
	assert_int_equal(write(fd, text.ptr, text.len), (ssize_t)text.len);
	close(fd);
}

static void world_open(struct world *w)
{
	static const char *const hosts[] = { "a.example" };
	struct tls_trust trust = { .roots = "" };
	struct err err = { 0 };

	*w = (struct world){ .l = test_loop(), .chooser = { choose } };
	assert_int_equal(authority_new("Hotcell test", &w->root, &err), 0);
	assert_int_equal(authority_branch(w->root, "branch", hosts, 1, &w->branch, &err), 0);
	assert_int_equal(identity_new(w->branch, "a.example", &w->leaf, &err), 0);
	write_trust(w);
	trust.extra = w->trust_file;
	if (tls_client_open(&trust, &w->client, &err) < 0 || tls_server_open(&w->server, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(
		tls_client_open(&(struct tls_trust){ .unverified = true }, &w->anybody, &err), 0);
}

static void world_close(struct world *w)
{
	ear_done(&w->c);
	ear_done(&w->s);
	loop_free(w->l);
	tls_context_free(w->client);
	tls_context_free(w->server);
	tls_context_free(w->anybody);
	identity_free(w->leaf);
	authority_free(w->branch);
	authority_free(w->root);
	unlink(w->trust_file);
}

static void listen_to(struct ear *e, struct stream *s)
{
	ear_init(e, s);
	stream_read(s, true);
}

struct how {
	struct tls_context *client;
	const char *name, *client_alpn, *server_alpn;
	size_t piece;  /* 0: as it comes */
	int *ret_wire; /* the server's own descriptor once more; NULL: not wanted */
};

static void connect_both(struct world *w, const struct how *how)
{
	struct stream *low[2], *s;
	struct err err = { 0 };
	int fd[2];

	tcp_pair(fd);
	if (how->ret_wire)
		*how->ret_wire = dup(fd[1]);
	for (int i = 0; i < 2; i++) {
		low[i] = test_stream(w->l, fd[i]);
		if (how->piece > 0)
			low[i] = bend_over(low[i], how->piece, 0);
	}
	if (tls_connect(how->client, low[0], how->name, how->client_alpn, &s, &err) < 0)
		fail_msg("%s", err.msg);
	listen_to(&w->c, s);
	if (tls_accept(w->server, low[1], (struct bytes){ 0 }, &w->chooser, how->server_alpn, &s,
		       &err) < 0)
		fail_msg("%s", err.msg);
	listen_to(&w->s, s);
}

static void usual(struct world *w)
{
	world_open(w);
	connect_both(w, &(struct how){ w->client, "a.example", "http/1.1", "http/1.1", 0 });
}

static void say(struct ear *e, const char *text)
{
	struct err err = { 0 };

	if (stream_write(e->s, bytes_str(text), &err) < 0)
		fail_msg("%s", err.msg);
}

static void both_are_heard_however_it_is_cut(void **state)
{
	const size_t pieces[] = { 0, 1, 5, 1000 };

	(void)state;
	for (size_t i = 0; i < COUNT(pieces); i++) {
		struct world w;

		world_open(&w);
		connect_both(&w, &(struct how){ w.client, "A.example", "http/1.1", "http/1.1",
						pieces[i] });
		say(&w.c, "question"); /* before there is a connection to speak of */
		RUN_UNTIL(w.l, ear_heard(&w.s, "question"));
		say(&w.s, "answer");
		RUN_UNTIL(w.l, ear_heard(&w.c, "answer"));
		assert_string_equal(w.asked, "a.example");
		assert_int_equal(w.c.fails + w.s.fails, 0);
		world_close(&w);
	}
}

static void half_a_close_is_an_end(void **state)
{
	struct world w;

	(void)state;
	usual(&w);
	say(&w.c, "all");
	stream_shut(w.c.s); /* before the handshake is over */
	RUN_UNTIL(w.l, w.s.ends == 1);
	assert_true(ear_heard(&w.s, "all"));
	say(&w.s, "still here");
	RUN_UNTIL(w.l, ear_heard(&w.c, "still here"));
	stream_close(w.s.s);
	w.s.s = NULL;
	RUN_UNTIL(w.l, w.c.ends == 1);
	assert_int_equal(w.c.fails + w.s.fails, 0);
	world_close(&w);
}

static void much_arrives_and_slow_readers_are_waited_for(void **state)
{
	enum { TOTAL = 3 * 1024 * 1024, STEP = 100 * 1024 };
	AUTO(auto_free) uint8_t *data = malloc(TOTAL);
	struct world w;
	size_t sent = 0, waits = 0;

	(void)state;
	assert_non_null(data);
	random_fill(data, TOTAL);
	usual(&w);
	w.s.stop_after = 1; /* stops reading after every piece */
	while (w.s.got.len < TOTAL) {
		struct err err;
		size_t n = TOTAL - sent < STEP ? TOTAL - sent : STEP, before = w.s.got.len;

		if (n > 0 && stream_write(w.c.s, (struct bytes){ data + sent, n }, &err) == 0) {
			sent += n;
			continue;
		}
		waits += n > 0 && err.code == ERR_EXHAUSTED;
		assert_true(stream_queued(w.c.s) <= TLS_QUEUE_MAX);
		stream_read(w.s.s, true);
		RUN_UNTIL(w.l, w.s.got.len > before);
	}
	assert_true(bytes_eq(buf_view(&w.s.got), (struct bytes){ data, TOTAL }));
	assert_true(waits > 0 && w.c.drains > 0);
	assert_int_equal(w.c.fails + w.s.fails, 0);
	world_close(&w);
}

static void what_is_not_read_stays_with_the_sender(void **state)
{
	struct world w;

	(void)state;
	usual(&w);
	say(&w.c, "1");
	RUN_UNTIL(w.l, ear_heard(&w.s, "1"));
	stream_read(w.s.s, false);
	say(&w.c, "2");
	say(&w.s, "x");
	RUN_UNTIL(w.l, ear_heard(&w.c, "x"));
	for (int i = 0; i < 20; i++) { /* there is nothing to wait for: it must not come */
		say(&w.s, "y");
		RUN_UNTIL(w.l, w.c.got.len == (size_t)i + 2);
	}
	assert_true(ear_heard(&w.s, "1"));
	stream_read(w.s.s, true);
	RUN_UNTIL(w.l, ear_heard(&w.s, "12"));
	world_close(&w);
}

struct closer { /* closes as soon as it hears anything */
	struct stream_user user;
	struct stream *s;
	size_t heard;
};

static void closer_data(struct stream_user *u, struct bytes in)
{
	struct closer *c = CONTAINER_OF(u, struct closer, user);

	assert_true(in.len > 0);
	c->heard++;
	stream_close(c->s);
}

static void closer_quiet(struct stream_user *u)
{
	(void)u;
}

static void closer_fail(struct stream_user *u, const struct err *err)
{
	(void)u;
	fail_msg("%s", err->msg);
}

static void closing_inside_a_callback_is_the_last_of_it(void **state)
{
	static const struct stream_user_ops ops = { closer_data, closer_quiet, closer_quiet,
						    closer_fail };
	struct closer c = { .user = { &ops } };
	struct world w;

	(void)state;
	usual(&w);
	c.s = w.s.s;
	stream_set_user(c.s, &c.user);
	stream_read(c.s, true);
	w.s.s = NULL;
	for (int i = 0; i < 100; i++)
		say(&w.c, "one record of many");
	RUN_UNTIL(w.l, w.c.ends + w.c.fails > 0);
	assert_int_equal(c.heard, 1);
	assert_int_equal(w.c.ends, 1);
	world_close(&w);
}

static void who_is_not_trusted_hears_nothing(void **state)
{
	static const struct {
		const char *name, *asks, *client_alpn, *server_alpn;
		bool refuse, stranger;
		enum err_code client, server;
	} rows[] = {
		{ "wrong name", "b.example", NULL, NULL, false, false, ERR_DENIED, ERR_INVALID },
		{ "stranger", "a.example", NULL, NULL, false, true, ERR_DENIED, ERR_INVALID },
		{ "chooser", "a.example", NULL, NULL, true, false, ERR_INVALID, ERR_DENIED },
		{ "protocols", "a.example", "h2", "http/1.1", false, false, ERR_INVALID,
		  ERR_INVALID },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct tls_context *nobody = NULL;
		struct err err = { 0 };
		struct world w;

		world_open(&w);
		w.refuse = row->refuse;
		assert_int_equal(tls_client_open(&(struct tls_trust){ .roots = "" }, &nobody, &err),
				 0);
		connect_both(&w, &(struct how){ row->stranger ? nobody : w.client, row->asks,
						row->client_alpn, row->server_alpn, 0 });
		say(&w.c, "a secret");
		RUN_UNTIL(w.l, w.c.fails + w.s.fails == 2);
		print_message("      %s | %s\n", w.c.why.msg, w.s.why.msg);
		assert_int_equal(w.c.why.code, row->client);
		assert_int_equal(w.s.why.code, row->server);
		assert_int_equal(w.s.got.len, 0);
		assert_int_equal(stream_write(w.c.s, BYTES_LIT("more"), &err), -1);
		assert_int_equal(err.code, ERR_UNAVAILABLE);
		assert_string_equal(err.msg, w.c.why.msg);
		world_close(&w);
		tls_context_free(nobody);
	}
}

static void protocols_that_nobody_names_do_not_matter(void **state)
{
	static const struct {
		const char *name, *client_alpn, *server_alpn;
	} rows[] = { { "client", NULL, "http/1.1" }, { "server", "http/1.1", NULL } };

	(void)state;
	FOR_ROWS(row, rows) {
		struct world w;

		world_open(&w);
		connect_both(&w, &(struct how){ w.client, "a.example", row->client_alpn,
						row->server_alpn, 0 });
		say(&w.c, "hello");
		RUN_UNTIL(w.l, ear_heard(&w.s, "hello"));
		world_close(&w);
	}
}

static void an_unverified_client_takes_anybody(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	connect_both(&w, &(struct how){ w.anybody, NULL, NULL, NULL, 0 });
	say(&w.c, "hello");
	RUN_UNTIL(w.l, ear_heard(&w.s, "hello"));
	assert_string_equal(w.asked, "");
	world_close(&w);
}

/* One end is TLS, the other a plain socket in the hand of an attacker. */
static int against_plain(struct world *w, bool server, struct bytes first)
{
	struct err err = { 0 };
	struct stream *s = NULL;
	int fd[2], rc;

	tcp_pair(fd);
	rc = server ? tls_accept(w->server, test_stream(w->l, fd[0]), first, &w->chooser,
				 "http/1.1", &s, &err)
		    : tls_connect(w->client, test_stream(w->l, fd[0]), "a.example", "http/1.1", &s,
				  &err);
	assert_int_equal(rc, 0);
	listen_to(server ? &w->s : &w->c, s);
	return fd[1];
}

static void garbage_is_refused(void **state)
{
	static const struct {
		const char *name;
		struct bytes says;
	} rows[] = {
		{ "text", BYTES_LIT("GET / HTTP/1.1\r\n\r\n") },
		{ "empty handshake", BYTES_LIT("\x16\x03\x01\x00\x00\x16\x03\x01\x00\x00") },
		{ "huge record", BYTES_LIT("\x16\x03\x01\xff\xff\x01\x02\x03\x04\x05\x06\x07") },
		{ "huge hello", BYTES_LIT("\x16\x03\x01\x00\x04\x01\xff\xff\xff") },
		{ "data first", BYTES_LIT("\x17\x03\x03\x00\x02hi") },
		{ "old", BYTES_LIT("\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10") },
		{ "alert", BYTES_LIT("\x15\x03\x01\x00\x02\x02\x28") },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		for (int server = 0; server < 2; server++) {
			struct world w;
			struct ear *e = server ? &w.s : &w.c;
			int fd;

			world_open(&w);
			fd = against_plain(&w, server, (struct bytes){ 0 });
			assert_int_equal(send(fd, row->says.ptr, row->says.len, 0),
					 (ssize_t)row->says.len);
			shutdown(fd, SHUT_WR);
			RUN_UNTIL(w.l, e->fails == 1);
			assert_true(e->why.code == ERR_INVALID || e->why.code == ERR_UNAVAILABLE);
			assert_int_equal(e->got.len + e->ends, 0);
			close(fd);
			world_close(&w);
		}
	}
}

static void random_bytes_and_early_ends_are_survived(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		uint8_t noise[600];
		struct world w;
		int fd;

		world_open(&w);
		random_fill(noise, sizeof(noise));
		memcpy(noise, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
		fd = against_plain(&w, true, bytes_head((struct bytes){ noise, 600 }, (size_t)i));
		if (i % 3 != 0)
			assert_int_equal(send(fd, noise + i, sizeof(noise) - (size_t)i, 0),
					 (ssize_t)sizeof(noise) - i);
		if (i % 2 == 0)
			close(fd);
		else
			shutdown(fd, SHUT_WR);
		RUN_UNTIL(w.l, w.s.fails == 1);
		if (i % 2 != 0)
			close(fd);
		world_close(&w);
	}
}

/* The bytes of a client, as far as they have come, in the hand of the test. */
static void what_was_read_before_counts(void **state)
{
	struct world w;
	struct stream *s, *low;
	struct err err = { 0 };
	uint8_t hello[4096];
	ssize_t n;
	int fd[2];

	(void)state;
	world_open(&w);
	tcp_pair(fd);
	assert_int_equal(
		tls_connect(w.client, test_stream(w.l, fd[0]), "a.example", NULL, &s, &err), 0);
	listen_to(&w.c, s);
	say(&w.c, "question");
	while ((n = recv(fd[1], hello, sizeof(hello), MSG_DONTWAIT)) < 0)
		assert_true(errno == EAGAIN && loop_turn(w.l));
	low = test_stream(w.l, fd[1]);
	assert_int_equal(tls_accept(w.server, low, (struct bytes){ hello, (size_t)n }, &w.chooser,
				    "http/1.1", &s, &err),
			 0);
	listen_to(&w.s, s);
	RUN_UNTIL(w.l, ear_heard(&w.s, "question"));
	world_close(&w);
}

static void to_be_cut_off_is_not_an_end(void **state)
{
	struct world w;

	(void)state;
	usual(&w);
	say(&w.c, "half of");
	RUN_UNTIL(w.l, ear_heard(&w.s, "half of"));
	stream_abort(w.c.s);
	w.c.s = NULL;
	RUN_UNTIL(w.l, w.s.fails == 1);
	assert_int_equal(w.s.ends, 0);
	world_close(&w);
}

/* An end of the connection of which TLS had not said a word. */
static void an_end_is_believed_where_anybody_is(void **state)
{
	static const struct {
		const char *name, *last;
		bool unverified, ends;
	} rows[] = {
		{ "who was verified", "", false, false },
		{ "anybody", "", true, true },
		{ "anybody, within a record", "\x17\x03\x03", true, false },
		{ "anybody, within a longer one", "\x17\x03\x03\x01\x01half", true, false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct world w;
		int wire = -1;

		world_open(&w);
		connect_both(&w, &(struct how){ row->unverified ? w.anybody : w.client, "a.example",
						"http/1.1", "http/1.1", 0, &wire });
		say(&w.s, "all of it");
		RUN_UNTIL(w.l, ear_heard(&w.c, "all of it"));
		assert_int_equal(write(wire, row->last, strlen(row->last)), strlen(row->last));
		assert_int_equal(shutdown(wire, SHUT_WR), 0);
		RUN_UNTIL(w.l, w.c.ends + w.c.fails == 1);
		assert_int_equal(w.c.ends, row->ends);
		close(wire);
		world_close(&w);
	}
}

static void a_trust_file_that_is_none_says_so(void **state)
{
	struct tls_context *c = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(tls_client_open(&(struct tls_trust){ .roots = "/dev/null" }, &c, &err),
			 -1);
	assert_non_null(strstr(err.msg, "/dev/null"));
	assert_int_equal(
		tls_client_open(&(struct tls_trust){ .roots = "", .extra = "/nowhere" }, &c, &err),
		-1);
	assert_non_null(strstr(err.msg, "/nowhere"));
}

static void an_empty_file_of_further_trust_is_none(void **state)
{
	char path[] = "/tmp/hotcell-tls-XXXXXX";
	int fd = mkstemp(path);
	struct tls_context *c = NULL;
	struct err err = { 0 };

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(
		tls_client_open(&(struct tls_trust){ .roots = "", .extra = path }, &c, &err), 0);
	tls_context_free(c);
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_are_heard_however_it_is_cut),
		cmocka_unit_test(half_a_close_is_an_end),
		cmocka_unit_test(much_arrives_and_slow_readers_are_waited_for),
		cmocka_unit_test(what_is_not_read_stays_with_the_sender),
		cmocka_unit_test(closing_inside_a_callback_is_the_last_of_it),
		cmocka_unit_test(who_is_not_trusted_hears_nothing),
		cmocka_unit_test(protocols_that_nobody_names_do_not_matter),
		cmocka_unit_test(an_unverified_client_takes_anybody),
		cmocka_unit_test(garbage_is_refused),
		cmocka_unit_test(random_bytes_and_early_ends_are_survived),
		cmocka_unit_test(what_was_read_before_counts),
		cmocka_unit_test(to_be_cut_off_is_not_an_end),
		cmocka_unit_test(an_end_is_believed_where_anybody_is),
		cmocka_unit_test(a_trust_file_that_is_none_says_so),
		cmocka_unit_test(an_empty_file_of_further_trust_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
