/* qmp_link.c - lines in, answers matched; one rule broken ends it.
 *
 * While a callback runs the link is held: closing it then only marks it, and it is freed when the
 * callback is back. A broken link holds the same way until its owner closes it.
 */
#include "vm/qmp_link.h"

#include <assert.h>
#include <errno.h>

#include "base/list.h"
#include "net/fd_pass.h"

struct qmp_link {
	struct stream *stream;
	struct stream_user stream_user;
	struct qmp_link_user *user;
	struct qmp_call hello;       /* qmp_capabilities */
	struct qmp_message greeting; /* once greeted */
	bool greeted, ready, broken, closed;
	unsigned int held;
	uint64_t next_id;
	struct qmp_call *first, **last; /* in the order sent */
	size_t n_calls;
	struct buf in;
	size_t scanned;
	uint64_t window_ms; /* when it began */
	size_t window_lines, window_bytes;
};

static void release(struct qmp_link *l)
{
	if (--l->held > 0 || !l->closed)
		return;
	qmp_message_done(&l->greeting);
	buf_done(&l->in);
	free(l);
}

static struct qmp_call *take_first(struct qmp_link *l)
{
	struct qmp_call *c = queue_take(l);

	if (!c)
		return NULL;
	l->n_calls--;
	timer_stop(&c->deadline);
	c->link = NULL;
	return c;
}

/* From the loop only. Every command fails, in order, then the owner is told. */
static void broken(struct qmp_link *l, const struct err *why)
{
	struct err err = *why;
	struct qmp_call *c;

	if (l->broken || l->closed)
		return;
	l->broken = true;
	stream_abort(TAKE(l->stream));
	l->held++;
	while (!l->closed && (c = take_first(l)))
		if (c != &l->hello)
			c->on_done(c, NULL, &err);
	if (!l->closed)
		l->user->ops->on_gone(l->user, &err);
	release(l);
}

static void breach(struct qmp_link *l, enum err_code code, const char *what)
{
	struct err err;

	err_set(&err, code, 0, "QMP: %s", what);
	broken(l, &err);
}

static void answer(struct qmp_link *l, const struct qmp_message *m)
{
	struct qmp_call *c = l->first;
	struct err err;

	if (!l->greeted || !c || !m->has_id || m->id != c->id) {
		breach(l, ERR_INVALID, "an answer that nobody waits for");
		return;
	}
	take_first(l);
	if (m->kind == QMP_RETURN) {
		c->on_done(c, m->data, NULL);
		return;
	}
	err_set(&err, ERR_INVALID, 0, "QMP %s: %.*s: %.*s", c->command, (int)m->name.len,
		(const char *)m->name.ptr, (int)m->desc.len, (const char *)m->desc.ptr);
	c->on_done(c, NULL, &err);
}

/* Takes the message's content. */
static void greeted(struct qmp_link *l, struct qmp_message *m)
{
	if (l->greeted) {
		breach(l, ERR_INVALID, "a second greeting");
		return;
	}
	l->greeted = true;
	l->greeting = *m;
	*m = (struct qmp_message){ 0 };
}

static void on_message(struct qmp_link *l, struct qmp_message *m)
{
	switch (m->kind) {
	case QMP_GREETING:
		greeted(l, m);
		break;
	case QMP_RETURN:
	case QMP_ERROR:
		answer(l, m);
		break;
	case QMP_EVENT:
		if (!l->ready)
			breach(l, ERR_INVALID, "an event before capabilities");
		else
			l->user->ops->on_event(l->user, m);
		break;
	default:
		abort();
	}
}

static void on_capabilities(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct qmp_link *l = CONTAINER_OF(c, struct qmp_link, hello);

	(void)ret;
	if (err) {
		broken(l, err);
		return;
	}
	l->ready = true;
	l->user->ops->on_ready(l->user, &l->greeting);
}

static bool within_window(struct qmp_link *l, size_t bytes)
{
	uint64_t now = loop_now_ms(stream_loop(l->stream));

	if (now - l->window_ms >= QMP_LINK_WINDOW_MS) {
		l->window_ms = now;
		l->window_lines = l->window_bytes = 0;
	}
	l->window_bytes += bytes;
	return l->window_bytes <= QMP_LINK_WINDOW_BYTES && l->window_lines <= QMP_LINK_WINDOW_LINES;
}

/* One message off the front of the input. False when there is none, or the link is over. */
static bool one_message(struct qmp_link *l)
{
	AUTO(qmp_message_done) struct qmp_message m = { 0 };
	struct bytes line;
	struct err err;
	size_t used;
	enum decode d = qmp_line(buf_view(&l->in), &l->scanned, &line, &used, &err);
	int rc;

	if (d == DECODE_MORE)
		return false;
	rc = d == DECODE_OK ? qmp_parse(line, &m, &err) : -1;
	if (rc < 0) {
		broken(l, &err);
		return false;
	}
	l->scanned = 0;
	l->window_lines++;
	buf_drop(&l->in, used);
	on_message(l, &m);
	return !l->closed && !l->broken;
}

static void on_data(struct stream_user *u, struct bytes in)
{
	struct qmp_link *l = CONTAINER_OF(u, struct qmp_link, stream_user);
	struct err err;

	l->held++;
	while (in.len > 0 && !l->closed && !l->broken) {
		struct bytes piece = bytes_head(in, QMP_LINE_MAX - l->in.len);

		if (buf_add(&l->in, piece, &err) < 0) {
			broken(l, &err);
			break;
		}
		in = bytes_tail(in, piece.len);
		while (one_message(l))
			;
		if (!l->closed && !l->broken && !within_window(l, piece.len))
			breach(l, ERR_EXHAUSTED, "a flood");
	}
	if (l->in.len == 0) { /* an idle link holds no buffer */
		buf_done(&l->in);
		l->in = BUF_MAX(QMP_LINE_MAX);
	}
	release(l);
}

static void on_end(struct stream_user *u)
{
	breach(CONTAINER_OF(u, struct qmp_link, stream_user), ERR_UNAVAILABLE, "QEMU is gone");
}

static void on_fail(struct stream_user *u, const struct err *err)
{
	broken(CONTAINER_OF(u, struct qmp_link, stream_user), err);
}

static const struct stream_user_ops stream_ops = { on_data, on_end, NULL, on_fail };

static void on_no_answer(struct timer *t)
{
	struct qmp_call *c = CONTAINER_OF(t, struct qmp_call, deadline);
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "QMP %s: no %s in time", c->command,
		c->link->greeted ? "answer" : "greeting");
	broken(c->link, &err);
}

static int send_command(struct qmp_link *l, struct qmp_call *c, json_t *arguments, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(QMP_LINE_MAX);

	c->id = l->next_id;
	if (qmp_put_command(&text, c->command, arguments, c->id, err) < 0)
		return -1;
	return stream_write_buf(l->stream, &text, err);
}

static int start_call(struct qmp_link *l, struct qmp_call *c, json_t *arguments,
		      uint64_t deadline_ms, struct err *err)
{
	if (l->broken)
		return err_set(err, ERR_UNAVAILABLE, 0, "QEMU is gone");
	if (l->n_calls == QMP_LINK_CALLS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%d commands wait already",
			       QMP_LINK_CALLS_MAX);
	if (send_command(l, c, arguments, err) < 0)
		return -1;
	l->next_id++;
	l->n_calls++;
	c->link = l;
	queue_add(l, c);
	timer_init(&c->deadline, stream_loop(l->stream), on_no_answer);
	timer_start(&c->deadline, deadline_ms);
	return 0;
}

int qmp_link_call(struct qmp_link *l, struct qmp_call *c, const struct qmp_command *command,
		  qmp_done_fn *on_done, struct err *err)
{
	AUTO(json_decrefp) json_t *stolen = command->arguments;

	assert(!l->closed && !c->link && command->deadline_ms > 0);
	*c = (struct qmp_call){ .on_done = on_done, .command = command->name };
	if (start_call(l, c, stolen, command->deadline_ms, err) < 0)
		return err_wrap(err, "QMP %s", command->name);
	return 0;
}

/* Beside a blank between two commands, which means nothing. */
int qmp_link_pass_fd(struct qmp_link *l, int fd, struct err *err)
{
	if (l->broken)
		return err_set(err, ERR_UNAVAILABLE, 0, "QEMU is gone");
	return stream_pass_fd(l->stream, ' ', fd, err);
}

static struct qmp_link *make_link(struct stream *s, struct qmp_link_user *u)
{
	struct qmp_link *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->stream = s;
	l->stream_user.ops = &stream_ops;
	l->user = u;
	queue_init(l);
	l->in = BUF_MAX(QMP_LINE_MAX);
	l->window_ms = loop_now_ms(stream_loop(s));
	return l;
}

int qmp_link_open(struct stream *s, struct qmp_link_user *u, struct qmp_link **ret, struct err *err)
{
	static const struct qmp_command hello = { "qmp_capabilities", NULL, QMP_LINK_GREETING_MS };
	struct qmp_link *l = make_link(s, u);

	if (!l) {
		stream_abort(s);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate a QMP link");
	}
	if (qmp_link_call(l, &l->hello, &hello, on_capabilities, err) < 0) {
		qmp_link_close(l);
		return -1;
	}
	stream_set_user(s, &l->stream_user);
	stream_read(s, true);
	*ret = l;
	return 0;
}

void qmp_link_close(struct qmp_link *l)
{
	if (!l)
		return;
	assert(!l->closed);
	l->closed = true;
	while (take_first(l))
		;
	if (l->stream)
		stream_close(TAKE(l->stream));
	l->held++;
	release(l);
}
