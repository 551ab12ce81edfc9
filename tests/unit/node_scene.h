/* node_scene.h - for tests of node: a node that has all but machines, and a gateway that asks it.
 */
#pragma once

#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/link_hello.h"
#include "base/fdmsg.h"
#include "net/addr.h"
#include "node/life/create_queue.h"
#include "node/life/end.h"
#include "node/life/requests.h"
#include "node/node.h"
#include "node/life/start.h"

enum { GUARD_MS = 100000 };

static struct scene {
	struct node *n;
	struct timer guard;
	char dir[64], path[80];
	int sock;
	uint64_t tag;
	size_t n_boxes;
} s;

static inline void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

static inline int knock(void)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct link_hello hello = link_hello_make(NODE_VERSION_MIN, NODE_VERSION_MAX);
	struct addr at;
	struct err err;

	assert_int_equal(addr_unix(s.path, &at, &err), 0);
	assert_int_equal(connect(sock, (const struct sockaddr *)&at.at, at.len), 0);
	assert_int_equal(send(sock, &hello, sizeof(hello), 0), sizeof(hello));
	while (recv(sock, &hello, sizeof(hello), 0) < 0)
		assert_true(loop_turn(s.n->loop));
	return sock;
}

static inline void keep_free(uint64_t mib)
{
	struct err err;

	files_close(TAKE(s.n->files));
	if (files_open(s.n->loop, s.dir, s.dir, mib, &s.n->files, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline void open_journal(void)
{
	char path[96];
	struct err err;

	snprintf(path, sizeof(path), "%s/journal.db", s.dir);
	if (journal_open(s.n->loop, path, &s.n->journal, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline void scene_open(void)
{
	struct node *n = calloc(1, sizeof(*n));
	struct err err;

	s = (struct scene){ .n = n, .dir = "/tmp/hotcell-creates-XXXXXX" };
	assert_non_null(n);
	assert_non_null(mkdtemp(s.dir));
	snprintf(s.path, sizeof(s.path), "%s/node.sock", s.dir);
	assert_int_equal(loop_open(&n->loop, &err), 0);
	timer_init(&s.guard, n->loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	n->set[SET_SANDBOXES_MAX].number = 100;
	n->set[SET_PAUSED_MAX].number = 100;
	n->set[SET_TIMEOUT_MAX_S].number = 3600;
	n->memory.total_mib = n->memory.available_mib = 1024 * 1024;
	n->set[SET_MEMORY_OVERCOMMIT].number = 100;
	n->sizes = (struct warden_sizes){ .vcpus = 2, .memory_mib = 512 };
	n->base.disk_mib = 1000;
	n->base.state = BASE_BUILDING; /* nothing is started */
	n->warden.link.up = n->egress.up = true;
	n->egress.path = n->injector.link.path = n->images.link.path = ""; /* there is none */
	n->set[SET_BUILDS_MAX].number = n->set[SET_BUILDS_TEAM].number = 2;
	builds_open(n);
	refreezes_open(n);
	keep_free(0);
	open_journal();
	tidy_open(n);
	creates_open(n);
	requests_open(n);
	if (door_open(n->loop, s.path, geteuid(), getegid(), &n->door_user, &n->door, &err) < 0)
		fail_msg("%s", err.msg);
	s.sock = knock();
}

static inline void scene_end(void)
{
	AUTO(auto_close) int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err err;

	timer_stop(&s.guard);
	close(s.sock);
	door_close(TAKE(s.n->door));
	requests_close(s.n);
	creates_close(s.n);
	idempotency_close(s.n);
	tidy_close(s.n);
	while (s.n->table.all) {
		assert_null(s.n->table.all->repeat);
		sandbox_free(s.n->table.all);
	}
	snapshots_close(s.n);
	files_close(TAKE(s.n->files));
	journal_close(TAKE(s.n->journal));
	loop_free(s.n->loop);
	free(s.n);
	assert_int_equal(folder_remove(tmp, s.dir + strlen("/tmp/"), &err), 0);
}

static inline struct node_request request(const char *key, const char *name)
{
	struct node_request rq = {
		.verb = NODE_CREATE, .team = "team", .template_id = "base", .timeout_s = 60
	};

	snprintf(rq.key_id, sizeof(rq.key_id), "%s", key);
	snprintf(rq.idempotency, sizeof(rq.idempotency), "%s", name);
	return rq;
}

static inline void send_it(struct node_request rq, const char *text)
{
	struct err err;

	rq.tag = ++s.tag;
	rq.text_len = (uint32_t)strlen(text);
	if (fdmsg_send_pair(s.sock, (struct bytes){ (const uint8_t *)&rq, sizeof(rq) },
			    bytes_str(text), NULL, 0, &err) < 0)
		fail_msg("%s", err.msg);
}

enum { HEARD_MAX = 4096 };

/* What is behind the reply, as it is. */
static inline struct node_reply hear_bytes(char behind[static HEARD_MAX])
{
	uint8_t in[sizeof(struct node_reply) + HEARD_MAX];
	struct node_reply r;
	struct err err = { 0 };
	size_t len = 0, n_fds = 0;

	while (fdmsg_recv_some(s.sock, in, sizeof(r), sizeof(in), &len, NULL, 0, &n_fds, &err) <
	       0) {
		assert_int_equal(err.sys, EAGAIN);
		assert_true(loop_turn(s.n->loop));
	}
	memcpy(&r, in, sizeof(r));
	memset(behind, 0, HEARD_MAX);
	memcpy(behind, in + sizeof(r), len - sizeof(r));
	return r;
}

static inline struct node_reply hear_text(char text[static HEARD_MAX])
{
	struct node_reply r = hear_bytes(text);

	text[HEARD_MAX - 1] = '\0';
	return r;
}

static inline struct node_reply hear(void)
{
	char text[HEARD_MAX];

	return hear_text(text);
}

static inline size_t count_all(void)
{
	size_t n = 0;

	for (const struct create *c = s.n->creates.all; c; c = c->all_next)
		n++;
	return n;
}

static inline void run_until_waiting(size_t n)
{
	while (s.n->creates.n != n)
		assert_true(loop_turn(s.n->loop));
}

static inline struct sandbox *box_new(void)
{
	struct err err;
	struct sandbox *b = sandbox_make(s.n, &err);

	assert_non_null(b);
	b->info.started_ns = clock_wall_ns();
	b->info.generation = SANDBOX_FIRST_GENERATION;
	b->info.vcpus = 2;
	b->info.memory_mib = 512;
	b->info.disk_mib = 1000;
	snprintf(b->info.id, sizeof(b->info.id), "box%zu", ++s.n_boxes);
	snprintf(b->info.team, sizeof(b->info.team), "team");
	table_add(&s.n->table, b);
	return b;
}

static inline void box_runs(struct sandbox *b)
{
	struct err err;

	sandbox_enter(&s.n->table, b, SANDBOX_RUNNING);
	assert_int_equal(table_own(&s.n->table, b, &err), 0);
}

/* As if it had been paused. */
static inline void box_rests(struct sandbox *b)
{
	sandbox_enter(&s.n->table, b, SANDBOX_PAUSING);
	sandbox_enter(&s.n->table, b, SANDBOX_PARKING);
	sandbox_enter(&s.n->table, b, SANDBOX_PAUSED);
	b->info.state = NODE_PAUSED;
}

/* As give_out() and on_settled() do. */
static inline struct sandbox *give(void)
{
	struct create *c = s.n->creates.first;
	struct sandbox *b = box_new();

	creates_take(&s.n->creates, c);
	s.n->creates.claimed++;
	b->create = c;
	memcpy(b->info.team, c->team, sizeof(b->info.team));
	memcpy(b->key_id, c->key_id, sizeof(b->key_id));
	memcpy(b->token, c->token, sizeof(b->token));
	box_runs(b);
	creates_done(b);
	return b;
}
