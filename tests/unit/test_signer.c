/* test_signer.c - the signer: what it lets a gateway ask, and which keys it has. */
#include "tests/unit/test_net_layers.h"
#include "tests/unit/tls_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/fdmsg.h"
#include "base/folder.h"
#include "base/link_hello.h"
#include "signer/control.h"
#include "signer/request.h"

#define TLS13                                                              \
	"                                                                " \
	"TLS 1.3, server CertificateVerify"
#define HASH    "0123456789abcdef0123456789abcdef"
#define RANDOMS HASH HASH

/* --- what may be asked ---------------------------------------------------------------------- */

static struct signer_request sign_of(struct bytes what, unsigned int scheme)
{
	struct signer_request rq = { .tag = 1, .scheme = scheme, .n = (uint32_t)what.len };

	memcpy(rq.what, what.ptr, what.len);
	return rq;
}

static void handshakes_are_signed_and_nothing_else(void **state)
{
	static const struct {
		const char *name;
		struct bytes what;
		unsigned int scheme;
		enum signer_shape shape;
		bool may;
	} rows[] = {
		{ "1.3", BYTES_LIT(TLS13 "\0" HASH), SIGN_ECDSA_SHA256, SIGNER_TLS13, true },
		{ "1.3, SHA-384", BYTES_LIT(TLS13 "\0" HASH "0123456789abcdef"), SIGN_PSS_SHA256,
		  SIGNER_TLS13, true },
		{ "1.3 with PKCS", BYTES_LIT(TLS13 "\0" HASH), SIGN_PKCS_SHA256, SIGNER_TLS13,
		  false },
		{ "1.3, a scheme that is none", BYTES_LIT(TLS13 "\0" HASH), 0x0101, SIGNER_TLS13,
		  false },
		{ "1.3, SHA-1", BYTES_LIT(TLS13 "\0" HASH), 0x0203, SIGNER_TLS13, false },
		{ "1.3, no zero", BYTES_LIT(TLS13 "x" HASH), SIGN_ECDSA_SHA256, SIGNER_NO_SHAPE,
		  false },
		{ "1.3, more than a hash", BYTES_LIT(TLS13 "\0" HASH "x"), SIGN_ECDSA_SHA256,
		  SIGNER_NO_SHAPE, false },
		{ "1.3 without a hash", BYTES_LIT(TLS13 "\0"), SIGN_ECDSA_SHA256, SIGNER_NO_SHAPE,
		  false },
		{ "X25519", BYTES_LIT(RANDOMS "\3\0\x1d\x20" HASH), SIGN_ECDSA_SHA256, SIGNER_TLS12,
		  true },
		{ "X25519 with PKCS", BYTES_LIT(RANDOMS "\3\0\x1d\x20" HASH), SIGN_PKCS_SHA256,
		  SIGNER_TLS12, true },
		{ "X25519, longer", BYTES_LIT(RANDOMS "\3\0\x1d\x20" HASH "x"), SIGN_ECDSA_SHA256,
		  SIGNER_NO_SHAPE, false },
		{ "P-256", BYTES_LIT(RANDOMS "\3\0\x17\x41\4" RANDOMS), SIGN_ECDSA_SHA256,
		  SIGNER_TLS12, true },
		{ "P-384", BYTES_LIT(RANDOMS "\3\0\x18\x61\4" RANDOMS HASH), SIGN_ECDSA_SHA384,
		  SIGNER_TLS12, true },
		{ "P-256, a compressed point", BYTES_LIT(RANDOMS "\3\0\x17\x41\2" RANDOMS),
		  SIGN_ECDSA_SHA256, SIGNER_NO_SHAPE, false },
		{ "a curve of its own", BYTES_LIT(RANDOMS "\1\0\x1d\x20" HASH), SIGN_ECDSA_SHA256,
		  SIGNER_NO_SHAPE, false },
		{ "another curve", BYTES_LIT(RANDOMS "\3\0\x1e\x20" HASH), SIGN_ECDSA_SHA256,
		  SIGNER_NO_SHAPE, false },
		{ "randoms alone", BYTES_LIT(RANDOMS "\3\0\x1d\x20"), SIGN_ECDSA_SHA256,
		  SIGNER_NO_SHAPE, false },
		{ "a hash", BYTES_LIT(HASH), SIGN_ECDSA_SHA256, SIGNER_NO_SHAPE, false },
		{ "a token", BYTES_LIT("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJyb290In0"),
		  SIGN_ECDSA_SHA256, SIGNER_NO_SHAPE, false },
		{ "nothing", BYTES_LIT(""), SIGN_ECDSA_SHA256, SIGNER_NO_SHAPE, false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct signer_request rq = sign_of(row->what, row->scheme);
		struct err err = { 0 };

		assert_int_equal(signer_shape_of(row->what), row->shape);
		assert_int_equal(signer_request_check(&rq, &err), row->may ? 0 : -1);
		assert_int_equal(err.code, row->may ? ERR_NONE : ERR_DENIED);
	}
}

static void a_request_is_looked_at_as_a_whole(void **state)
{
	const struct bytes good = BYTES_LIT(TLS13 "\0" HASH);
	struct signer_request rq = sign_of(good, SIGN_ECDSA_SHA256);
	struct err err = { 0 };

	(void)state;
	rq.what[SIGNER_WHAT_MAX - 1] = 1;
	assert_int_equal(signer_request_check(&rq, &err), -1);
	rq = sign_of(good, SIGN_ECDSA_SHA256);
	rq.n = SIGNER_WHAT_MAX + 1;
	assert_int_equal(signer_request_check(&rq, &err), -1);
	rq = sign_of(good, SIGN_ECDSA_SHA256);
	rq.tag = 0;
	assert_int_equal(signer_request_check(&rq, &err), -1);
	rq = sign_of(good, SIGN_ECDSA_SHA256);
	rq.verb = SIGNER_VERBS;
	assert_int_equal(signer_request_check(&rq, &err), -1);
	rq = (struct signer_request){ .tag = 1, .verb = SIGNER_HAS };
	assert_int_equal(signer_request_check(&rq, &err), 0);
	rq.scheme = 1;
	assert_int_equal(signer_request_check(&rq, &err), -1);
}

/* --- the keys of a folder ------------------------------------------------------------------- */

struct scene {
	struct loop *l;
	char dir[64], path[80];
	struct keyring *keys;
	struct control *control;
};

static void put_file(const struct scene *s, const char *name, struct bytes text, mode_t mode)
{
	char path[256], draft[260];
	int fd;

	snprintf(path, sizeof(path), "%s/tls/%s", s->dir, name);
	if (mkdir(path, 0755) < 0)
		assert_int_equal(errno, EEXIST);
	snprintf(path, sizeof(path), "%s/tls/%s/privkey.pem", s->dir, name);
	snprintf(draft, sizeof(draft), "%s.new", path);
	fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text.ptr, text.len), (ssize_t)text.len);
	close(fd);
	assert_int_equal(rename(draft, path), 0);
}

/* ret: its id. */
static void put_key(const struct scene *s, const char *name, uint8_t ret[static SIGN_ID])
{
	AUTO(buf_done) struct buf text = BUF_MAX(TEST_PEM_MAX);
	EVP_PKEY *key = test_key("P-256");
	struct sign_key *k = NULL;
	struct err err = { 0 };

	test_key_text(key, &text);
	assert_int_equal(sign_key_load(buf_view(&text), &k, &err), 0);
	memcpy(ret, sign_key_id(k), SIGN_ID);
	sign_key_free(k);
	EVP_PKEY_free(key);
	put_file(s, name, buf_view(&text), 0400);
}

static void scene_open(struct scene *s)
{
	char tls[80];

	*s = (struct scene){ .l = test_loop() };
	snprintf(s->dir, sizeof(s->dir), "/tmp/hotcell-signer-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	snprintf(tls, sizeof(tls), "%s/tls", s->dir);
	assert_int_equal(mkdir(tls, 0755), 0);
	snprintf(s->path, sizeof(s->path), "%s/sock", s->dir);
}

static void scene_serve(struct scene *s)
{
	struct err err = { 0 };
	char tls[80];

	snprintf(tls, sizeof(tls), "%s/tls", s->dir);
	if (control_open(&s->control, s->l, s->path, getuid(), &err) < 0 ||
	    keyring_open(&s->keys, s->l, open(tls, O_RDONLY | O_DIRECTORY | O_CLOEXEC), &err) < 0)
		fail_msg("%s", err.msg);
	control_serve(s->control, s->keys);
}

static void scene_close(struct scene *s)
{
	AUTO(auto_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err;

	control_close(s->control);
	keyring_close(s->keys);
	loop_free(s->l);
	assert_int_equal(folder_remove(tmp, s->dir + sizeof("/tmp"), &err), 0);
}

static void a_key_is_found_by_its_id(void **state)
{
	const uint8_t nobody[SIGN_ID] = { 0 };
	uint8_t a[SIGN_ID], b[SIGN_ID];
	struct scene s;

	(void)state;
	scene_open(&s);
	put_key(&s, "a.example", a);
	put_key(&s, "b.example", b);
	put_file(&s, "broken", BYTES_LIT("no key"), 0400);
	put_file(&s, ".hidden", BYTES_LIT("no key"), 0400);
	scene_serve(&s);
	assert_int_equal(keyring_count(s.keys), 2);
	assert_non_null(keyring_find(s.keys, a));
	assert_non_null(keyring_find(s.keys, b));
	assert_null(keyring_find(s.keys, nobody));
	scene_close(&s);
}

/* The certificate that is served may still be the old one. */
static void a_new_key_is_taken_and_the_one_before_stays(void **state)
{
	uint8_t first[SIGN_ID], second[SIGN_ID], third[SIGN_ID];
	struct scene s;

	(void)state;
	scene_open(&s);
	put_key(&s, "a", first);
	scene_serve(&s);
	put_key(&s, "a", second);
	RUN_UNTIL(s.l, keyring_find(s.keys, second));
	assert_non_null(keyring_find(s.keys, first));
	put_file(&s, "a", BYTES_LIT("rubbish"), 0400);
	put_key(&s, "b", third); /* seen in the same look as the rubbish, or a later one */
	RUN_UNTIL(s.l, keyring_find(s.keys, third));
	assert_non_null(keyring_find(s.keys, second));
	scene_close(&s);
}

/* However often it is replaced before the gateway has looked. */
static void a_key_in_use_stays(void **state)
{
	uint8_t used[SIGN_ID], unused[SIGN_ID], next[SIGN_ID];
	struct scene s;

	(void)state;
	scene_open(&s);
	put_key(&s, "a", unused);
	scene_serve(&s);
	put_key(&s, "a", used);
	RUN_UNTIL(s.l, keyring_find(s.keys, used));
	for (int i = 0; i < KEYRING_KEPT; i++) {
		put_key(&s, "a", next);
		RUN_UNTIL(s.l, keyring_find(s.keys, next));
		assert_non_null(keyring_find(s.keys, used));
	}
	assert_null(keyring_find(s.keys, unused));
	scene_close(&s);
}

static void a_key_that_was_removed_is_forgotten(void **state)
{
	uint8_t a[SIGN_ID];
	char path[256];
	struct scene s;

	(void)state;
	scene_open(&s);
	put_key(&s, "a", a);
	scene_serve(&s);
	snprintf(path, sizeof(path), "%s/tls/a/privkey.pem", s.dir);
	assert_int_equal(unlink(path), 0);
	for (int i = 0; i < 2 && keyring_find(s.keys, a); i++) /* it takes CERT_GONE_MS */
		for (uint64_t until = loop_now_ms(s.l) + CERT_GONE_MS / 2 + CERT_LOOK_MS;
		     loop_now_ms(s.l) < until && keyring_find(s.keys, a);)
			loop_turn(s.l);
	assert_null(keyring_find(s.keys, a));
	scene_close(&s);
}

/* --- at the socket -------------------------------------------------------------------------- */

static int call(struct scene *s)
{
	struct link_hello hello = link_hello_make(SIGNER_VERSION_MIN, SIGNER_VERSION_MAX), theirs;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct err err = { 0 };
	size_t n = 0;

	memcpy(at.sun_path, s->path, sizeof(s->path));
	assert_int_equal(connect(sock, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(fdmsg_send(sock, &hello, sizeof(hello), NULL, 0, &err), 0);
	RUN_UNTIL(s->l, fdmsg_recv(sock, &theirs, sizeof(theirs), NULL, 0, &n, &err) == 0);
	return sock;
}

static struct signer_reply ask(struct scene *s, int sock, const struct signer_request *rq)
{
	struct signer_reply r;
	struct err err = { 0 };
	size_t n = 0;

	assert_int_equal(fdmsg_send(sock, rq, sizeof(*rq), NULL, 0, &err), 0);
	RUN_UNTIL(s->l, fdmsg_recv(sock, &r, sizeof(r), NULL, 0, &n, &err) == 0);
	assert_int_equal(r.tag, rq->tag);
	return r;
}

static void a_gateway_gets_signatures(void **state)
{
	struct signer_request rq = sign_of(BYTES_LIT(TLS13 "\0" HASH), SIGN_ECDSA_SHA256);
	struct signer_request has = { .tag = 7, .verb = SIGNER_HAS };
	struct signer_reply r;
	struct scene s;
	int sock;

	(void)state;
	scene_open(&s);
	put_key(&s, "a", rq.id);
	scene_serve(&s);
	sock = call(&s);
	r = ask(&s, sock, &rq);
	assert_int_equal(r.code, ERR_NONE);
	assert_true(r.n > 60 && r.n < 80);
	assert_int_equal(ask(&s, sock, &has).code, ERR_NOT_FOUND);
	memcpy(has.id, rq.id, sizeof(has.id));
	assert_int_equal(ask(&s, sock, &has).code, ERR_NONE);
	rq.scheme = SIGN_PSS_SHA256;
	assert_int_equal(ask(&s, sock, &rq).code, ERR_INVALID);
	rq = sign_of(BYTES_LIT("a certificate"), SIGN_ECDSA_SHA256);
	memcpy(rq.id, has.id, sizeof(rq.id));
	r = ask(&s, sock, &rq);
	assert_int_equal(r.code, ERR_DENIED);
	assert_int_equal(r.n, 0);
	close(sock);
	scene_close(&s);
}

static void who_speaks_otherwise_is_hung_up_on(void **state)
{
	struct err err = { 0 };
	char byte;
	struct scene s;
	int sock;

	(void)state;
	scene_open(&s);
	scene_serve(&s);
	sock = call(&s);
	assert_int_equal(fdmsg_send(sock, "short", 5, NULL, 0, &err), 0);
	RUN_UNTIL(s.l, recv(sock, &byte, 1, MSG_DONTWAIT) == 0);
	close(sock);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handshakes_are_signed_and_nothing_else),
		cmocka_unit_test(a_request_is_looked_at_as_a_whole),
		cmocka_unit_test(a_key_is_found_by_its_id),
		cmocka_unit_test(a_new_key_is_taken_and_the_one_before_stays),
		cmocka_unit_test(a_key_in_use_stays),
		cmocka_unit_test(a_key_that_was_removed_is_forgotten),
		cmocka_unit_test(a_gateway_gets_signatures),
		cmocka_unit_test(who_speaks_otherwise_is_hung_up_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
