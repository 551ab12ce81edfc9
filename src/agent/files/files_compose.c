/* files_compose.c - POST /files/compose: several files become one, in order, and go.
 *
 * How a large upload is put together that came in parts. The result appears when it is whole; the
 * sources are removed after that. The kernel copies, in pieces between which others are served.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "agent/files/upload_set.h"
#include "agent/reply.h"
#include "agent/route.h"

enum {
	REQUEST_MAX = 1024 * 1024,
	REQUEST_DEPTH = 4,
	TURN_MAX = 8 * 1024 * 1024, /* bytes copied per turn of the loop */
	PIECE_MAX = 64 * 1024,
	ANSWER_MAX = 16 * USER_PATH_MAX,
};

struct compose {
	struct http_handler handler;
	struct http_request *rq;
	struct agent *agent;
	struct buf body;
	struct timer turn;
	struct upload_set result;
	struct strings sources; /* absolute */
	size_t at;              /* the source that is being copied */
	int fd;                 /* it, or -1 */
};

static void compose_free(struct compose *c)
{
	timer_stop(&c->turn);
	auto_close(&c->fd);
	upload_set_done(&c->result);
	strings_done(&c->sources);
	buf_done(&c->body);
	free(c);
}

static void give_up(struct compose *c, unsigned int status, const char *what, const char *path)
{
	reply_fail(c->rq, status, "%s: %s", what, path);
	compose_free(c);
}

static void give_up_result(struct compose *c, const struct err *err)
{
	if (c->result.fault == UPLOAD_NO_SPACE)
		reply_fail(c->rq, 507, "%s", err->msg);
	else
		reply_fail(c->rq, c->result.fault == UPLOAD_REFUSED ? 400 : 500, "%s: %s", err->msg,
			   c->result.path);
	compose_free(c);
}

/* --- copying ------------------------------------------------------------------------------ */

static ssize_t copy_by_hand(struct compose *c, struct err *err)
{
	uint8_t piece[PIECE_MAX];
	ssize_t n = read(c->fd, piece, sizeof(piece));

	if (n < 0)
		return err_set(err, ERR_INTERNAL, errno, "read");
	if (upload_set_write(&c->result, (struct bytes){ piece, (size_t)n }, err) < 0)
		return -1;
	return n;
}

/* As much as the kernel copies at once; what it does not, and why not, the other way tells. */
static ssize_t copy_piece(struct compose *c, struct err *err)
{
	ssize_t n = copy_file_range(c->fd, NULL, c->result.now.fd, NULL, TURN_MAX, 0);

	return n > 0 ? n : copy_by_hand(c, err);
}

/* False: answered. */
static bool open_source(struct compose *c)
{
	const char *path = c->sources.v[c->at];
	struct stat st;

	c->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (c->fd < 0) {
		bool missing = errno == ENOENT || errno == ENOTDIR;

		give_up(c, missing ? 404 : 500, missing ? "source file not found" : strerror(errno),
			path);
		return false;
	}
	if (fstat(c->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		give_up(c, 400, "source is not a regular file", path);
		return false;
	}
	return true;
}

static void remove_sources(struct compose *c)
{
	for (size_t i = 0; i < c->sources.n; i++)
		if (strcmp(c->sources.v[i], c->result.path) != 0)
			(void)unlink(c->sources.v[i]);
}

static void finish(struct compose *c)
{
	AUTO(buf_done) struct buf json = BUF_MAX(ANSWER_MAX);
	struct bytes list;
	struct err err;

	if (upload_set_end(&c->result, &err) < 0) {
		give_up_result(c, &err);
		return;
	}
	remove_sources(c);
	if (upload_set_put(&c->result, &json, &err) < 0) {
		reply_fail(c->rq, 500, "%s", err.msg);
	} else {
		list = buf_view(&json); /* of one, without its brackets */
		reply_json(c->rq, bytes_head(bytes_tail(list, 1), list.len - 2));
	}
	compose_free(c);
}

static void on_turn(struct timer *t)
{
	struct compose *c = CONTAINER_OF(t, struct compose, turn);
	struct err err;

	for (size_t copied = 0; copied < TURN_MAX;) {
		ssize_t n;

		if (c->at == c->sources.n) {
			finish(c);
			return;
		}
		if (c->fd < 0 && !open_source(c))
			return;
		n = copy_piece(c, &err);
		if (n < 0) {
			give_up_result(c, &err);
			return;
		}
		if (n == 0) {
			close(take_fd(&c->fd));
			c->at++;
		}
		copied += (size_t)n;
	}
	timer_start(t, 0);
}

/* --- the request -------------------------------------------------------------------------- */

static int add_source(struct compose *c, const json_t *v, struct err *err)
{
	char path[USER_PATH_MAX];

	if (!json_is_string(v))
		return err_set(err, ERR_INVALID, 0, "source_paths must be strings");
	if (user_path(json_bytes(v), &c->result.who, c->agent->session.workdir, path, err) < 0)
		return -1;
	path_tidy(path);
	return strings_add(&c->sources, bytes_str(path), err);
}

static int read_paths(struct compose *c, const json_t *message, char *destination, struct err *err)
{
	struct bytes to;
	json_t *sources, *v;
	size_t i;

	if (json_want_string(message, "destination", &to, err) < 0 ||
	    json_want_array(message, "sourcePaths", &sources, err) < 0 ||
	    user_path(to, &c->result.who, c->agent->session.workdir, destination, err) < 0)
		return -1;
	path_tidy(destination);
	if (json_array_size(sources) == 0)
		return err_set(err, ERR_INVALID, 0, "source_paths is empty");
	json_array_foreach(sources, i, v)
	{
		if (add_source(c, v, err) < 0)
			return -1;
	}
	return 0;
}

static void start(struct compose *c, const json_t *message)
{
	char destination[USER_PATH_MAX];
	struct bytes user = { 0 };
	struct err err;

	if (json_may_string(message, "username", &user, &err) < 0) {
		give_up(c, 400, "username", err.msg);
	} else if (agent_account(c->agent, user, &c->result.who, &err) < 0) {
		give_up(c, 401, "error looking up user", err.msg);
	} else if (read_paths(c, message, destination, &err) < 0) {
		give_up(c, 400, "error resolving path", err.msg);
	} else if (upload_set_begin(&c->result, destination, &err) < 0) {
		give_up_result(c, &err);
	} else {
		timer_start(&c->turn, 0);
	}
}

static void on_body(struct http_handler *h, struct bytes piece)
{
	struct compose *c = CONTAINER_OF(h, struct compose, handler);
	struct err err;

	if (buf_add(&c->body, piece, &err) < 0)
		give_up(c, 500, "read the request", err.msg);
}

static void on_body_end(struct http_handler *h)
{
	struct compose *c = CONTAINER_OF(h, struct compose, handler);
	AUTO(json_decrefp) json_t *message = NULL;
	struct err err = { .msg = "out of memory" };

	if (json_decode(buf_view(&c->body), REQUEST_MAX, REQUEST_DEPTH, &message, &err) < 0 ||
	    !(c->result.metadata = json_object()))
		give_up(c, 400, "read the request", err.msg);
	else
		start(c, message);
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	(void)err;
	compose_free(CONTAINER_OF(h, struct compose, handler));
}

static void route_files_compose(struct agent *a, struct http_request *rq)
{
	static const struct http_handler_ops ops = { on_body, on_body_end, NULL, on_gone };
	struct compose *c = calloc(1, sizeof(*c));

	if (!c) {
		reply_fail(rq, 500, "out of memory");
		return;
	}
	c->handler.ops = &ops;
	c->rq = rq;
	c->agent = a;
	c->fd = -1;
	c->body = BUF_MAX(REQUEST_MAX);
	c->result.staging = a->staging;
	timer_init(&c->turn, a->loop, on_turn);
	http_request_take(rq, &c->handler);
	http_body_start(rq, REQUEST_MAX);
}

const struct route files_compose_routes[] = {
	{ "/files/compose", "POST", GUARD_CLIENT, route_files_compose },
	{ 0 },
};
