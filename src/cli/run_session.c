/* run_session.c - see run_session.h. */
#include "cli/run_session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/table.h"
#include "wire/base64.h"

/* --- signals -------------------------------------------------------------------------------- */

static bool take_signal(struct run_session *s)
{
	struct signalfd_siginfo got;

	if (read(s->signals, &got, sizeof(got)) != sizeof(got))
		return false;
	s->signo = s->signo ? s->signo : (int)got.ssi_signo;
	return true;
}

int run_session_signal(struct run_session *s)
{
	if (s->signals >= 0 && s->signo == 0)
		(void)take_signal(s);
	return s->signo;
}

static void on_signal(struct watch *w, unsigned int events)
{
	struct run_session *s = CONTAINER_OF(w, struct run_session, watch);
	struct err err;

	(void)events;
	if (!take_signal(s))
		return;
	if (s->patient) {
		s->patient = false;
		fprintf(stderr,
			"hotcell: waits for the sandbox, to end it; again: does not wait\n");
		return;
	}
	err_set(&err, ERR_UNAVAILABLE, EINTR, "interrupted");
	client_cancel(&s->x);
	run_session_end_wait(s, &err);
}

static int open_signals(struct run_session *s, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_set(err, ERR_INTERNAL, errno, "block signals");
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signals < 0)
		return err_set(err, ERR_INTERNAL, errno, "signalfd");
	return watch_open(&s->watch, s->client.loop, s->signals, WATCH_READ, on_signal, err);
}

/* --- waiting -------------------------------------------------------------------------------- */

void run_session_end_wait(struct run_session *s, const struct err *err)
{
	s->why = err ? *err : (struct err){ 0 };
	s->over = true;
	loop_stop(s->client.loop);
}

static void on_deadline(struct timer *t)
{
	struct run_session *s = CONTAINER_OF(t, struct run_session, deadline);
	struct err err;

	client_cancel(&s->x);
	s->late = true;
	err_set(&err, ERR_TIMEOUT, 0, "gateway: no answer in time");
	run_session_end_wait(s, &err);
}

void run_session_wait(struct run_session *s, uint64_t ms)
{
	struct err err;

	timer_start(&s->deadline, ms);
	if (!s->over)
		loop_run(s->client.loop);
	timer_stop(&s->deadline);
	if (s->over)
		return;
	client_cancel(&s->x);
	err_set(&err, ERR_INTERNAL, 0, "the loop ended");
	run_session_end_wait(s, &err);
}

/* --- one small request ---------------------------------------------------------------------- */

static void on_body(struct client_exchange *x, struct bytes piece)
{
	struct run_session *s = CONTAINER_OF(x, struct run_session, x);
	struct err err;

	if (buf_add(&s->answer, piece, &err) == 0)
		return;
	client_cancel(x);
	run_session_end_wait(s, &err);
}

static void on_done(struct client_exchange *x, const struct err *err)
{
	run_session_end_wait(CONTAINER_OF(x, struct run_session, x), err);
}

int run_session_refused(const struct run_session *s, const char *who, struct err *err)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	struct bytes why = bytes_head(buf_view(&s->answer), sizeof(err->msg));
	struct err ignored = { 0 };

	if (json_decode(buf_view(&s->answer), RUN_ANSWER_MAX, ANSWER_DEPTH, &answer, &ignored) == 0)
		(void)!json_may_string(answer, "message", &why, &ignored);
	err_set(err, ask_code_of(s->x.status), 0, "%s: %.*s (status %u)", who, (int)why.len,
		why.len ? (const char *)why.ptr : "", s->x.status);
	table_clean(err->msg);
	return -1;
}

int run_session_send(struct run_session *s, const struct client_ask *ask, struct err *err)
{
	static const struct client_exchange_ops ops = { on_body, on_done };

	buf_clear(&s->answer);
	s->over = false;
	s->x.ops = &ops;
	if (client_start(&s->x, &s->client, ask, err) < 0)
		return -1;
	run_session_wait(s, RUN_ASK_MS);
	if (s->why.code != ERR_NONE) {
		*err = s->why;
		return -1;
	}
	return 0;
}

static int exchange(struct run_session *s, struct client_ask *ask, const json_t *body,
		    struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(HTTP_WHOLE_MAX);

	if (body && json_encode(body, &text, err) < 0)
		return -1;
	ask->body = buf_view(&text);
	return run_session_send(s, ask, err);
}

int run_session_ask(struct run_session *s, const char *method, const char *target,
		    const json_t *body, struct err *err)
{
	struct client_ask ask = {
		.to = &s->api,
		.method = method,
		.target = target,
		.fields = { { BYTES_LIT("x-api-key"), bytes_str(s->c->e2b.key) },
			    { BYTES_LIT("content-type"), BYTES_LIT("application/json") } },
		.n_fields = body ? 2 : 1,
		.reply_ms = RUN_ASK_MS,
	};

	if (exchange(s, &ask, body, err) < 0)
		return -1;
	return s->x.status >= 200 && s->x.status < 300 ? 0 : run_session_refused(s, "gateway", err);
}

static void add_field(struct client_ask *ask, struct bytes name, const char *value)
{
	if (*value)
		ask->fields[ask->n_fields++] = (struct http1_field){ name, bytes_str(value) };
}

void run_session_to_agent(const struct run_session *s, const char *type, struct client_ask *ret)
{
	*ret = (struct client_ask){ .to = &s->agent, .method = "POST" };
	add_field(ret, BYTES_LIT("content-type"), type);
	add_field(ret, BYTES_LIT("connect-protocol-version"), "1");
	add_field(ret, BYTES_LIT("authorization"), s->as);
	add_field(ret, BYTES_LIT("e2b-sandbox-id"), s->id);
	add_field(ret, BYTES_LIT("e2b-sandbox-port"), RUN_AGENT_PORT);
	add_field(ret, BYTES_LIT("x-access-token"), s->token);
	static_assert(CLIENT_FIELDS_MAX >= 6, "all of them");
}

int run_session_ask_agent(struct run_session *s, const char *target, const json_t *message,
			  struct err *err)
{
	struct client_ask ask;

	run_session_to_agent(s, "application/json", &ask);
	ask.target = target;
	ask.reply_ms = RUN_ASK_MS;
	if (exchange(s, &ask, message, err) < 0)
		return -1;
	return s->x.status == 200 ? 0 : run_session_refused(s, "sandbox", err);
}

/* --- sandboxes ------------------------------------------------------------------------------ */

static bool id_ok(const char *id)
{
	return *id && strlen(id) <= RUN_ID_MAX &&
	       strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(id);
}

static int copy(const json_t *from, const char *name, char *ret, size_t size, struct err *err)
{
	struct bytes text = { 0 };

	if (json_may_string(from, name, &text, err) < 0)
		return -1;
	if (bytes_to_str(text, ret, size))
		return 0;
	return err_set(err, ERR_INTERNAL, 0, "gateway: %s is too long", name);
}

/* Where a port of it is: below the domain that the server says, as the SDKs do. */
static int take_place(const struct run_session *s, const char *port, const json_t *answer,
		      struct client_place *ret, struct err *err)
{
	char domain[CLIENT_HOST_MAX + 8] = "", label[RUN_ID_MAX + 8];

	if (s->c->e2b.sandbox_url)
		return client_place_url(s->c->e2b.sandbox_url, ret, err);
	if (copy(answer, "domain", domain, sizeof(domain), err) < 0)
		return -1;
	if (!*domain && !s->c->e2b.domain)
		return err_set(err, ERR_INVALID, 0, "E2B_SANDBOX_URL is not set");
	snprintf(label, sizeof(label), "%s-%s", port, s->id);
	return client_place_name(label, *domain ? domain : s->c->e2b.domain, ret, err);
}

int run_session_take(struct run_session *s, const json_t *answer, struct err *err)
{
	if (copy(answer, "sandboxID", s->id, sizeof(s->id), err) < 0)
		return err_wrap(err, "gateway: its answer");
	if (!id_ok(s->id)) {
		s->made = false;
		return err_set(err, ERR_INTERNAL, 0, "gateway: its answer names no sandbox");
	}
	if (copy(answer, "envdAccessToken", s->token, sizeof(s->token), err) < 0 ||
	    copy(answer, "trafficAccessToken", s->traffic, sizeof(s->traffic), err) < 0)
		return -1;
	if (take_place(s, RUN_AGENT_PORT, answer, &s->agent, err) < 0)
		return -1;
	return take_place(s, RUN_PORT, answer, &s->interp, err);
}

static int take_sandbox(struct run_session *s, struct err *err)
{
	AUTO(json_decrefp) json_t *answer = NULL;

	if (json_decode(buf_view(&s->answer), RUN_ANSWER_MAX, ANSWER_DEPTH, &answer, err) < 0)
		return err_wrap(err, "gateway: its answer");
	return run_session_take(s, answer, err);
}

int run_session_make(struct run_session *s, uint64_t seconds, struct err *err)
{
	AUTO(json_decrefp)
	json_t *body =
		json_pack("{s:o*, s:I, s:b}", "templateID", json_text(bytes_str(s->c->template)),
			  "timeout", (json_int_t)seconds, "secure", 1);
	int rc;

	if (!body)
		return err_set(err, ERR_EXHAUSTED, 0, "out of memory");
	s->patient = true;
	rc = run_session_ask(s, "POST", "/sandboxes", body, err);
	s->patient = false;
	if (rc < 0)
		return -1;
	s->made = true;
	if (take_sandbox(s, err) < 0)
		return -1;
	return s->signo ? err_set(err, ERR_UNAVAILABLE, EINTR, "interrupted") : 0;
}

int run_session_find(struct run_session *s, const char *id, uint64_t seconds, struct err *err)
{
	AUTO(json_decrefp) json_t *body = json_pack("{s:I}", "timeout", (json_int_t)seconds);
	char target[RUN_ID_MAX + 32];

	if (!body)
		return err_set(err, ERR_EXHAUSTED, 0, "out of memory");
	if (!id_ok(id))
		return err_set(err, ERR_INVALID, 0, "`%.64s` is no id of a sandbox", id);
	snprintf(target, sizeof(target), "/sandboxes/%s/connect", id);
	return run_session_ask(s, "POST", target, body, err) < 0 ? -1 : take_sandbox(s, err);
}

int run_session_kill(struct run_session *s, struct err *err)
{
	char target[RUN_ID_MAX + 32];

	if (!s->made)
		return 0;
	s->made = false;
	snprintf(target, sizeof(target), "/sandboxes/%s", s->id);
	if (run_session_ask(s, "DELETE", target, NULL, err) == 0 || err->code == ERR_NOT_FOUND)
		return 0;
	return -1;
}

/* --- life ----------------------------------------------------------------------------------- */

static int find_api(struct run_session *s, struct err *err)
{
	const struct cli_e2b *e = &s->c->e2b;

	if (!e->key)
		return err_set(err, ERR_INVALID, 0, "E2B_API_KEY is not set");
	if (e->api_url)
		return client_place_url(e->api_url, &s->api, err);
	if (!e->domain)
		return err_set(err, ERR_INVALID, 0, "E2B_DOMAIN is not set");
	return client_place_name("api", e->domain, &s->api, err);
}

/* "Basic dXNlcjo=": the user, without a password. */
static int take_user(struct run_session *s, struct err *err)
{
	const char *user = s->c->user ? s->c->user : "user";
	AUTO(buf_done) struct buf plain = BUF_MAX(RUN_USER_MAX + 2), text = BUF_MAX(sizeof(s->as));

	if (buf_printf(&plain, err, "%s:", user) < 0 ||
	    buf_add(&text, BYTES_LIT("Basic "), err) < 0 ||
	    base64_encode(buf_view(&plain), &text, err) < 0 ||
	    !bytes_to_str(buf_view(&text), s->as, sizeof(s->as)))
		return err_set(err, ERR_INVALID, 0, "`%.64s` is no name of a user", user);
	return 0;
}

int run_session_open(struct run_session *s, const struct cli *c, struct err *err)
{
	*s = (struct run_session){ .c = c, .signals = -1, .answer = BUF_MAX(RUN_ANSWER_MAX) };
	if (take_user(s, err) < 0 || find_api(s, err) < 0 ||
	    client_open(&s->client, c->e2b.trust, err) < 0)
		return -1;
	timer_init(&s->deadline, s->client.loop, on_deadline);
	return open_signals(s, err);
}

void run_session_close(struct run_session *s)
{
	watch_close(&s->watch);
	auto_close(&s->signals);
	buf_done(&s->answer);
	client_close(&s->client);
}
