/* front.c - see front.h. */
/* #syscalls: setsockopt getsockopt close */
#include "egress/front.h"

#include <errno.h>

#include "base/list.h"
#include "egress/fake_ip.h"
#include "egress/front_decide.h"
#include "egress/front_pass.h"
#include "egress/front_state.h"
#include "egress/why.h"
#include "http/refusal.h"

void front_free(struct front *f)
{
	struct sandbox_egress *o = f->sandbox_egress;

	timer_stop(&f->quiet);
	timer_stop(&f->late);
	lookup_cancel(&f->lookup);
	way_cancel(&f->way);
	share_leave(&f->taker);
	if (f->pumping)
		pump_abort(&f->pump);
	if (f->guest)
		stream_abort(f->guest);
	if (f->server)
		stream_abort(f->server);
	if (f->guarded)
		http_guard_done(&f->guard);
	buf_done(&f->first);
	list_remove(f);
	o->n_fronts--;
	free(f);
}

/* --- no ----------------------------------------------------------------------------------- */

/* Few bytes are work as well, and that is the sandbox's. */
static void charge(struct front *f, size_t n)
{
	if (!share_take(&f->sandbox_egress->share, &f->taker, n))
		stream_read(f->guest, false);
}

static void on_go(struct share_taker *t)
{
	stream_read(CONTAINER_OF(t, struct front, taker)->guest, true);
}

static void on_rest(struct stream_user *u, struct bytes in)
{
	charge(CONTAINER_OF(u, struct front, user), in.len);
}

static void on_parted(struct stream_user *u)
{
	struct front *f = CONTAINER_OF(u, struct front, user);

	if (stream_queued(f->guest) == 0)
		stream_close(TAKE(f->guest));
	front_free(f);
}

static void on_part_failed(struct stream_user *u, const struct err *err)
{
	(void)err;
	front_free(CONTAINER_OF(u, struct front, user));
}

static void on_part_late(struct timer *t)
{
	front_free(CONTAINER_OF(t, struct front, late));
}

/* Nothing more for the guest, which may take its time to read what there was; not too long. A
 * stream that is closed does the same, but nobody would count it. */
static void part(struct front *f)
{
	static const struct stream_user_ops parts = { on_rest, on_parted, NULL, on_part_failed };

	f->silent = f->out = false;
	timer_stop(&f->quiet);
	share_leave(&f->taker);
	lookup_cancel(&f->lookup);
	way_cancel(&f->way);
	if (f->server)
		stream_abort(TAKE(f->server));
	f->user.ops = &parts;
	stream_set_user(f->guest, &f->user);
	stream_shut(f->guest);
	stream_read(f->guest, true);
	timer_stop(&f->late);
	timer_init(&f->late, f->sandbox_egress->house->loop, on_part_late);
	timer_start(&f->late, FRONT_PART_MS);
}

/* A name, or where it goes. */
static void host_of(const struct front *f, char ret[static DOMAIN_SIZE])
{
	if (f->name[0])
		memcpy(ret, f->name, DOMAIN_SIZE);
	else
		ip4_text(f->ip, ret);
}

static int tell(struct front *f, unsigned int status, const char *why, const char *fix,
		struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_MAX(REFUSAL_MAX);
	char host[DOMAIN_SIZE];
	const struct refusal r = { status, host, why, fix };

	host_of(f, host);
	if (refusal_put(&out, &r, refusal_form(buf_view(&f->first)), err) < 0)
		return -1;
	return stream_write_buf(f->guest, &out, err);
}

static void refuse(struct front *f, unsigned int status, const char *why, const char *fix)
{
	struct err err;

	if (f->kind == SANDBOX_EGRESS_HTTP && f->guest && tell(f, status, why, fix, &err) == 0)
		part(f);
	else if (status == 403 && f->guest && front_shows_page(f))
		front_show_page(f, why, fix);
	else
		front_free(f);
}

void front_refuse(struct front *f, unsigned int status, const char *why)
{
	refuse(f, status, why, NULL);
}

void front_audit(struct front *f, enum audit_verdict verdict, uint32_t ip, const char *why)
{
	const struct audit_entry e = { f->kind, verdict, f->name, ip, f->port, why };

	sandbox_egress_audit(f->sandbox_egress, &e);
}

void front_turn_away(struct front *f, const struct policy_verdict *v)
{
	char host[DOMAIN_SIZE], fix[DNS_LINE_MAX + 1];

	f->sandbox_egress->counts.tcp_refused++;
	front_audit(f, v->yes ? AUDIT_ALLOWED : AUDIT_REFUSED, f->ip, v->why);
	host_of(f, host);
	refuse(f, 403, v->why, !v->yes && why_fix(v->cause, host, fix) ? fix : NULL);
}

/* --- peeking ------------------------------------------------------------------------------ */

/* It goes where the address led it. `early`: of the server. */
static void settle(struct front *f, struct bytes early)
{
	struct policy_verdict v = front_by_address(f);

	f->silent = false;
	timer_stop(&f->late);
	if (!v.yes) { /* what it has said since hides a name */
		front_turn_away(f, &v);
		return;
	}
	front_told(f, &v);
	if (f->server)
		front_begin(f, TAKE(f->server), early);
}

/* It says a name after all: as if it had done so at once. */
static void start_over(struct front *f)
{
	f->silent = f->out = false;
	way_cancel(&f->way);
	if (f->server)
		stream_abort(TAKE(f->server));
	f->tried = 0;
	front_decide(f);
}

static void no_message(struct front *f, const char *why)
{
	struct policy_verdict v = { 0 };

	snprintf(v.why, sizeof(v.why), "its first message %s", why);
	front_turn_away(f, &v);
}

static void on_data(struct stream_user *u, struct bytes in)
{
	struct front *f = CONTAINER_OF(u, struct front, user);
	struct peek said;
	enum peek_kind kind;
	struct err err;

	if (buf_add(&f->first, in, &err) < 0) {
		no_message(f, "is too long");
		return;
	}
	timer_stop(&f->quiet);
	if (f->silent && f->first.len == in.len)
		timer_start(&f->late, FRONT_PEEK_MS);
	charge(f, in.len);
	kind = peek_read(buf_view(&f->first), &f->place, &said);
	if (kind == PEEK_MORE)
		return;
	share_leave(&f->taker);
	stream_read(f->guest, false);
	if (kind == PEEK_BROKEN) {
		no_message(f, "cannot be read");
		return;
	}
	f->kind = kind == PEEK_TLS    ? SANDBOX_EGRESS_TLS
		  : kind == PEEK_HTTP ? SANDBOX_EGRESS_HTTP
				      : SANDBOX_EGRESS_TCP;
	f->hides = said.hides;
	if (f->silent && !said.name[0]) {
		settle(f, (struct bytes){ 0 });
		return;
	}
	memcpy(f->name, said.name, sizeof(f->name));
	if (f->silent)
		start_over(f);
	else
		front_decide(f);
}

/* Somebody was dialled, even if not a word was said. */
static void tell_of_silence(struct front *f)
{
	struct policy_verdict v;

	if (!f->silent || !f->out)
		return;
	v = front_by_address(f);
	front_told(f, &v);
}

static void leave(struct front *f)
{
	tell_of_silence(f);
	front_free(f);
}

static void on_end(struct stream_user *u)
{
	leave(CONTAINER_OF(u, struct front, user));
}

static void on_fail(struct stream_user *u, const struct err *err)
{
	(void)err;
	leave(CONTAINER_OF(u, struct front, user));
}

static const struct stream_user_ops peeks = { on_data, on_end, NULL, on_fail };

static void on_quiet(struct timer *t)
{
	struct front *f = CONTAINER_OF(t, struct front, quiet);

	f->silent = true;
	front_decide(f);
}

static void on_late(struct timer *t)
{
	no_message(CONTAINER_OF(t, struct front, late), "takes too long");
}

/* --- who speaks first --------------------------------------------------------------------- */

/* The server does: then it is none whose clients say a name. */
static void on_server_data(struct stream_user *u, struct bytes in)
{
	struct front *f = CONTAINER_OF(u, struct front, server_user);

	stream_read(f->server, false);
	stream_read(f->guest, false);
	settle(f, in);
}

static void on_server_end(struct stream_user *u)
{
	struct front *f = CONTAINER_OF(u, struct front, server_user);

	tell_of_silence(f);
	part(f);
}

static void on_server_fail(struct stream_user *u, const struct err *err)
{
	(void)err;
	leave(CONTAINER_OF(u, struct front, server_user));
}

static const struct stream_user_ops server_waits = { on_server_data, on_server_end, NULL,
						     on_server_fail };

void front_wait(struct front *f, struct stream *server, struct bytes early)
{
	f->server = server;
	if (early.len > 0) {
		stream_read(f->guest, false);
		settle(f, early);
		return;
	}
	f->server_user.ops = &server_waits;
	stream_set_user(server, &f->server_user);
	stream_read(server, true);
	if (f->first.len == 0)
		timer_start(&f->late, FRONT_IDLE_MS);
}

/* --- for others --------------------------------------------------------------------------- */

static void join(struct front *f, struct sandbox_egress *o)
{
	f->sandbox_egress = o;
	list_add(&o->fronts, f);
	o->n_fronts++;
}

static bool leads_to_page(const struct front *f)
{
	return f->ip == FAKE_IP_REFUSED && f->sandbox_egress->ruled &&
	       f->sandbox_egress->policy.pages;
}

int front_start(struct sandbox_egress *o, int fd, uint32_t ip, uint16_t port, struct err *err)
{
	AUTO(auto_close) int own = fd;
	struct front *f;

	if (o->n_fronts + o->n_handed >= o->house->limits.connections)
		return err_set(err, ERR_EXHAUSTED, 0, "%zu connections", o->n_fronts + o->n_handed);
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a connection");
	f->ip = ip;
	f->port = port;
	f->kind = SANDBOX_EGRESS_TCP;
	f->first = BUF_MAX(PEEK_MAX + LOOP_READ_MAX);
	f->user.ops = &peeks;
	f->taker.on_go = on_go;
	timer_init(&f->quiet, o->house->loop, on_quiet);
	timer_init(&f->late, o->house->loop, on_late);
	if (fd_stream_open(o->house->loop, take_fd(&own), FD_STREAM_BOTH, &f->guest, err) < 0) {
		free(f);
		return -1;
	}
	join(f, o);
	stream_set_user(f->guest, &f->user);
	stream_read(f->guest, true);
	if (!leads_to_page(f)) /* there no server would speak first, and a guest may be slow */
		timer_start(&f->quiet, FRONT_QUIET_MS);
	timer_start(&f->late, FRONT_PEEK_MS);
	return 0;
}

void fronts_cut(struct sandbox_egress *o)
{
	while (o->fronts)
		front_free(o->fronts);
}

static bool may_reach(const struct front *f, uint32_t ip)
{
	const struct policy *p = &f->sandbox_egress->policy;

	if (policy_address(p, ip).yes)
		return true;
	return f->name[0] ? policy_answer(p, f->name, ip).yes : front_by_address(f).yes;
}

/* Whom it has reached, or every one it may still try. */
static bool may_go_on(const struct front *f)
{
	if (!f->sandbox_egress->ruled || f->pumping)
		return f->sandbox_egress->ruled && may_reach(f, f->ip);
	for (size_t i = 0; i < f->found.n; i++)
		if (!may_reach(f, f->found.ip[i]))
			return false;
	return true;
}

void fronts_check(struct sandbox_egress *o)
{
	list_each(struct front, f, o->fronts)
		if (f->out && !may_go_on(f))
			front_free(f);
}
