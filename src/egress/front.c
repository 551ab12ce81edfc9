/* front.c - see front.h. */
/* #syscalls: socket connect setsockopt getsockopt close */
#include "egress/front.h"

#include <errno.h>

#include "base/log.h"
#include "egress/hand_over.h"
#include "egress/peek.h"
#include "egress/reach.h"
#include "egress/refusal.h"
#include "egress/stand_in.h"
#include "egress/way.h"
#include "http/http_guard.h"
#include "net/fd_stream.h"
#include "net/pump.h"

struct front {
	struct outlet *outlet;
	struct stream *guest; /* NULL: it is the pump's */
	struct stream_user user;
	uint32_t ip; /* where the guest meant to go, then where it goes */
	uint16_t port;
	enum outlet_kind kind;
	char name[DOMAIN_SIZE]; /* that decided; empty: the address did */
	struct buf first;       /* what the guest said before anybody was dialled */
	struct timer quiet, late;
	struct lookup lookup;
	struct dns_addresses found;
	size_t tried;
	struct way way;
	struct pump pump;
	struct share_taker taker;
	bool pumping, guarded, hides; /* the last: who it means, perhaps (peek.h) */
	struct http_guard guard;
	struct front *next, **prev;
};

static void front_free(struct front *f)
{
	struct outlet *o = f->outlet;

	timer_stop(&f->quiet);
	timer_stop(&f->late);
	lookup_cancel(&f->lookup);
	way_cancel(&f->way);
	share_leave(&f->taker);
	if (f->pumping)
		pump_abort(&f->pump);
	if (f->guest)
		stream_abort(f->guest);
	if (f->guarded)
		http_guard_done(&f->guard);
	buf_done(&f->first);
	*f->prev = f->next;
	if (f->next)
		f->next->prev = f->prev;
	o->n_fronts--;
	free(f);
}

/* --- no ----------------------------------------------------------------------------------- */

/* Who speaks HTTP is told in HTTP; the rest sees a reset. */
static void refuse(struct front *f, unsigned int status, const char *why)
{
	struct err err;

	if (f->kind == OUTLET_HTTP && f->guest && refusal_write(f->guest, status, why, &err) == 0)
		stream_close(TAKE(f->guest));
	front_free(f);
}

/* --- bytes -------------------------------------------------------------------------------- */

static void on_pumped(struct pump *p, const struct err *err)
{
	struct front *f = CONTAINER_OF(p, struct front, pump);

	(void)err;
	f->pumping = false;
	front_free(f);
}

/* It may move bytes again. */
static void on_go(struct share_taker *t)
{
	pump_hold(&CONTAINER_OF(t, struct front, taker)->pump, false);
}

static void on_moved(struct pump *p, struct pump_side *from, size_t n)
{
	struct front *f = CONTAINER_OF(p, struct front, pump);
	struct egress_counts *c = &f->outlet->counts;

	*(from == &p->a ? &c->bytes_out : &c->bytes_in) += n;
	if (!p->held && !share_take(&f->outlet->share, &f->taker, n))
		pump_hold(p, true);
}

/* Of plain HTTP: each request is looked at, and an upgrade needs the server's word. */
static int pass_http(struct pump *p, struct pump_side *from, struct bytes in, struct buf *out,
		     struct err *err)
{
	struct front *f = CONTAINER_OF(p, struct front, pump);
	AUTO(buf_done) struct buf held = BUF_MAX(HTTP_GUARD_HOLD_MAX);
	struct policy_verdict no = { 0 };

	if (from == &p->b) {
		if (http_guard_heard(&f->guard, in) &&
		    (http_guard_feed(&f->guard, (struct bytes){ 0 }, &held, err) < 0 ||
		     (held.len > 0 && stream_write_buf(p->b.s, &held, err) < 0)))
			return -1;
		return buf_add(out, in, err);
	}
	if (http_guard_feed(&f->guard, in, out, err) == 0)
		return 0;
	snprintf(no.why, sizeof(no.why), "%s", err->msg);
	outlet_audit(f->outlet, f->kind, &no, f->name, f->ip, f->port);
	return -1;
}

static const struct pump_ops as_is = { on_pumped, NULL, on_moved },
			     looked_at = { on_pumped, pass_http, on_moved };

/* The first bytes take the way of all others. */
static int begin_http(struct front *f, struct stream *server, struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_MAX(HTTP_GUARD_HOLD_MAX);
	char host[DOMAIN_SIZE];
	struct http1_head h;
	size_t scanned = 0, used;
	bool is_name;
	uint16_t port;

	if (http1_head_end(buf_view(&f->first), &scanned, &used, err) != DECODE_OK ||
	    http1_parse_request(bytes_head(buf_view(&f->first), used), &h, err) < 0 ||
	    !http_guard_host(&h, host, &is_name, &port))
		return err_set(err, ERR_INVALID, 0, "no longer a request");
	http_guard_init(&f->guard, host);
	f->guarded = true;
	if (http_guard_feed(&f->guard, buf_view(&f->first), &out, err) < 0)
		return -1;
	return stream_write_buf(server, &out, err);
}

/* `early`: of the server, for the guest. */
static void begin_pump(struct front *f, struct stream *server, struct bytes early)
{
	struct err err;
	int rc = 0;

	f->outlet->counts.bytes_out += f->first.len;
	f->outlet->counts.bytes_in += early.len;
	if (f->kind == OUTLET_HTTP)
		rc = begin_http(f, server, &err);
	else if (f->first.len > 0)
		rc = stream_write_buf(server, &f->first, &err);
	if (rc == 0 && early.len > 0)
		rc = stream_write(f->guest, early, &err);
	if (rc < 0) {
		stream_abort(server);
		refuse(f, 502, err.msg);
		return;
	}
	buf_done(&f->first);
	f->pumping = true;
	pump_start(&f->pump, f->kind == OUTLET_HTTP ? &looked_at : &as_is, TAKE(f->guest), server,
		   FRONT_IDLE_MS);
}

/* --- a host with a rule ------------------------------------------------------------------- */

static bool has_rule(const struct front *f)
{
	return f->name[0] && f->kind != OUTLET_TCP && policy_opens(&f->outlet->policy, f->name);
}

/* Both ends leave this process. */
static void hand(struct front *f, struct stream *server)
{
	const struct hand_over_what what = { f->kind,  f->name, f->ip, f->port, buf_view(&f->first),
					     f->guest, server };
	struct policy_verdict no = { 0 };
	struct err err;

	f->guest = NULL;
	if (hand_over_pass(f->outlet->opener, &what, &err) < 0) {
		f->outlet->counts.tcp_failed++;
		snprintf(no.why, sizeof(no.why), "%s", err.msg);
		outlet_audit(f->outlet, f->kind, &no, f->name, f->ip, f->port);
	}
	front_free(f);
}

/* --- dialling ----------------------------------------------------------------------------- */

static void dial_next(struct front *f, const char *why);

static void on_dialled(struct way *w, struct stream *s, struct bytes early, const struct err *err)
{
	struct front *f = CONTAINER_OF(w, struct front, way);

	if (s && has_rule(f))
		hand(f, s);
	else if (s)
		begin_pump(f, s, early);
	else
		dial_next(f, err->msg);
}

static int dial_one(struct front *f, uint32_t ip, struct err *err)
{
	const struct house *h = f->outlet->house;
	char text[IP4_TEXT_MAX];
	struct addr to;

	f->ip = ip;
	ip4_text(ip, text);
	if (h->proxy && !policy_service_at(&f->outlet->policy, ip, f->port))
		return way_start_via(&f->way, h->loop, h->proxy, is_stand_in(ip) ? f->name : text,
				     f->port, FRONT_DIAL_MS, on_dialled, err);
	if (addr_ip(text, f->port, &to, err) < 0)
		return -1;
	return way_start(&f->way, h->loop, &to, FRONT_DIAL_MS, on_dialled, err);
}

/* `why`: of the one before. */
static void dial_next(struct front *f, const char *why)
{
	struct err err;

	while (f->tried < f->found.n) {
		if (dial_one(f, f->found.ip[f->tried++], &err) == 0)
			return;
		why = err.msg;
	}
	f->outlet->counts.tcp_failed++;
	outlet_failed(f->outlet, f->kind, why, f->name, f->ip, f->port);
	refuse(f, 502, why);
}

static void turn_away(struct front *f, const struct policy_verdict *v)
{
	f->outlet->counts.tcp_refused++;
	outlet_audit(f->outlet, f->kind, v, f->name, f->ip, f->port);
	refuse(f, 403, v->why);
}

/* Let out, towards what is in `found`. */
static void let_out(struct front *f, const struct policy_verdict *v)
{
	struct policy_verdict no = { .why = "a host with a rule, and its opener is not there" };

	if (has_rule(f) && !hand_over_lives(f->outlet->opener)) {
		turn_away(f, &no);
		return;
	}
	f->outlet->counts.tcp_allowed++;
	outlet_audit(f->outlet, f->kind, v, f->name, f->found.ip[0], f->port);
	dial_next(f, "no address");
}

/* --- deciding ----------------------------------------------------------------------------- */

static void towards(struct front *f, uint32_t ip)
{
	f->found = (struct dns_addresses){ .ip = { ip }, .n = 1 };
}

static struct policy_verdict by_address(const struct front *f)
{
	return reach_address(&f->outlet->policy, &f->outlet->known, f->ip, f->port);
}

static void decide_by_address(struct front *f)
{
	struct policy_verdict v = by_address(f);
	const char *name = is_stand_in(f->ip) ? known_names_of(&f->outlet->known, f->ip, 0) : NULL;

	towards(f, f->ip);
	if (name)
		snprintf(f->name, sizeof(f->name), "%s", name);
	if (v.yes)
		let_out(f, &v);
	else
		turn_away(f, &v);
}

static void on_found(struct lookup *l, enum dns_reading reading, const struct dns_addresses *found)
{
	struct front *f = CONTAINER_OF(l, struct front, lookup);
	struct policy_verdict v = { .why = "the name has no address" }, one;

	f->found.n = 0;
	for (size_t i = 0; reading == DNS_ANSWERED && i < found->n; i++) {
		one = policy_answer(&f->outlet->policy, f->name, found->ip[i]);
		if (!v.yes)
			v = one;
		if (one.yes)
			f->found.ip[f->found.n++] = found->ip[i];
	}
	if (f->found.n > 0)
		let_out(f, &v);
	else
		turn_away(f, &v);
}

static void decide_by_name(struct front *f)
{
	struct outlet *o = f->outlet;
	const struct policy_service *s = policy_service(&o->policy, f->name);
	struct policy_verdict v = policy_name(&o->policy, f->name);
	struct err err;

	if (v.yes && f->hides && policy_minds_names(&o->policy))
		v = (struct policy_verdict){ .why = "its true name is encrypted (ECH)" };
	if (s && v.yes && s->port == f->port) {
		towards(f, s->ip);
		let_out(f, &v);
	} else if (s || !v.yes) {
		struct policy_verdict address = policy_address(&o->policy, f->ip);

		towards(f, f->ip);
		/* a range that is allowed, whatever is said there; but what a rule adds to requests
		 * is for that name's own addresses */
		if (address.yes && !has_rule(f))
			let_out(f, &address);
		else
			turn_away(f, &v);
	} else if (o->house->proxy) {
		towards(f, STAND_IN_FIRST); /* any: the name is told, and resolved there */
		let_out(f, &v);
	} else if (resolver_ask(o->house->resolver, &f->lookup, f->name, on_found, &err) < 0) {
		f->outlet->counts.tcp_failed++;
		outlet_failed(o, f->kind, err.msg, f->name, 0, f->port);
		refuse(f, 502, err.msg);
	}
}

static void decide(struct front *f)
{
	struct policy_verdict v = { 0 };

	timer_stop(&f->quiet);
	timer_stop(&f->late);
	if (!f->outlet->ruled) {
		snprintf(v.why, sizeof(v.why), "no rules yet");
		turn_away(f, &v);
	} else if (f->name[0]) {
		decide_by_name(f);
	} else {
		decide_by_address(f);
	}
}

/* --- peeking ------------------------------------------------------------------------------ */

static void on_data(struct stream_user *u, struct bytes in)
{
	struct front *f = CONTAINER_OF(u, struct front, user);
	struct policy_verdict v = { 0 };
	struct peek said;
	enum peek_kind kind;
	struct err err;

	if (buf_add(&f->first, in, &err) < 0) {
		snprintf(v.why, sizeof(v.why), "its first message is too long");
		turn_away(f, &v);
		return;
	}
	timer_stop(&f->quiet);
	kind = peek_read(buf_view(&f->first), &said);
	if (kind == PEEK_MORE)
		return;
	stream_read(f->guest, false);
	if (kind == PEEK_BROKEN) {
		snprintf(v.why, sizeof(v.why), "its first message cannot be read");
		turn_away(f, &v);
		return;
	}
	f->kind = kind == PEEK_TLS ? OUTLET_TLS : kind == PEEK_HTTP ? OUTLET_HTTP : OUTLET_TCP;
	memcpy(f->name, said.name, sizeof(f->name));
	f->hides = said.hides;
	decide(f);
}

/* It has said all it wants to: what is there decides. */
static void on_end(struct stream_user *u)
{
	front_free(CONTAINER_OF(u, struct front, user));
}

static void on_drain(struct stream_user *u)
{
	(void)u;
}

static void on_fail(struct stream_user *u, const struct err *err)
{
	(void)err;
	front_free(CONTAINER_OF(u, struct front, user));
}

static const struct stream_user_ops peeks = { on_data, on_end, on_drain, on_fail };

static void on_quiet(struct timer *t)
{
	struct front *f = CONTAINER_OF(t, struct front, quiet);

	stream_read(f->guest, false);
	decide(f);
}

static void on_late(struct timer *t)
{
	struct front *f = CONTAINER_OF(t, struct front, late);
	struct policy_verdict v = { .why = "its first message takes too long" };

	turn_away(f, &v);
}

/* --- for others --------------------------------------------------------------------------- */

static void join(struct front *f, struct outlet *o)
{
	f->outlet = o;
	f->next = o->fronts;
	if (f->next)
		f->next->prev = &f->next;
	f->prev = &o->fronts;
	o->fronts = f;
	o->n_fronts++;
}

int front_start(struct outlet *o, int fd, uint32_t ip, uint16_t port, struct err *err)
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
	f->kind = OUTLET_TCP;
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
	timer_start(&f->quiet, FRONT_QUIET_MS);
	timer_start(&f->late, FRONT_PEEK_MS);
	return 0;
}

void fronts_cut(struct outlet *o)
{
	while (o->fronts)
		front_free(o->fronts);
}

static bool may_go_on(const struct front *f)
{
	const struct policy *p = &f->outlet->policy;

	if (!f->outlet->ruled)
		return false;
	if (policy_address(p, f->ip).yes)
		return true;
	return f->name[0] ? policy_answer(p, f->name, f->ip).yes : by_address(f).yes;
}

void fronts_check(struct outlet *o)
{
	struct front *next;

	for (struct front *f = o->fronts; f; f = next) {
		next = f->next;
		if (f->tried > 0 && !may_go_on(f)) /* dialled, at least */
			front_free(f);
	}
}
