/* ask.c - one request over the gateway's admin socket, and what to say when that fails. */
#include "cli/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "http/call.h"
#include "net/dial.h"

enum { PIECE = 64 * 1024, WARNING_SIZE = 1024 };

struct asking {
	struct loop *loop;
	struct dial dial;
	struct http_call call;
	struct http_ask ask;
	/* with a file in place of `call`: */
	const struct cli_file *file;
	uint64_t sent;
	struct http_client *client;
	struct http_exchange *exchange;
	struct http_reply reply;
	bool done;
	bool broken; /* nothing more can be sent; what arrived before comes yet */
	int result;  /* 0, or -1 with *err filled */
	unsigned int status;
	struct buf answer;
	char next[TARGET_MAX];      /* the page after this one; empty: none */
	char warning[WARNING_SIZE]; /* what was done is perhaps not what was meant */
	struct err *err;
};

static void finish(struct asking *a, const struct err *err)
{
	if (err)
		*a->err = *err;
	a->result = err ? -1 : 0;
	a->done = true;
	loop_stop(a->loop);
}

static void on_answer(struct http_call *call, const struct http_call_result *got,
		      const struct err *err)
{
	struct asking *a = CONTAINER_OF(call, struct asking, call);
	struct bytes next = { 0 }, warning = { 0 };
	struct err why = { 0 };

	if (err) {
		finish(a, err);
		return;
	}
	a->status = got->head->status;
	if (http1_find(got->head, "x-next-token", &next) != 1 ||
	    !bytes_to_str(next, a->next, sizeof(a->next)))
		a->next[0] = '\0';
	if (http1_find(got->head, "x-hotcell-warning", &warning) == 1)
		(void)!bytes_to_str(warning, a->warning, sizeof(a->warning));
	finish(a, buf_add(&a->answer, got->body, &why) < 0 ? &why : NULL);
}

/* --- with a file ---------------------------------------------------------------------------- */

static int send_piece(struct asking *a, struct err *err)
{
	AUTO(auto_free) uint8_t *piece = malloc(PIECE);
	uint64_t left = a->file->bytes - a->sent;
	ssize_t n =
		piece ? pread(a->file->fd, piece, left < PIECE ? left : PIECE, (off_t)a->sent) : -1;

	if (n < 0)
		return err_set(err, ERR_INTERNAL, errno, "read the file");
	if (n == 0)
		return err_set(err, ERR_INVALID, 0, "the file became shorter while it was read");
	a->sent += (uint64_t)n;
	return http_ask_send(a->exchange, (struct bytes){ piece, (size_t)n }, err);
}

/* As much as fits. An answer that is there says that nobody wants the rest. */
static void send_more(struct asking *a)
{
	struct err err;

	while (a->status == 0 && a->sent < a->file->bytes && !a->broken &&
	       http_ask_queued(a->exchange) <= STREAM_LOW_WATER) {
		if (send_piece(a, &err) == 0)
			continue;
		a->broken = err.code == ERR_UNAVAILABLE;
		if (a->broken)
			return;
		http_ask_cancel(a->exchange);
		finish(a, &err);
		return;
	}
	if (a->status == 0 && a->sent == a->file->bytes)
		http_ask_finish(a->exchange);
}

static void on_reply_head(struct http_reply *r, const struct http1_head *head)
{
	CONTAINER_OF(r, struct asking, reply)->status = head->status;
}

static void on_reply_body(struct http_reply *r, struct bytes piece)
{
	struct asking *a = CONTAINER_OF(r, struct asking, reply);
	struct err err;

	if (buf_add(&a->answer, piece, &err) == 0)
		return;
	http_ask_cancel(a->exchange);
	finish(a, &err);
}

static void on_reply_end(struct http_reply *r)
{
	finish(CONTAINER_OF(r, struct asking, reply), NULL);
}

static void on_reply_drain(struct http_reply *r)
{
	struct asking *a = CONTAINER_OF(r, struct asking, reply);

	if (a->sent < a->file->bytes && !a->broken)
		send_more(a);
}

/* What it said before it hung up counts. */
static void on_reply_fail(struct http_reply *r, const struct err *err)
{
	struct asking *a = CONTAINER_OF(r, struct asking, reply);

	finish(a, a->status >= 300 ? NULL : err);
}

static void start_sending(struct asking *a, struct stream *s)
{
	static const struct http_reply_ops ops = { on_reply_head, on_reply_body, on_reply_end,
						   on_reply_drain, on_reply_fail };
	const struct http_limits limits = HTTP_LIMITS;
	struct err err;

	a->reply.ops = &ops;
	a->ask.length = (int64_t)a->file->bytes;
	if (http_client_open(s, &limits, &a->client, &err) < 0 ||
	    http_ask(a->client, &a->ask, &a->reply, &a->exchange, &err) < 0)
		finish(a, &err);
	else
		send_more(a);
}

/* --- one request ---------------------------------------------------------------------------- */

static void on_connected(struct dial *d, struct stream *s, const struct err *err)
{
	struct asking *a = CONTAINER_OF(d, struct asking, dial);
	struct err why = { 0 };

	if (err)
		finish(a, err);
	else if (a->file)
		start_sending(a, s);
	else if (http_call_stream(&a->call, s, &a->ask, on_answer, &why) < 0)
		finish(a, &why);
}

static int exchange(struct asking *a, const char *path)
{
	struct addr to;

	if (addr_unix(path, &to, a->err) < 0 || loop_open(&a->loop, a->err) < 0)
		return -1;
	if (dial_start(&a->dial, a->loop, &to, ASK_CONNECT_MS, on_connected, a->err) == 0)
		loop_run(a->loop);
	else
		a->result = -1;
	if (!a->done && a->result == 0)
		a->result = err_set(a->err, ERR_UNAVAILABLE, 0, "no answer");
	http_client_close(a->client);
	loop_free(a->loop);
	return a->result;
}

enum err_code ask_code_of(unsigned int status)
{
	switch (status) {
	case 400:
	case 422:
		return ERR_INVALID;
	case 401:
	case 403:
		return ERR_DENIED;
	case 404:
		return ERR_NOT_FOUND;
	case 409:
		return ERR_EXISTS;
	case 412:
		return ERR_MISMATCH;
	case 429:
		return ERR_EXHAUSTED;
	case 502:
	case 503:
		return ERR_UNAVAILABLE;
	case 504:
		return ERR_TIMEOUT;
	case 507:
		return ERR_NO_SPACE;
	default:
		return ERR_INTERNAL;
	}
}

/* The gateway says why in `message`. */
static int refused(unsigned int status, const json_t *answer, struct err *err)
{
	struct bytes why = BYTES_LIT("no reason given"), reason = { 0 };
	struct err ignored = { 0 };
	enum err_code code = ask_code_of(status);

	if (json_is_object(answer)) {
		(void)!json_may_string(answer, "message", &why, &ignored);
		(void)!json_may_string(answer, "reason", &reason, &ignored);
	}
	if (bytes_eq(reason, bytes_str(err_name(ERR_NO_FILES))))
		code = ERR_NO_FILES;
	if (bytes_eq(reason, bytes_str(err_name(ERR_VERSION))))
		code = ERR_VERSION;
	if (code == ERR_MISMATCH && bytes_eq(reason, BYTES_LIT("base_lost")))
		code = ERR_BASE_LOST;
	return err_set(err, code, 0, "gateway: %.*s (status %u)", (int)why.len,
		       (const char *)why.ptr, status);
}

static int read_answer(const struct asking *a, json_t **ret, struct err *err)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	struct err broken = { 0 };
	bool empty = a->answer.len == 0;

	if (!empty &&
	    json_decode(buf_view(&a->answer), ANSWER_MAX, ANSWER_DEPTH, &answer, &broken) < 0)
		answer = NULL;
	if (a->status < 200 || a->status > 299)
		return refused(a->status, answer, err);
	if (!empty && !answer)
		return err_set(err, ERR_INTERNAL, 0, "gateway: its answer is not JSON: %s",
			       broken.msg);
	*ret = TAKE(answer);
	return 0;
}

/* Appends what may stand in an address as it is, and the rest as %XX. NULL is fine. */
static int add_encoded(struct buf *out, const char *text, struct err *err)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";

	for (const char *p = text ? text : ""; *p; p++)
		if ((strchr(plain, *p) ? buf_add(out, (struct bytes){ (const uint8_t *)p, 1 }, err)
				       : buf_printf(out, err, "%%%02X", (unsigned char)*p)) < 0)
			return -1;
	return 0;
}

static int make_target(const struct cli_request *rq, char ret[static TARGET_MAX], struct err *err)
{
	AUTO(buf_done) struct buf all = BUF_MAX(TARGET_MAX);

	if (buf_add(&all, bytes_str(rq->path), err) < 0 || add_encoded(&all, rq->id, err) < 0 ||
	    buf_add(&all, bytes_str(rq->suffix ? rq->suffix : ""), err) < 0 ||
	    add_encoded(&all, rq->value, err) < 0 ||
	    buf_add(&all, bytes_str(rq->suffix2 ? rq->suffix2 : ""), err) < 0 ||
	    add_encoded(&all, rq->value2, err) < 0 ||
	    !bytes_to_str(buf_view(&all), ret, TARGET_MAX))
		return err_set(err, ERR_INVALID, 0, "`%.32s...` is too long",
			       rq->value ? rq->value
			       : rq->id  ? rq->id
					 : "");
	return 0;
}

static void say_warning(const struct cli *c, const char *warning)
{
	AUTO(json_decrefp)
	json_t *all = c->json ? json_pack("{s:o}", "warning", json_text(bytes_str(warning))) : NULL;

	if (!warning[0])
		return;
	if (all && json_dumpf(all, stderr, JSON_COMPACT) == 0)
		fputc('\n', stderr);
	else
		fprintf(stderr, "hotcell: warning: %s\n", warning);
}

static int ask(const struct cli *c, const struct cli_request *rq, json_t **ret,
	       char ret_next[static TARGET_MAX], struct err *err)
{
	static const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/json") },
	};
	AUTO(buf_done) struct buf text = BUF_MAX(HTTP_WHOLE_MAX);
	struct asking a = { .err = err, .answer = BUF_MAX(ANSWER_MAX), .file = rq->file };
	char target[TARGET_MAX];
	int r;

	*ret = NULL;
	if (make_target(rq, target, err) < 0 || (rq->body && json_encode(rq->body, &text, err) < 0))
		return -1;
	a.ask = (struct http_ask){ .method = bytes_str(rq->method ? rq->method : "GET"),
				   .target = bytes_str(target),
				   .host = BYTES_LIT("localhost"),
				   .deadline_ms = rq->ms     ? rq->ms
						  : rq->file ? SEND_MS
							     : ASK_MS,
				   .max_answer = ANSWER_MAX };
	if (rq->body) {
		a.ask.fields = fields;
		a.ask.n_fields = COUNT(fields);
		a.ask.body = buf_view(&text);
	}
	r = exchange(&a, c->socket);
	if (r < 0 && (err->sys == EACCES || err->sys == EPERM))
		err->code = ERR_DENIED; /* it may well run */
	if (r < 0)
		err_wrap(err, "gateway: %s", c->socket);
	else
		r = read_answer(&a, ret, err);
	say_warning(c, a.warning);
	snprintf(ret_next, TARGET_MAX, "%s", a.next);
	buf_done(&a.answer);
	return r;
}

int cli_ask(const struct cli *c, const struct cli_request *rq, json_t **ret, struct err *err)
{
	char ignored[TARGET_MAX];

	return ask(c, rq, ret, ignored, err);
}

int cli_list(const struct cli *c, const struct cli_request *rq, json_t **ret, struct err *err)
{
	AUTO(json_decrefp) json_t *all = json_array();
	char path[TARGET_MAX], next[TARGET_MAX];
	struct cli_request page = { .path = path, .ms = rq->ms };

	if (make_target(rq, path, err) < 0)
		return -1;
	for (int n = 0; n < PAGES_MAX; n++) {
		AUTO(json_decrefp) json_t *some = NULL;

		if (ask(c, &page, &some, next, err) < 0)
			return -1;
		if (!json_is_array(some))
			return err_set(err, ERR_INTERNAL, 0, "gateway: %s is not a list", path);
		if (!all || json_array_extend(all, some) < 0)
			return err_set(err, ERR_INTERNAL, 0, "out of memory");
		if (!next[0])
			break;
		page.suffix = strchr(path, '?') ? "&nextToken=" : "?nextToken=";
		page.value = next;
	}
	*ret = TAKE(all);
	return 0;
}
