/* front_pass.c - see front_pass.h. */
#include "egress/front_pass.h"

#include "base/log.h"
#include "egress/front_state.h"
#include "egress/hand_over.h"
#include "egress/fake_ip.h"

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
	struct egress_counts *c = &f->sandbox_egress->counts;

	*(from == &p->a ? &c->bytes_out : &c->bytes_in) += n;
	if (!p->held && !share_take(&f->sandbox_egress->share, &f->taker, n))
		pump_hold(p, true);
}

static int from_guest(struct front *f, struct bytes in, struct buf *out, struct err *err)
{
	struct policy_verdict no = { 0 };

	if (http_guard_feed(&f->guard, in, out, err) == 0)
		return 0;
	snprintf(no.why, sizeof(no.why), "%s", err->msg);
	f->sandbox_egress->counts.tcp_refused++;
	front_audit(f, AUDIT_REFUSED, f->ip, no.why);
	return -1;
}

/* It may be the word that an upgrade waited for: then the guest's bytes behind that go on. */
static int from_server(struct front *f, struct bytes in, struct buf *out, struct err *err)
{
	AUTO(buf_done) struct buf held = BUF_MAX(HTTP_GUARD_HOLD_MAX);

	if (http_guard_heard(&f->guard, in) &&
	    (from_guest(f, (struct bytes){ 0 }, &held, err) < 0 ||
	     stream_write_buf(f->pump.b.s, &held, err) < 0))
		return -1;
	return buf_add(out, in, err);
}

/* Of plain HTTP: each request is looked at, and an upgrade needs the server's word: until then
 * neither bytes nor an end of the guest are taken. */
static int pass_http(struct pump *p, struct pump_side *from, struct bytes in, struct buf *out,
		     struct err *err)
{
	struct front *f = CONTAINER_OF(p, struct front, pump);
	int rc = from == &p->a ? from_guest(f, in, out, err) : from_server(f, in, out, err);

	if (rc == 0)
		pump_wait(&p->a, http_guard_waits(&f->guard));
	return rc;
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

/* What it said first does not pass as a whole. */
static void not_begun(struct front *f, const struct err *err)
{
	struct policy_verdict no = { 0 };

	snprintf(no.why, sizeof(no.why), "%s", err->msg);
	if (err->code == ERR_UNAVAILABLE)
		front_refuse(f, 502, err->msg);
	else
		front_turn_away(f, &no);
}

void front_begin(struct front *f, struct stream *server, struct bytes early)
{
	struct err err;
	int rc = 0;

	f->sandbox_egress->counts.bytes_out += f->first.len;
	f->sandbox_egress->counts.bytes_in += early.len;
	if (f->kind == SANDBOX_EGRESS_HTTP)
		rc = begin_http(f, server, &err);
	else if (f->first.len > 0)
		rc = stream_write_buf(server, &f->first, &err);
	if (rc == 0 && early.len > 0)
		rc = stream_write(f->guest, early, &err);
	if (rc < 0) {
		stream_abort(server);
		not_begun(f, &err);
		return;
	}
	buf_done(&f->first);
	share_leave(&f->taker);
	f->taker.on_go = on_go;
	f->pumping = true;
	pump_start(&f->pump, f->kind == SANDBOX_EGRESS_HTTP ? &looked_at : &as_is, TAKE(f->guest),
		   server, FRONT_IDLE_MS);
	pump_wait(&f->pump.a, f->guarded && http_guard_waits(&f->guard));
}

/* --- a host with a rule ------------------------------------------------------------------- */

bool front_has_rule(const struct front *f)
{
	return f->name[0] && f->kind != SANDBOX_EGRESS_TCP &&
	       policy_opens(&f->sandbox_egress->policy, f->name);
}

/* Both ends leave this process. */
static void hand(struct front *f, struct stream *server)
{
	const struct hand_over_what what = { f->kind,  f->name, f->ip, f->port, buf_view(&f->first),
					     f->guest, server };
	struct policy_verdict no = { 0 };
	struct err err;

	f->guest = NULL;
	if (hand_over_pass(f->sandbox_egress->injector, &what, &err) < 0) {
		f->sandbox_egress->counts.tcp_failed++;
		snprintf(no.why, sizeof(no.why), "%s", err.msg);
		front_audit(f, AUDIT_REFUSED, f->ip, no.why);
	}
	front_free(f);
}

/* --- a page that says no -------------------------------------------------------------------- */

bool front_shows_page(const struct front *f)
{
	const struct sandbox_egress *o = f->sandbox_egress;

	return f->kind == SANDBOX_EGRESS_TLS && f->name[0] && o->ruled && o->policy.pages &&
	       hand_over_lives(o->injector);
}

/* Each costs a certificate and a handshake, and a guest can ask for any number of names. */
static bool may_show(struct sandbox_egress *o)
{
	uint64_t now = loop_now_ms(o->house->loop);

	if (now - o->pages_since_ms >= 1000) {
		o->pages_since_ms = now;
		o->n_pages = 0;
	}
	return o->n_pages++ < SANDBOX_EGRESS_PAGES_PER_S;
}

void front_show_page(struct front *f, const char *why, const char *fix)
{
	const struct hand_over_what what = { .kind = f->kind,
					     .name = f->name,
					     .ip = f->ip,
					     .port = f->port,
					     .first = buf_view(&f->first),
					     .guest = f->guest,
					     .why = why,
					     .fix = fix };
	struct err err;

	if (may_show(f->sandbox_egress)) {
		f->guest = NULL;
		if (hand_over_pass(f->sandbox_egress->injector, &what, &err) < 0) /* a reset */
			log_debug("sandbox %s: no page: %s", f->sandbox_egress->id, err.msg);
	}
	front_free(f);
}

/* --- dialling ----------------------------------------------------------------------------- */

static void dial_next(struct front *f, const char *why);

static void on_dialled(struct way *w, struct stream *s, struct bytes early, const struct err *err)
{
	struct front *f = CONTAINER_OF(w, struct front, way);

	if (s && f->silent)
		front_wait(f, s, early);
	else if (s && front_has_rule(f))
		hand(f, s);
	else if (s)
		front_begin(f, s, early);
	else
		dial_next(f, err->msg);
}

static int dial_one(struct front *f, uint32_t ip, struct err *err)
{
	const struct house *h = f->sandbox_egress->house;
	struct way_to to = { .port = f->port, .deadline_ms = FRONT_DIAL_MS };
	char text[IP4_TEXT_MAX];
	struct addr server;

	f->ip = ip;
	ip4_text(ip, text);
	if (h->proxy && !policy_service_at(&f->sandbox_egress->policy, ip, f->port)) {
		to.dial = h->proxy;
		to.host = is_fake_ip(ip) ? f->name : text;
	} else if (addr_ip(text, f->port, &server, err) < 0) {
		return -1;
	} else {
		to.dial = &server;
	}
	return way_start(&f->way, h->loop, &to, on_dialled, err);
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
	f->sandbox_egress->counts.tcp_failed++;
	front_audit(f, AUDIT_FAILED, f->ip, why);
	front_refuse(f, 502, why);
}

void front_told(struct front *f, const struct policy_verdict *v)
{
	f->sandbox_egress->counts.tcp_allowed++;
	front_audit(f, v->yes ? AUDIT_ALLOWED : AUDIT_REFUSED, f->found.ip[0], v->why);
}

void front_let_out(struct front *f, const struct policy_verdict *v)
{
	struct policy_verdict no = { .why = "a host with a rule, and its injector is not there" };

	if (front_has_rule(f) && !hand_over_lives(f->sandbox_egress->injector)) {
		front_turn_away(f, &no);
		return;
	}
	f->out = true;
	if (!f->silent)
		front_told(f, v);
	dial_next(f, "no address");
}
