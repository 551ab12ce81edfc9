/* test_tls_service.c - a TLS server whose keys are elsewhere: who is served, what waits, what is
 * given up. The signer is played here. */
#include "tests/unit/test_net_layers.h"
#include "tests/unit/tls_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include <openssl/ssl.h>

#include "base/list.h"
#include "tls/chain.h"
#include "tls/chain_inside.h"
#include "tls/tls_service.h"

enum { MANY = 50, TICKET_MS = 3600 * 1000 };

struct signer_ask {
	struct tls_sign *what;
	struct signer_ask *next, **prev;
};

struct client {
	struct ear ear;
	struct tls_guest guest;
	struct stream_user user; /* of the server's stream, until it is open */
	struct stream *s;        /* the server's */
	struct ear served;
	bool open, failed;
	char protocol[32];
	struct err why;
	struct world *w;
};

struct world {
	struct loop *l;
	struct tls_service *service;
	struct tls_signer signer;
	struct tls_chooser chooser;
	struct tls_context *trusting;
	EVP_PKEY *key;
	X509 *cert;
	struct chain *chain;
	struct sign_key *private;
	char trust_file[32], asked[256];
	struct signer_ask *asks; /* not answered yet */
	size_t n_asks, n_cancels, most;
	bool hold; /* nothing is answered for now */
	bool down; /* nobody can be asked */
	bool lies; /* it answers with rubbish */
	struct timer answering;
	struct client clients[MANY];
};

/* --- the signer ----------------------------------------------------------------------------- */

static int on_ask(struct tls_signer *s, struct tls_sign *what, struct err *err)
{
	struct world *w = CONTAINER_OF(s, struct world, signer);
	struct signer_ask *a = calloc(1, sizeof(*a));
	size_t n = 0;

	if (w->down) {
		free(a);
		return err_set(err, ERR_UNAVAILABLE, 0, "the signer is gone");
	}
	assert_non_null(a);
	a->what = what;
	what->ask = a;
	list_add(&w->asks, a);
	w->n_asks++;
	for (struct signer_ask *i = w->asks; i; i = i->next)
		n++;
	w->most = n > w->most ? n : w->most;
	timer_start(&w->answering, 1);
	return 0;
}

static void on_cancel(struct tls_signer *s, struct tls_sign *what)
{
	CONTAINER_OF(s, struct world, signer)->n_cancels++;
	list_remove(what->ask);
	free(what->ask);
}

static void answer_one(struct world *w, struct signer_ask *a)
{
	struct tls_sign *what = a->what;
	uint8_t signature[SIGN_MAX] = { 0 };
	struct err err = { 0 };
	size_t n = 10;
	int rc = 0;

	list_remove(a);
	free(a);
	assert_memory_equal(what->id, sign_key_id(w->private), SIGN_ID);
	if (!w->lies)
		rc = sign_key_sign(w->private, what->scheme,
				   (struct bytes){ what->what, what->n_what }, signature, &n, &err);
	tls_sign_done(what, (struct bytes){ signature, n }, rc < 0 ? &err : NULL);
}

static void on_answering(struct timer *t)
{
	struct world *w = CONTAINER_OF(t, struct world, answering);

	while (w->asks && !w->hold)
		answer_one(w, w->asks);
}

static void let_go(struct world *w)
{
	w->hold = false;
	timer_start(&w->answering, 0);
}

/* --- the world ------------------------------------------------------------------------------ */

static int choose(struct tls_chooser *c, const char *name, const struct identity **ret,
		  struct err *err)
{
	struct world *w = CONTAINER_OF(c, struct world, chooser);

	if (!bytes_to_str(bytes_str(name), w->asked, sizeof(w->asked)) || !w->chain)
		return err_set(err, ERR_UNAVAILABLE, 0, "no certificate");
	*ret = chain_identity(w->chain);
	return 0;
}

static void write_trust(struct world *w)
{
	AUTO(buf_done) struct buf text = BUF_MAX(TEST_PEM_MAX);
	int fd;

	memcpy(w->trust_file, "/tmp/test_tls_XXXXXX", sizeof("/tmp/test_tls_XXXXXX"));
	fd = mkstemp(w->trust_file);
	assert_true(fd >= 0);
	test_cert_text(w->cert, &text);
	assert_int_equal(write(fd, text.ptr, text.len), (ssize_t)text.len);
	close(fd);
}

static struct chain *load(struct world *w, struct bytes text)
{
	struct chain *c = NULL;
	struct err err = { 0 };

	if (chain_load(w->service, text, &c, &err) < 0)
		fail_msg("%s", err.msg);
	return c;
}

static void world_open(struct world *w, const char *kind)
{
	AUTO(buf_done) struct buf cert = BUF_MAX(TEST_PEM_MAX), key = BUF_MAX(TEST_PEM_MAX);
	struct tls_trust trust = { .roots = "" };
	struct tls_service_terms terms;
	struct err err = { 0 };

	*w = (struct world){ .l = test_loop(),
			     .signer = { on_ask, on_cancel },
			     .chooser = { choose } };
	timer_init(&w->answering, w->l, on_answering);
	w->key = test_key(kind);
	w->cert = test_cert(w->key, &(struct test_cert){ .names = "DNS:a.example" });
	test_key_text(w->key, &key);
	test_cert_text(w->cert, &cert);
	write_trust(w);
	trust.extra = w->trust_file;
	terms = (struct tls_service_terms){ &w->chooser, &w->signer, "h2,http/1.1", TICKET_MS };
	if (tls_service_open(&w->service, w->l, &terms, &err) < 0 ||
	    tls_client_open(&trust, &w->trusting, &err) < 0 ||
	    sign_key_load(buf_view(&key), &w->private, &err) < 0)
		fail_msg("%s", err.msg);
	w->chain = load(w, buf_view(&cert));
}

static void client_close(struct client *c)
{
	if (c->served.s)
		ear_done(&c->served);
	else if (c->s)
		stream_abort(c->s);
	c->s = NULL;
	if (c->ear.s)
		ear_done(&c->ear);
}

static void world_close(struct world *w)
{
	for (size_t i = 0; i < MANY; i++)
		client_close(&w->clients[i]);
	timer_stop(&w->answering);
	chain_free(w->chain);
	tls_service_close(w->service);
	loop_free(w->l);
	tls_context_free(w->trusting);
	sign_key_free(w->private);
	X509_free(w->cert);
	EVP_PKEY_free(w->key);
	unlink(w->trust_file);
}

static void on_open(struct tls_guest *g, const char *protocol)
{
	struct client *c = CONTAINER_OF(g, struct client, guest);

	c->open = true;
	snprintf(c->protocol, sizeof(c->protocol), "%s", protocol);
	ear_init(&c->served, c->s);
	stream_read(c->s, true);
}

static void user_data(struct stream_user *u, struct bytes in)
{
	(void)u;
	(void)in;
	fail_msg("bytes before the handshake was over");
}

static void user_end(struct stream_user *u)
{
	(void)u;
}

static void user_fail(struct stream_user *u, const struct err *err)
{
	struct client *c = CONTAINER_OF(u, struct client, user);

	c->failed = true;
	c->why = *err;
}

static const struct stream_user_ops user_ops = { user_data, user_end, NULL, user_fail };

/* The server's side alone: what comes is `wire`'s. */
static void accept_at(struct world *w, struct client *c, int fd)
{
	struct err err = { 0 };

	*c = (struct client){ .guest = { on_open }, .user = { &user_ops }, .w = w };
	if (tls_service_accept(w->service, test_stream(w->l, fd), &c->guest, &c->s, &err) < 0)
		fail_msg("%s", err.msg);
	stream_set_user(c->s, &c->user);
}

static void connect_to(struct world *w, struct client *c, const char *name, const char *alpn)
{
	struct stream *s;
	struct err err = { 0 };
	int fd[2];

	tcp_pair(fd);
	accept_at(w, c, fd[1]);
	if (tls_connect(w->trusting, test_stream(w->l, fd[0]), name, alpn, &s, &err) < 0)
		fail_msg("%s", err.msg);
	ear_init(&c->ear, s);
	stream_read(s, true);
}

static void connect_client(struct world *w, struct client *c, const char *alpn)
{
	connect_to(w, c, "a.example", alpn);
}

static void say(struct stream *s, const char *text)
{
	struct err err = { 0 };

	if (stream_write(s, bytes_str(text), &err) < 0)
		fail_msg("%s", err.msg);
}

/* --- handshakes ----------------------------------------------------------------------------- */

static void keys_of_each_kind_serve(void **state)
{
	static const char *const kinds[] = { "P-256", "P-384", "RSA" };

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct world w;
		struct client *c = w.clients;

		world_open(&w, kinds[i]);
		connect_client(&w, c, "http/1.1");
		say(c->ear.s, "question"); /* arrives with the end of the handshake */
		RUN_UNTIL(w.l, c->open && ear_heard(&c->served, "question"));
		say(c->s, "answer");
		RUN_UNTIL(w.l, ear_heard(&c->ear, "answer"));
		assert_string_equal(c->protocol, "http/1.1");
		assert_string_equal(w.asked, "a.example");
		assert_int_equal(w.n_asks, 1);
		world_close(&w);
	}
}

static void the_protocol_is_the_first_of_ours_that_is_offered(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, "P-256");
	connect_client(&w, &w.clients[0], "h2");
	connect_client(&w, &w.clients[1], NULL);
	connect_client(&w, &w.clients[2], "smtp");
	RUN_UNTIL(w.l, w.clients[0].open && w.clients[1].open && w.clients[2].failed);
	assert_string_equal(w.clients[0].protocol, "h2");
	assert_string_equal(w.clients[1].protocol, "");
	RUN_UNTIL(w.l, w.clients[2].ear.fails == 1);
	world_close(&w);
}

/* While none is answered, all of them wait, and go on when they are. */
static void many_wait_for_the_signer_together(void **state)
{
	struct world w;
	size_t open = 0;

	(void)state;
	world_open(&w, "P-256");
	w.hold = true;
	for (size_t i = 0; i < MANY; i++)
		connect_client(&w, &w.clients[i], "http/1.1");
	RUN_UNTIL(w.l, w.n_asks == MANY);
	assert_int_equal(w.most, MANY);
	for (size_t i = 0; i < MANY; i++)
		assert_false(w.clients[i].open);
	let_go(&w);
	for (size_t i = 0; i < MANY; i++) {
		RUN_UNTIL(w.l, w.clients[i].open);
		open++;
	}
	assert_int_equal(open, MANY);
	world_close(&w);
}

/* One who comes last, and alone, does not wait for all of those who came together. */
static void turns_go_round(void **state)
{
	struct world w;
	uint64_t round = 0;

	(void)state;
	world_open(&w, "P-256");
	w.hold = true;
	for (size_t i = 0; i < MANY - 1; i++) {
		connect_client(&w, &w.clients[i], "http/1.1");
		w.clients[i].guest.round = &round;
	}
	connect_to(&w, &w.clients[MANY - 1], "alone.example", "http/1.1");
	RUN_UNTIL(w.l, strcmp(w.asked, "alone.example") == 0);
	assert_true(w.n_asks < MANY / 2);
	world_close(&w);
}

static void without_a_signer_a_handshake_fails_and_says_why(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, "P-256");
	w.down = true;
	connect_client(&w, &w.clients[0], "http/1.1");
	RUN_UNTIL(w.l, w.clients[0].failed && w.clients[0].ear.fails == 1);
	assert_int_equal(w.clients[0].why.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(w.clients[0].why.msg, "signer is gone"));
	w.down = false; /* the next one succeeds */
	connect_client(&w, &w.clients[1], "http/1.1");
	RUN_UNTIL(w.l, w.clients[1].open);
	world_close(&w);
}

static void a_signature_that_is_none_opens_nothing(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, "P-256");
	w.lies = true;
	connect_client(&w, &w.clients[0], "http/1.1");
	RUN_UNTIL(w.l, w.clients[0].ear.fails == 1);
	RUN_UNTIL(w.l, w.clients[0].failed);
	assert_false(w.clients[0].open);
	world_close(&w);
}

/* Who goes while his handshake waits takes nothing along, and leaves nothing. */
static void a_client_that_goes_while_it_waits_is_forgotten(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, "RSA");
	w.hold = true;
	for (size_t i = 0; i < 3; i++)
		connect_client(&w, &w.clients[i], "http/1.1");
	RUN_UNTIL(w.l, w.n_asks == 3);
	client_close(&w.clients[0]); /* the server's side first */
	stream_abort(w.clients[1].ear.s);
	w.clients[1].ear.s = NULL;
	RUN_UNTIL(w.l, w.clients[1].failed);
	assert_int_equal(w.n_cancels, 2);
	let_go(&w);
	RUN_UNTIL(w.l, w.clients[2].open);
	world_close(&w);
}

static void what_is_said_before_the_end_is_limited(void **state)
{
	/* a hello of 60,000 bytes, in records of 16 KiB */
	uint8_t record[5 + 16384] = { 22, 3, 1, 0x40, 0, 1, 0, 0xea, 0x60 };
	struct world w;
	int fd[2];

	(void)state;
	world_open(&w, "P-256");
	tcp_pair(fd);
	accept_at(&w, &w.clients[0], fd[1]);
	for (int i = 0; i < 3; i++) {
		ssize_t n = send(fd[0], record, sizeof(record), MSG_NOSIGNAL);

		(void)n;
		memset(record + 5, 0, 4);
	}
	RUN_UNTIL(w.l, w.clients[0].failed);
	assert_int_equal(w.clients[0].why.code, ERR_EXHAUSTED);
	close(fd[0]);
	world_close(&w);
}

/* A client of the library's own, whose group is not ours: it is asked for a second hello. */
static SSL *other_groups(SSL_CTX **ret_ctx, int fd)
{
	char groups[] = "P-521:P-256";
	SSL *ssl;

	*ret_ctx = SSL_CTX_new(TLS_client_method());
	assert_int_equal(SSL_CTX_set1_groups_list(*ret_ctx, groups), 1);
	ssl = SSL_new(*ret_ctx);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(SSL_set_fd(ssl, fd), 1);
	assert_int_equal(SSL_connect(ssl), -1); /* it has greeted */
	return ssl;
}

static void a_second_hello_is_asked_for(void **state)
{
	struct world w;
	SSL_CTX *ctx;
	int fd[2], rc;
	SSL *ssl;

	(void)state;
	world_open(&w, "P-256");
	tcp_pair(fd);
	accept_at(&w, &w.clients[0], fd[1]);
	ssl = other_groups(&ctx, fd[0]);
	while ((rc = SSL_connect(ssl)) != 1) {
		assert_int_equal(SSL_get_error(ssl, rc), SSL_ERROR_WANT_READ);
		assert_true(loop_turn(w.l));
	}
	RUN_UNTIL(w.l, w.clients[0].open);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close(fd[0]);
	world_close(&w);
}

/* Nor may it be longer than the first. */
static void a_second_hello_is_limited(void **state)
{
	static const uint8_t change[] = { 20, 3, 3, 0, 1, 1 };
	static const uint8_t begin[] = { 22, 3, 3, 0x40, 0, 1, 1, 0, 0 }; /* of 65,536 bytes */
	struct world w;
	SSL_CTX *ctx;
	int fd[2];
	char room;

	(void)state;
	for (int changes = 0; changes < 3; changes++) {
		world_open(&w, "P-256");
		tcp_pair(fd);
		accept_at(&w, &w.clients[0], fd[1]);
		SSL_free(other_groups(&ctx, fd[0]));
		RUN_UNTIL(w.l, recv(fd[0], &room, 1, MSG_PEEK) == 1);
		for (int i = 0; i < changes; i++)
			assert_int_equal(send(fd[0], change, sizeof(change), 0), sizeof(change));
		assert_int_equal(send(fd[0], begin, sizeof(begin), 0), sizeof(begin));
		RUN_UNTIL(w.l, w.clients[0].failed);
		if (!strstr(w.clients[0].why.msg,
			    changes < 2 ? "a hello of more" : "something else"))
			fail_msg("%s", w.clients[0].why.msg);
		SSL_CTX_free(ctx);
		close(fd[0]);
		world_close(&w);
	}
}

static int unread(int fd)
{
	int n = -1;

	assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
	return n;
}

static void a_hello_may_come_byte_by_byte(void **state)
{
	uint8_t hello[4096];
	int fd[2], own[2];
	struct world w;
	SSL_CTX *ctx;
	ssize_t n;

	(void)state;
	world_open(&w, "P-256");
	tcp_pair(fd);
	tcp_pair(own);
	SSL_free(other_groups(&ctx, own[0]));
	n = recv(own[1], hello, sizeof(hello), 0);
	assert_true(n > 100);
	accept_at(&w, &w.clients[0], fd[1]);
	for (ssize_t i = 0; i < n; i++) {
		assert_int_equal(unread(fd[0]), 0); /* nothing was said to it yet */
		assert_int_equal(send(fd[0], hello + i, 1, 0), 1);
		RUN_UNTIL(w.l, unread(fd[1]) == 0);
	}
	RUN_UNTIL(w.l, unread(fd[0]) > 0);
	SSL_CTX_free(ctx);
	close(fd[0]);
	close(own[0]);
	close(own[1]);
	world_close(&w);
}

static void what_is_not_tls_is_refused(void **state)
{
	struct world w;
	int fd[2];

	(void)state;
	world_open(&w, "P-256");
	tcp_pair(fd);
	accept_at(&w, &w.clients[0], fd[1]);
	assert_int_equal(send(fd[0], "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
	RUN_UNTIL(w.l, w.clients[0].failed);
	assert_int_equal(w.clients[0].why.code, ERR_INVALID);
	assert_int_equal(w.n_asks, 0);
	close(fd[0]);
	world_close(&w);
}

static void without_a_certificate_nobody_is_served(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, "P-256");
	chain_free(TAKE(w.chain));
	connect_client(&w, &w.clients[0], "http/1.1");
	RUN_UNTIL(w.l, w.clients[0].failed);
	assert_non_null(strstr(w.clients[0].why.msg, "no certificate"));
	world_close(&w);
}

/* A connection keeps what it was shown with, when another takes its place. */
static void a_chain_may_go_while_it_is_shown(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(TEST_PEM_MAX);
	struct world w;

	(void)state;
	world_open(&w, "P-256");
	test_cert_text(w.cert, &text);
	w.hold = true;
	connect_client(&w, &w.clients[0], "http/1.1");
	RUN_UNTIL(w.l, w.n_asks == 1);
	chain_free(TAKE(w.chain));
	w.chain = load(&w, buf_view(&text));
	let_go(&w);
	RUN_UNTIL(w.l, w.clients[0].open);
	world_close(&w);
}

/* --- tickets -------------------------------------------------------------------------------- */

/* A client of the library's own, as ours resumes nothing. Whether it resumed `with`, which may be
 * NULL; *ret_session is what it may resume next. */
static bool shake_hands(struct world *w, SSL_SESSION *with, SSL_SESSION **ret_session)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	struct client *c = &w->clients[0];
	bool resumed;
	int fd[2], rc;
	SSL *ssl;

	SSL_CTX_set_max_proto_version(ctx,
				      TLS1_2_VERSION); /* its ticket comes with the handshake */
	ssl = SSL_new(ctx);
	tcp_pair(fd);
	assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
	accept_at(w, c, fd[1]);
	assert_int_equal(SSL_set_fd(ssl, fd[0]), 1);
	if (with)
		assert_int_equal(SSL_set_session(ssl, with), 1);
	while ((rc = SSL_connect(ssl)) != 1) {
		assert_int_equal(SSL_get_error(ssl, rc), SSL_ERROR_WANT_READ);
		assert_true(loop_turn(w->l));
	}
	RUN_UNTIL(w->l, c->open);
	resumed = SSL_session_reused(ssl);
	*ret_session = SSL_get1_session(ssl);
	SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN); /* or the session counts as broken */
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close(fd[0]);
	client_close(c);
	*c = (struct client){ 0 };
	return resumed;
}

static void a_ticket_outlives_one_key_and_not_two(void **state)
{
	SSL_SESSION *first, *next;
	struct world w;

	(void)state;
	world_open(&w, "P-256");
	assert_false(shake_hands(&w, NULL, &first));
	assert_int_equal(w.n_asks, 1);
	for (int i = 0; i < 2; i++) { /* with the key that made it, and with the key of before */
		assert_true(shake_hands(&w, first, &next));
		SSL_SESSION_free(next);
		assert_int_equal(w.n_asks, 1); /* nobody signs */
		tls_service_rotate(w.service);
	}
	assert_false(shake_hands(&w, first, &next));
	assert_int_equal(w.n_asks, 2);
	SSL_SESSION_free(first);
	assert_true(shake_hands(&w, next, &first));
	SSL_SESSION_free(first);
	SSL_SESSION_free(next);
	world_close(&w);
}

/* --- chains --------------------------------------------------------------------------------- */

static void what_cannot_be_served_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *name, *kind;
		struct test_cert how;
		const char *said;
	} rows[] = {
		{ "expired",
		  "P-256",
		  { .names = "DNS:a", .from_s = -9000, .to_s = -7200 },
		  "expired 2 hours ago" },
		{ "too early",
		  "P-256",
		  { .names = "DNS:a", .from_s = 5400 },
		  "not valid yet: in 2" },
		{ "a client's",
		  "P-256",
		  { .names = "DNS:a", .uses = "clientAuth" },
		  "not for a server" },
		{ "nobody's", "P-256", { 0 }, "names no host" },
		{ "P-521", "P-521", { .names = "DNS:a" }, "neither P-256" },
		{ "weak", "RSA1024", { .names = "DNS:a" }, "1024 bits" },
	};
	struct world w;

	(void)state;
	world_open(&w, "P-256");
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf text = BUF_MAX(TEST_PEM_MAX);
		EVP_PKEY *key = test_key(row->kind);
		X509 *x = test_cert(key, &row->how);
		struct chain *c = NULL;
		struct err err = { 0 };

		test_cert_text(x, &text);
		assert_int_equal(chain_load(w.service, buf_view(&text), &c, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		if (!strstr(err.msg, row->said))
			fail_msg("%s", err.msg);
		X509_free(x);
		EVP_PKEY_free(key);
	}
	world_close(&w);
}

static void the_order_of_a_chain_matters(void **state)
{
	AUTO(buf_done) struct buf good = BUF_MAX(TEST_PEM_MAX), bad = BUF_MAX(TEST_PEM_MAX);
	EVP_PKEY *root_key = test_key("P-256"), *key = test_key("P-256");
	X509 *root = test_cert(root_key, &(struct test_cert){ .authority = true });
	X509 *leaf = test_cert(key, &(struct test_cert){ .names = "DNS:a.example,IP:127.0.0.1",
							 .issuer = root,
							 .issuer_key = root_key });
	struct chain *c = NULL;
	struct err err = { 0 };
	struct world w;

	(void)state;
	world_open(&w, "P-256");
	test_cert_text(leaf, &good);
	test_cert_text(root, &good);
	c = load(&w, buf_view(&good));
	assert_int_equal(chain_names(c), 1);
	assert_string_equal(chain_name(c, 0), "a.example");
	chain_free(TAKE(c));
	test_cert_text(leaf, &bad);
	test_cert_text(w.cert, &bad);
	assert_int_equal(chain_load(w.service, buf_view(&bad), &c, &err), -1);
	assert_non_null(strstr(err.msg, "did not sign the one before it"));
	assert_int_equal(chain_load(w.service, BYTES_LIT("rubbish"), &c, &err), -1);
	assert_non_null(strstr(err.msg, "not a certificate"));
	X509_free(root);
	X509_free(leaf);
	EVP_PKEY_free(root_key);
	EVP_PKEY_free(key);
	world_close(&w);
}

static void a_wildcard_stands_for_one_label(void **state)
{
	static const struct {
		const char *name;
		enum chain_fit fit;
	} rows[] = {
		{ "a.example", CHAIN_EXACT },
		{ "x.b.example", CHAIN_WILDCARD },
		{ "y.x.b.example", CHAIN_NO_FIT },
		{ "b.example", CHAIN_NO_FIT },
		{ "c.b.example", CHAIN_EXACT },
		{ "example", CHAIN_NO_FIT },
		{ "", CHAIN_NO_FIT },
		{ "b", CHAIN_NO_FIT },
	};
	AUTO(buf_done) struct buf text = BUF_MAX(TEST_PEM_MAX);
	EVP_PKEY *key = test_key("P-256");
	X509 *x = test_cert(
		key,
		&(struct test_cert){ .names = "DNS:A.example,DNS:*.b.example,DNS:c.b.example" });
	struct chain *c;
	struct world w;

	(void)state;
	world_open(&w, "P-256");
	test_cert_text(x, &text);
	c = load(&w, buf_view(&text));
	FOR_ROWS(row, rows)
		assert_int_equal(chain_fits(c, row->name), row->fit);
	chain_free(c);
	X509_free(x);
	EVP_PKEY_free(key);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_each_kind_serve),
		cmocka_unit_test(the_protocol_is_the_first_of_ours_that_is_offered),
		cmocka_unit_test(many_wait_for_the_signer_together),
		cmocka_unit_test(turns_go_round),
		cmocka_unit_test(without_a_signer_a_handshake_fails_and_says_why),
		cmocka_unit_test(a_signature_that_is_none_opens_nothing),
		cmocka_unit_test(a_client_that_goes_while_it_waits_is_forgotten),
		cmocka_unit_test(what_is_said_before_the_end_is_limited),
		cmocka_unit_test(what_is_not_tls_is_refused),
		cmocka_unit_test(a_second_hello_is_asked_for),
		cmocka_unit_test(a_second_hello_is_limited),
		cmocka_unit_test(a_hello_may_come_byte_by_byte),
		cmocka_unit_test(without_a_certificate_nobody_is_served),
		cmocka_unit_test(a_chain_may_go_while_it_is_shown),
		cmocka_unit_test(a_ticket_outlives_one_key_and_not_two),
		cmocka_unit_test(what_cannot_be_served_is_refused_with_a_reason),
		cmocka_unit_test(the_order_of_a_chain_matters),
		cmocka_unit_test(a_wildcard_stands_for_one_label),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
