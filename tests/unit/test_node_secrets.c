/* test_node_secrets.c - new values of secrets on their way: the newest is the last to arrive. */
#include "tests/unit/played_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/memory_file.h"
#include "base/fdmsg.h"
#include "node/network/network_secrets.h"
#include "node/node.h"

enum { GUARD_MS = 60000, SLOT = 3, DEFERRED_MAX = 8 };

#define SECRET(value)                                                                  \
	"{\"sealed\":{\"key\":\"" value "\"},\"network\":{\"rules\":{\"a.example\":[{" \
	"\"transform\":{\"headers\":{\"k\":\"${e2b.secrets.key}\"}}}]}}}"

static struct scene {
	struct loop *loop;
	struct timer guard;
	struct played_daemon egress, injector;
	struct node *node;
	struct sandbox *sandbox;
	uint64_t waits[DEFERRED_MAX]; /* tags of those that the injector keeps waiting */
	size_t n_waits, n_rules;
	char last[256];   /* rules that egress was given */
	char opened[512]; /* what the injector was */
	char dir[64], door_path[80], journal_path[80];
	int gateway; /* its end at the door; -1: not open */
	size_t n_asked;
	struct timer later;
} s;

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

#define UNTIL(condition)     \
	while (!(condition)) \
	assert_true(loop_turn(s.loop))

/* --- the daemons -------------------------------------------------------------------------- */

static void egress_asked(struct watch *w, unsigned int events)
{
	AUTO(buf_done) struct buf rules = BUF_MAX(sizeof(s.last) - 1);
	struct egress_reply reply = { .code = ERR_NONE };
	struct egress_request rq;
	int fds[2] = { -1, -1 };
	struct err err = { 0 };
	size_t n = 0;

	(void)w, (void)events;
	if (fdmsg_recv(s.egress.sock, &rq, sizeof(rq), fds, 2, &n, &err) < 0) {
		if (err.sys != EAGAIN)
			played_daemon_hang_up(&s.egress);
		return;
	}
	if (rq.verb == EGRESS_RULE) {
		assert_int_equal(rq.slot, SLOT);
		assert_int_equal(memory_file_read(fds[0], &rules, &err), 0);
		assert_true(bytes_to_str(buf_view(&rules), s.last, sizeof(s.last)));
		s.n_rules++;
	}
	auto_close(&fds[0]);
	auto_close(&fds[1]);
	reply.tag = rq.tag;
	assert_int_equal(fdmsg_send(s.egress.sock, &reply, sizeof(reply), NULL, 0, &err), 0);
}

static void injector_answers(uint64_t tag, int fd)
{
	const struct injector_reply reply = { .tag = tag };
	struct err err;

	assert_int_equal(fdmsg_send(s.injector.sock, &reply, sizeof(reply), &fd, fd >= 0, &err), 0);
	auto_close(&fd);
}

static void injector_asked(struct watch *w, unsigned int events)
{
	AUTO(buf_done) struct buf opened = BUF_MAX(sizeof(s.opened) - 1);
	struct injector_request rq;
	struct err err = { 0 };
	int fd = -1;
	size_t n = 0;

	(void)w, (void)events;
	if (fdmsg_recv(s.injector.sock, &rq, sizeof(rq), &fd, 1, &n, &err) < 0) {
		if (err.sys != EAGAIN)
			played_daemon_hang_up(&s.injector);
		return;
	}
	if (rq.verb == INJECTOR_START) {
		assert_int_equal(memory_file_read(fd, &opened, &err), 0);
		assert_true(bytes_to_str(buf_view(&opened), s.opened, sizeof(s.opened)));
	}
	auto_close(&fd);
	if (rq.verb == INJECTOR_FACTS)
		injector_answers(rq.tag,
				 memory_file_make("facts",
						  BYTES_LIT("{\"ca\":\"\",\"sealKey\":\"\"}"),
						  &err));
	else if (rq.verb == INJECTOR_START)
		s.waits[s.n_waits++] = rq.tag;
	else
		injector_answers(rq.tag, -1);
}

/* --- the scene ---------------------------------------------------------------------------- */

static void nothing(struct link *k)
{
	(void)k;
}

static void nothing_opened(struct injector_client *k)
{
	(void)k;
}

static void scene_open(void)
{
	static const struct link_ops ops = { .on_hello = egress_on_hello,
					     .on_up = nothing,
					     .on_down = nothing };
	static const struct injector_client_ops injector_ops = { nothing_opened,
								 network_worker_gone, NULL };
	struct err err;

	s = (struct scene){ 0 };
	assert_int_equal(loop_open(&s.loop, &err), 0);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	played_daemon_open(&s.egress, s.loop, "secrets-egress", EGRESS_VERSION_MAX, egress_asked);
	played_daemon_open(&s.injector, s.loop, "secrets-injector", INJECTOR_VERSION_MAX,
			   injector_asked);
	s.node = calloc(1, sizeof(*s.node));
	s.sandbox = calloc(1, sizeof(*s.sandbox));
	assert_true(s.node && s.sandbox);
	s.node->loop = s.loop;
	link_open(&s.node->egress, s.loop, s.egress.path, &egress_words, &ops);
	injector_client_open(&s.node->injector, s.loop, s.injector.path, &injector_ops);
	s.sandbox->node = s.node;
	s.sandbox->slot = SLOT;
	snprintf(s.sandbox->info.id, sizeof(s.sandbox->info.id), "box");
	snprintf(s.sandbox->info.team, sizeof(s.sandbox->info.team), "team");
	table_add(&s.node->table, s.sandbox);
	UNTIL(s.node->egress.up && s.node->injector.seal_key);
}

static void scene_end(void)
{
	timer_stop(&s.guard);
	injector_client_close(&s.node->injector);
	link_close(&s.node->egress);
	table_remove(&s.node->table, s.sandbox);
	free(s.sandbox);
	free(s.node);
	played_daemon_close(&s.egress);
	played_daemon_close(&s.injector);
	loop_free(s.loop);
}

static void let_in(size_t i)
{
	injector_answers(s.waits[i], open("/dev/null", O_RDONLY | O_CLOEXEC));
}

/* --- secrets ------------------------------------------------------------------------------ */

static void on_request(struct door_user *u, struct door_asked *a, const struct node_request *rq,
		       struct bytes text)
{
	(void)u;
	s.n_asked++;
	secrets_ask(s.node, a, rq, text);
}

static void open_door(void)
{
	struct link_hello hello = link_hello_make(NODE_VERSION_MIN, NODE_VERSION_MAX);
	static const struct door_user_ops ops = { on_request };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct err err;

	memcpy(s.dir, "/tmp/hotcell-secrets-XXXXXX", 28);
	assert_non_null(mkdtemp(s.dir));
	snprintf(s.journal_path, sizeof(s.journal_path), "%s/journal.db", s.dir);
	snprintf(s.door_path, sizeof(s.door_path), "%s/door", s.dir);
	assert_int_equal(journal_open(s.loop, s.journal_path, &s.node->journal, &err), 0);
	s.node->door_user.ops = &ops;
	assert_int_equal(door_open(s.loop, s.door_path, geteuid(), getegid(), &s.node->door_user,
				   &s.node->door, &err),
			 0);
	memcpy(at.sun_path, s.door_path, sizeof(s.door_path));
	s.gateway = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(s.gateway, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(send(s.gateway, &hello, sizeof(hello), 0), sizeof(hello));
	UNTIL(recv(s.gateway, &hello, sizeof(hello), MSG_DONTWAIT) > 0);
}

static void close_door(void)
{
	static const char *const names[] = { "journal.db", "journal.db-wal", "journal.db-shm" };
	char path[160];

	close(s.gateway);
	secrets_close(s.node);
	door_close(TAKE(s.node->door));
	journal_close(TAKE(s.node->journal));
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", s.dir, names[i]);
		unlink(path);
	}
	rmdir(s.dir);
}

static void say_secret(const char *text)
{
	struct node_request rq = { .verb = NODE_SECRET,
				   .tag = s.n_asked + 1,
				   .team = "team",
				   .text_len = (uint32_t)strlen(text) };
	size_t before = s.n_asked;
	struct err err;

	assert_int_equal(fdmsg_send_pair(s.gateway, (struct bytes){ (uint8_t *)&rq, sizeof(rq) },
					 bytes_str(text), NULL, 0, &err),
			 0);
	UNTIL(s.n_asked > before);
}

static void enter(enum sandbox_state last)
{
	static const enum sandbox_state way[] = { SANDBOX_SLOT, SANDBOX_STARTING, SANDBOX_RESTORING,
						  SANDBOX_WAITING, SANDBOX_NAMING };

	for (size_t i = 0; i < COUNT(way) && s.sandbox->state != last; i++)
		sandbox_enter(&s.node->table, s.sandbox, way[i]);
}

static void passed(struct timer *t)
{
	(void)t;
}

static void pause_ms(uint64_t ms)
{
	timer_init(&s.later, s.loop, passed);
	timer_start(&s.later, ms);
	UNTIL(!s.later.active);
}

/* Both wait until it has come to rest, and the one that was asked first looks last. */
static void a_secret_of_before_does_not_come_back(void **state)
{
	(void)state;
	scene_open();
	open_door();
	s.sandbox->text = strdup(SECRET("v1"));
	sandbox_enter(&s.node->table, s.sandbox, SANDBOX_WAKING);
	say_secret("{\"name\":\"key\",\"sealed\":\"v2\"}");
	pause_ms(SECRETS_LOOK_MS / 2);
	say_secret("{\"name\":\"key\",\"sealed\":\"v3\"}");
	pause_ms(SECRETS_LOOK_MS / 2 + SECRETS_LOOK_MS / 5);
	sandbox_enter(&s.node->table, s.sandbox, SANDBOX_PARKING);
	UNTIL(!s.node->secret_jobs);
	assert_non_null(strstr(s.sandbox->text, "\"v3\""));
	free(s.sandbox->text);
	close_door();
	scene_end();
}

/* It has its worker, and is not answered yet. */
static void one_that_is_being_claimed_gets_a_new_secret(void **state)
{
	struct create create = { .team = "team", .text = strdup(SECRET("v1")) };

	(void)state;
	scene_open();
	open_door();
	create.node = s.node;
	s.node->creates.all = &create;
	s.sandbox->create = &create;
	enter(SANDBOX_NAMING);
	network_retell(s.sandbox);
	UNTIL(s.n_waits == 1);
	let_in(0);
	UNTIL(s.n_rules == 1);
	assert_non_null(strstr(s.opened, "\"v1\""));
	say_secret("{\"name\":\"key\",\"sealed\":\"v2\"}");
	UNTIL(s.n_waits == 2);
	assert_non_null(strstr(s.opened, "\"v2\""));
	network_cancel(s.sandbox);
	free(create.text);
	close_door();
	scene_end();
}

/* Whoever is told so deletes it again, and must not find it done. */
static void what_could_not_be_noted_is_not_done(void **state)
{
	static const char gone[] = "{\"name\":\"key\",\"sealed\":null}";
	struct rlimit before, none;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	scene_open();
	open_door();
	s.sandbox->text = strdup(SECRET("v1"));
	sandbox_enter(&s.node->table, s.sandbox, SANDBOX_RUNNING);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = before;
	none.rlim_cur = 1;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	say_secret(gone);
	UNTIL(!s.node->secret_jobs);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(s.n_waits, 0);
	say_secret(gone);
	UNTIL(s.n_waits == 1 || !s.node->secret_jobs);
	assert_int_equal(s.n_waits, 1);
	assert_null(strstr(s.opened, "\"v1\""));
	let_in(0);
	UNTIL(!s.node->secret_jobs);
	assert_null(strstr(s.sandbox->text, "\"v1\""));
	free(s.sandbox->text);
	close_door();
	scene_end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_secret_of_before_does_not_come_back),
		cmocka_unit_test(one_that_is_being_claimed_gets_a_new_secret),
		cmocka_unit_test(what_could_not_be_noted_is_not_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
