/* test_http_secret.c - a body that was said to be secret is nowhere when it was dealt with.
 *
 * Another process draws it and sends it; this one knows it in disguise alone, and looks for it in
 * all of its own memory.
 */
#include "tests/unit/test_net_layers.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/random.h"
#include "http/server.h"
#include "jail/sanitized.h"
#include "wire/json.h"

enum { DISGUISE = 0xa5, VALUE_LEN = 60, NEEDLE_LEN = 12, LONG = 9000, DEEP = 40 * 1024 };
enum { REGION_MAX = 64 * 1024 * 1024 };

/* How the body comes, and what becomes of it. */
struct scene {
	const char *name;
	size_t more;   /* of the body, besides the value */
	bool in_parts; /* head and body are not sent at once */
	bool later;    /* it is read when it has been there for a while */
	bool unread;   /* refused at the head */
	bool open;     /* nobody says that it is secret: then it is found */
};

struct shared { /* with who sends it */
	uint8_t value[VALUE_LEN];
	atomic_bool head_seen;
};

struct desk {
	struct http_server http;
	struct http_handler handler;
	struct loop *l;
	const struct scene *scene;
	struct shared *shared;
	struct http_request *rq;
	struct timer later;
	struct buf body;
	bool done;
};

/* --- the other process ----------------------------------------------------------------------- */

static void send_all(int fd, const void *at, size_t n)
{
	if (write(fd, at, n) != (ssize_t)n)
		_exit(1);
}

_Noreturn static void send_it(int fd, struct shared *shared, const struct scene *scene)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef";
	static char text[LONG + 512];
	uint8_t drawn[VALUE_LEN];
	size_t n;
	char answer[64];

	random_fill(drawn, sizeof(drawn));
	n = (size_t)snprintf(text, sizeof(text),
			     "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
			     "Content-Length: %zu\r\n\r\n",
			     sizeof("{\"value\":\"\"}") - 1 + VALUE_LEN + scene->more);
	if (scene->in_parts) {
		send_all(fd, text, n);
		n = 0;
		for (int i = 0; i < TEST_PATIENCE_MS && !shared->head_seen; i++)
			poll(NULL, 0, 1);
	}
	n += (size_t)snprintf(text + n, sizeof(text) - n, "{\"value\":\"");
	for (size_t i = 0; i < VALUE_LEN; i++) {
		text[n++] = letters[drawn[i] % 32];
		shared->value[i] = (uint8_t)text[n - 1] ^ DISGUISE;
	}
	memset(text + n, 'x', scene->more);
	n += scene->more;
	n += (size_t)snprintf(text + n, sizeof(text) - n, "\"}");
	send_all(fd, text, n);
	while (read(fd, answer, sizeof(answer)) > 0)
		;
	_exit(0);
}

/* --- looking for it -------------------------------------------------------------------------- */

/* Any twelve bytes of it, from a multiple of twelve on. */
static bool holds(const uint8_t *at, size_t n, const struct shared *shared)
{
	for (size_t from = 0; from + NEEDLE_LEN <= VALUE_LEN; from += NEEDLE_LEN) {
		const uint8_t *want = shared->value + from;

		for (size_t i = 0; i + NEEDLE_LEN <= n; i++) {
			size_t k = 0;

			while (k < NEEDLE_LEN && (at[i + k] ^ DISGUISE) == want[k])
				k++;
			if (k == NEEDLE_LEN)
				return true;
		}
	}
	return false;
}

/* Where it is, or NULL. `into` is not looked at. */
static const char *find(const struct shared *shared, uint8_t *into)
{
	static char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	const char *found = NULL;

	assert_true(maps && memory >= 0);
	while (!found && fgets(line, sizeof(line), maps)) {
		char *rest = NULL;
		uintptr_t begin = strtoul(line, &rest, 16), end = strtoul(rest + 1, &rest, 16);
		ssize_t n;

		/* what is written to: neither programs nor files */
		if (rest[1] != 'r' || rest[2] != 'w' || end - begin > REGION_MAX ||
		    begin == (uintptr_t)into || begin == (uintptr_t)shared)
			continue;
		n = pread(memory, into, end - begin, (off_t)begin);
		if (n > 0 && holds(into, (size_t)n, shared))
			found = line;
	}
	fclose(maps);
	close(memory);
	return found;
}

/* --- the one who gets it ---------------------------------------------------------------------- */

/* As deep as a library might put it. */
__attribute__((noinline)) static void use_deep(struct bytes value)
{
	volatile uint8_t deep[DEEP];

	for (size_t i = 0; i < VALUE_LEN; i++)
		deep[i] = value.ptr[i];
	assert_int_equal(deep[0], value.ptr[0]);
}

static void finish(struct desk *d, unsigned int status)
{
	http_answer(d->rq, &(struct http_response){ .status = status }, BYTES_LIT("done"));
	d->done = true;
}

static void on_body(struct http_handler *h, struct bytes piece)
{
	struct desk *d = CONTAINER_OF(h, struct desk, handler);
	struct err err = { 0 };

	if (buf_add(&d->body, piece, &err) < 0)
		fail_msg("%s", err.msg);
}

static void on_body_end(struct http_handler *h)
{
	struct desk *d = CONTAINER_OF(h, struct desk, handler);
	AUTO(json_decrefp) json_t *v = NULL;
	struct err err = { 0 };
	struct bytes value = { 0 };

	if (json_decode(buf_view(&d->body), LONG + 512, 2, &v, &err) < 0 ||
	    json_want_string(v, "value", &value, &err) < 0)
		fail_msg("%s", err.msg);
	use_deep(value);
	buf_done(&d->body);
	finish(d, 200);
}

static void on_drain(struct http_handler *h)
{
	(void)h;
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	(void)h;
	fail_msg("%s", err->msg);
}

static void on_later(struct timer *t)
{
	http_body_start(CONTAINER_OF(t, struct desk, later)->rq, LONG + 512);
}

static void on_request(struct http_server *http, struct http_request *rq)
{
	static const struct http_handler_ops ops = { on_body, on_body_end, on_drain, on_gone };
	struct desk *d = CONTAINER_OF(http, struct desk, http);
	const struct scene *scene = d->scene;

	d->rq = rq;
	d->shared->head_seen = true;
	d->handler.ops = &ops;
	d->body = scene->open ? BUF_MAX(LONG + 512) : BUF_SECRET(LONG + 512);
	http_request_take(rq, &d->handler);
	if (!scene->open)
		http_request_secret(rq);
	if (scene->unread)
		finish(d, 401);
	else if (scene->later)
		timer_start(&d->later, 50);
	else
		http_body_start(rq, LONG + 512);
}

static void serve(struct desk *d, int fd)
{
	static const struct http_server_ops ops = { on_request };
	struct err err = { 0 };

	http_server_init(&d->http, d->l, &ops, &HTTP_LIMITS);
	timer_init(&d->later, d->l, on_later);
	if (http_server_add(&d->http, test_stream(d->l, fd), NULL, &err) < 0)
		fail_msg("%s", err.msg);
	RUN_UNTIL(d->l, d->done && d->http.n_conns == 0);
	for (int i = 0; i < 3; i++) { /* what was closed goes in later turns */
		timer_start(&d->later, 1);
		d->later.on_fire = patience_over;
		(void)loop_turn(d->l);
	}
}

static void nothing_of_a_secret_body_stays(void **state)
{
	static const struct scene rows[] = {
		{ .name = "at once" },
		{ .name = "in parts", .in_parts = true },
		{ .name = "long", .more = LONG },
		{ .name = "long, in parts", .more = LONG, .in_parts = true },
		{ .name = "read later", .later = true },
		{ .name = "long, read later", .later = true, .more = LONG },
		{ .name = "not read", .unread = true },
		{ .name = "not read, in parts", .unread = true, .in_parts = true },
		{ .name = "not said to be secret", .open = true },
	};
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t *into = mmap(NULL, REGION_MAX, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)state;
	assert_true(shared != MAP_FAILED && into != MAP_FAILED);
	FOR_ROWS(row, rows) {
		struct desk d = { .l = test_loop(), .scene = row, .shared = shared };
		const char *found;
		int pair[2], status;
		pid_t pid;

		shared->head_seen = false;
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		pid = fork();
		if (pid == 0) {
			close(pair[0]);
			send_it(pair[1], shared, row);
		}
		close(pair[1]);
		serve(&d, pair[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		found = SANITIZED ? NULL : find(shared, into);
		if (!SANITIZED && row->open != !!found)
			fail_msg("%s", found ? found : "the search finds nothing");
		http_server_done(&d.http);
		timer_stop(&d.later);
		loop_free(d.l);
	}
	munmap(into, REGION_MAX);
	munmap(shared, sizeof(*shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_of_a_secret_body_stays),
	};

	json_wipe_freed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
