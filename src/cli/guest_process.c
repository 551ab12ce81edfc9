/* guest_process.c - see guest_process.h. */
#include "cli/guest_process.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/table.h"
#include "wire/base64.h"
#include "wire/connect.h"

enum { EVENT_DEPTH = 8, EVER_MS = INT32_MAX };

static void give_up(struct guest_process *p, const struct err *err)
{
	client_cancel(&p->s->x);
	run_session_end_wait(p->s, err);
}

/* --- its input ------------------------------------------------------------------------------ */

static void send_next(struct guest_process *p);

static void on_sent(struct client_exchange *x, const struct err *err)
{
	struct guest_process *p = CONTAINER_OF(x, struct guest_process, send);

	p->busy = false;
	if (err || x->status != 200) /* it ended, or takes no more: how it ends is told elsewhere */
		p->finished = p->closed = true;
	else
		send_next(p);
}

static int start_sending(struct guest_process *p, const char *target, const json_t *message,
			 struct err *err)
{
	static const struct client_exchange_ops ops = { NULL, on_sent };
	struct client_ask ask;

	buf_clear(&p->sending);
	if (json_encode(message, &p->sending, err) < 0)
		return -1;
	run_session_to_agent(p->s, "application/json", &ask);
	ask.target = target;
	ask.body = buf_view(&p->sending);
	ask.reply_ms = RUN_ASK_MS;
	p->send.ops = &ops;
	p->busy = client_start(&p->send, &p->s->client, &ask, err) == 0;
	return p->busy ? 0 : -1;
}

static int send_input(struct guest_process *p, struct bytes data, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(2 * GUEST_INPUT_MAX);
	AUTO(json_decrefp) json_t *message = NULL;

	if (base64_encode(data, &text, err) < 0)
		return -1;
	message = json_pack("{s:{s:I}, s:{s:o}}", "process", "pid", (json_int_t)p->pid, "input",
			    p->pty ? "pty" : "stdin", json_text(buf_view(&text)));
	return start_sending(p, "/process.Process/SendInput", message, err);
}

static int send_size(struct guest_process *p, struct err *err)
{
	AUTO(json_decrefp) json_t *message = NULL;
	uint16_t cols, rows;

	p->resize = false;
	p->on_winch(p, &cols, &rows);
	message = json_pack("{s:{s:I}, s:{s:{s:i, s:i}}}", "process", "pid", (json_int_t)p->pid,
			    "pty", "size", "cols", cols, "rows", rows);
	return start_sending(p, "/process.Process/Update", message, err);
}

/* A terminal has no end: whoever hung up is gone. */
static int send_end(struct guest_process *p, struct err *err)
{
	AUTO(json_decrefp)
	json_t *message = json_pack("{s:{s:I}}", "process", "pid", (json_int_t)p->pid);

	p->closed = true;
	if (p->pty)
		return err_set(err, ERR_UNAVAILABLE, 0, "the terminal is gone");
	return start_sending(p, "/process.Process/CloseStdin", message, err);
}

static void read_input(struct guest_process *p)
{
	uint8_t *at;
	struct err err;
	ssize_t n;

	if (p->finished || p->queue.len + GUEST_INPUT_MAX > GUEST_QUEUE_MAX ||
	    buf_reserve(&p->queue, GUEST_INPUT_MAX, &at, &err) < 0)
		return;
	n = read(p->input, at, GUEST_INPUT_MAX);
	if (n > 0)
		buf_claim(&p->queue, (size_t)n);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		p->finished = true;
}

/* One request at a time: what is typed meanwhile goes with the next. */
static void send_next(struct guest_process *p)
{
	struct err err;
	int rc = 0;

	if (p->busy || p->pid == 0 || p->ended)
		return;
	if (p->file)
		read_input(p);
	if (p->resize) {
		rc = send_size(p, &err);
	} else if (p->queue.len > 0) {
		struct bytes piece = bytes_head(buf_view(&p->queue), GUEST_INPUT_MAX);

		rc = send_input(p, piece, &err);
		buf_drop(&p->queue, piece.len);
	} else if (p->finished && !p->closed) {
		rc = send_end(p, &err);
	}
	if (rc < 0)
		p->finished = p->closed = true;
	watch_set(&p->watch, !p->finished && p->queue.len + GUEST_INPUT_MAX <= GUEST_QUEUE_MAX
				     ? WATCH_READ
				     : 0);
}

static void on_input(struct watch *w, unsigned int events)
{
	struct guest_process *p = CONTAINER_OF(w, struct guest_process, watch);

	(void)events;
	read_input(p);
	watch_set(w,
		  p->finished || p->queue.len + GUEST_INPUT_MAX > GUEST_QUEUE_MAX ? 0 : WATCH_READ);
	send_next(p);
}

static void on_winch(struct watch *w, unsigned int events)
{
	struct guest_process *p = CONTAINER_OF(w, struct guest_process, winch_watch);
	struct signalfd_siginfo ignored;

	(void)events;
	while (read(p->winch, &ignored, sizeof(ignored)) > 0)
		p->resize = true;
	send_next(p);
}

static int open_input(struct guest_process *p, struct err *err)
{
	if (p->winch >= 0 &&
	    watch_open(&p->winch_watch, p->s->client.loop, p->winch, WATCH_READ, on_winch, err) < 0)
		return -1;
	if (p->input < 0) {
		p->finished = p->closed = true;
		return 0;
	}
	p->file = watch_open(&p->watch, p->s->client.loop, p->input, WATCH_READ, on_input, err) < 0;
	return 0;
}

/* --- what it says --------------------------------------------------------------------------- */

static int take_output(struct guest_process *p, const json_t *data, struct err *err)
{
	static const struct {
		const char *name;
		bool is_error;
	} kinds[] = { { "stdout", false }, { "pty", false }, { "stderr", true } };

	for (size_t i = 0; i < COUNT(kinds); i++) {
		AUTO(buf_done) struct buf piece = BUF_MAX(GUEST_MESSAGE_MAX);
		const json_t *text = json_object_get(data, kinds[i].name);

		if (!json_is_string(text))
			continue;
		if (base64_decode(json_bytes(text), &piece, err) < 0 ||
		    p->on_output(p, kinds[i].is_error, buf_view(&piece), err) < 0)
			return -1;
	}
	return 0;
}

static void take_end(struct guest_process *p, const json_t *end)
{
	const char *error = json_string_value(json_object_get(end, "error"));
	json_int_t code = json_integer_value(json_object_get(end, "exitCode"));

	p->ended = true;
	p->exit_code = code >= 0 && code <= 255 ? (int)code : 255;
	snprintf(p->error, sizeof(p->error), "%s", error ? error : "");
	table_clean(p->error);
}

static int take_event(struct guest_process *p, const json_t *event, struct err *err)
{
	const json_t *start = json_object_get(event, "start"), *end = json_object_get(event, "end");
	json_int_t pid = json_integer_value(json_object_get(start, "pid"));

	if (start && pid > 0 && pid <= INT32_MAX) {
		p->pid = (uint32_t)pid;
		send_next(p);
	}
	if (end)
		take_end(p, end);
	return take_output(p, json_object_get(event, "data"), err);
}

/* {} or {"error":{"code":,"message":}} */
static int take_last(const json_t *v, struct err *err)
{
	const json_t *error = json_object_get(v, "error");
	const char *why = json_string_value(json_object_get(error, "message"));

	if (!error)
		return 0;
	err_set(err, ERR_INVALID, 0, "%s", why ? why : "no reason given");
	table_clean(err->msg);
	return -1;
}

static int take_message(struct guest_process *p, const struct envelope *e, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	if (json_decode(e->body, GUEST_MESSAGE_MAX, EVENT_DEPTH, &v, err) < 0)
		return -1;
	return e->end ? take_last(v, err) : take_event(p, json_object_get(v, "event"), err);
}

static int take_all(struct guest_process *p, struct err *err)
{
	struct envelope e;
	size_t used;

	for (;;) {
		switch (envelope_decode(buf_view(&p->in), GUEST_MESSAGE_MAX, &e, &used, err)) {
		case DECODE_MORE:
			return 0;
		case DECODE_OK:
			if (take_message(p, &e, err) < 0)
				return -1;
			buf_drop(&p->in, used);
			break;
		case DECODE_BAD:
			return -1;
		}
	}
}

static void on_body(struct client_exchange *x, struct bytes piece)
{
	struct run_session *s = CONTAINER_OF(x, struct run_session, x);
	struct guest_process *p = s->process;
	struct err err;

	p->misses = 0;
	if (x->status != 200) {
		(void)!buf_add(&s->answer, piece, &err); /* its beginning is enough */
		return;
	}
	if (buf_add(&p->in, piece, &err) < 0 || take_all(p, &err) < 0)
		give_up(p, &err);
}

static void on_done(struct client_exchange *x, const struct err *err)
{
	run_session_end_wait(CONTAINER_OF(x, struct run_session, x), err);
}

/* --- life ----------------------------------------------------------------------------------- */

static void on_beat(struct timer *t)
{
	struct guest_process *p = CONTAINER_OF(t, struct guest_process, beat);
	struct err err;

	if (p->s->x.status == 0 || ++p->misses <= GUEST_BEATS_MAX)
		return;
	err_set(&err, ERR_UNAVAILABLE, 0, "sandbox %s: no sign of life for a minute", p->s->id);
	give_up(p, &err);
}

static int start(struct guest_process *p, const json_t *message, struct buf *body, struct err *err)
{
	static const struct client_exchange_ops ops = { on_body, on_done };
	AUTO(buf_done) struct buf text = BUF_MAX(HTTP_WHOLE_MAX);
	struct client_ask ask;

	if (json_encode(message, &text, err) < 0 ||
	    envelope_put(body, &(struct envelope){ .body = buf_view(&text) }, err) < 0)
		return -1;
	run_session_to_agent(p->s, "application/connect+json", &ask);
	ask.target = "/process.Process/Start";
	ask.body = buf_view(body);
	buf_clear(&p->s->answer);
	p->s->over = p->s->late = false;
	p->s->process = p;
	p->s->x.ops = &ops;
	return client_start(&p->s->x, &p->s->client, &ask, err);
}

static void stop(struct guest_process *p)
{
	watch_close(&p->watch);
	watch_close(&p->winch_watch);
	timer_stop(&p->beat);
	run_keep_end(&p->keeper);
	client_cancel(&p->send);
	buf_done(&p->in);
	buf_done(&p->queue);
	buf_done(&p->sending);
}

/* Nobody waits for it any more. It may be gone already. */
static void kill_it(struct guest_process *p)
{
	AUTO(json_decrefp)
	json_t *message = json_pack("{s:{s:I}, s:s}", "process", "pid", (json_int_t)p->pid,
				    "signal", "SIGNAL_SIGKILL");
	struct err ignored;

	if (p->pid > 0 && !p->ended && message)
		(void)!run_session_ask_agent(p->s, "/process.Process/SendSignal", message,
					     &ignored);
}

static int outcome(struct guest_process *p, struct err *err)
{
	struct run_session *s = p->s;
	bool late = s->late;
	struct err why = s->why;

	if (p->ended && why.code == ERR_NONE)
		return 0;
	if (why.code == ERR_NONE && s->x.status != 200)
		return run_session_refused(s, "sandbox", err);
	kill_it(p);
	if (late)
		return err_set(err, ERR_EXHAUSTED, 0, "sandbox %s: out of time, and ended", s->id);
	if (why.code == ERR_NONE)
		return err_set(err, ERR_UNAVAILABLE, 0, "sandbox %s: cut off in the middle", s->id);
	*err = why;
	return -1;
}

int guest_process_run(struct guest_process *p, const json_t *message, uint64_t ms, struct err *err)
{
	AUTO(buf_done) struct buf body = BUF_MAX(HTTP_WHOLE_MAX);
	int rc;

	p->in = BUF_MAX(2 * GUEST_MESSAGE_MAX);
	p->queue = BUF_MAX(GUEST_QUEUE_MAX);
	p->sending = BUF_MAX(4 * GUEST_INPUT_MAX);
	timer_init(&p->beat, p->s->client.loop, on_beat);
	rc = start(p, message, &body, err);
	if (rc == 0 && open_input(p, err) == 0) {
		timer_repeat(&p->beat, GUEST_BEAT_MS);
		if (p->keep)
			run_keep_begin(&p->keeper, p->s);
		run_session_wait(p->s, ms ? ms : EVER_MS);
		rc = outcome(p, err);
	}
	stop(p);
	p->s->process = NULL;
	return rc;
}

/* --- a command ------------------------------------------------------------------------------ */

json_t *guest_process_command(const char *const *argv, int n)
{
	json_t *args = json_array();

	for (int i = 1; i < n; i++)
		json_array_append_new(args, json_text(bytes_str(argv[i])));
	return json_pack("{s:{s:o, s:o}, s:b}", "process", "cmd", json_text(bytes_str(argv[0])),
			 "args", args, "stdin", 0);
}

struct capture {
	struct guest_process p;
	struct buf *out;
};

static int keep_output(struct guest_process *p, bool is_error, struct bytes piece, struct err *err)
{
	struct capture *c = CONTAINER_OF(p, struct capture, p);
	size_t room = c->out->max - c->out->len;

	(void)is_error;
	return buf_add(c->out, bytes_head(piece, room), err);
}

int guest_process_capture(struct run_session *s, const char *const *argv, struct buf *out,
			  int *ret_code, struct err *err)
{
	struct capture c = { .p = { .s = s, .input = -1, .winch = -1, .on_output = keep_output },
			     .out = out };
	AUTO(json_decrefp) json_t *message = NULL;
	int n = 0;

	while (argv[n])
		n++;
	message = guest_process_command(argv, n);
	if (!message)
		return err_set(err, ERR_INVALID, 0, "the command is not UTF-8");
	if (guest_process_run(&c.p, message, RUN_ASK_MS, err) < 0)
		return -1;
	*ret_code = c.p.exit_code;
	return 0;
}
