/* arrivals.c - see arrivals.h. */
#include "gateway/arrivals/arrivals.h"

#include <errno.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"

struct arrival {
	struct arrivals *of;
	struct stream *s;
	struct stream_user user;
	struct tls_guest guest;
	struct net_peer who;
	struct address_count *count;
	struct arrival *next, **prev;
};

/* --- one arrival ---------------------------------------------------------------------------- */

/* It is no longer ours; its stream is whose it is now. */
static void leave(struct arrival *r)
{
	queue_remove(&r->of->shaking, r);
	r->of->n_shaking--;
	address_count_drop(r->count);
	free(r);
}

static void on_open(struct tls_guest *g, const char *protocol)
{
	struct arrival *r = CONTAINER_OF(g, struct arrival, guest);
	struct arrivals *a = r->of;
	struct net_peer who = r->who;
	bool is_h2 = protocol && strcmp(protocol, "h2") == 0;
	struct stream *s = r->s;
	struct err err;

	a->n_open++;
	leave(r);
	who.secure = true;
	if (http_server_add_as(a->http, s, &who, is_h2 ? HTTP_2 : HTTP_1_1, &err) < 0)
		log_warn("a connection: %s", err.msg);
}

/* What concerns all clients is logged; what one of them did is his affair. */
static void say(struct arrivals *a, const struct err *err)
{
	uint64_t now_ms = loop_now_ms(a->g->loop);

	log_debug("a handshake: %s", err->msg);
	if (err->code != ERR_UNAVAILABLE && err->code != ERR_NOT_FOUND && err->code != ERR_VERSION)
		return;
	if (a->signer.link.up && certificates_served(&a->certificates) > 0)
		return; /* the client hung up */
	if (a->said_ms != 0 && now_ms - a->said_ms < ARRIVALS_SAY_MS)
		return;
	a->said_ms = now_ms;
	log_error("TLS handshakes fail: %s", err->msg);
}

static void on_fail(struct stream_user *u, const struct err *err)
{
	struct arrival *r = CONTAINER_OF(u, struct arrival, user);

	r->of->n_failed++;
	say(r->of, err);
	stream_close(r->s); /* an alert may be on its way */
	leave(r);
}

/* Before the handshake is over there is neither. */
static void on_data(struct stream_user *u, struct bytes in)
{
	(void)u;
	(void)in;
}

static void on_end(struct stream_user *u)
{
	(void)u;
}

static void drop(struct arrival *r)
{
	stream_abort(r->s);
	leave(r);
}

/* --- the doors ------------------------------------------------------------------------------ */

/* NULL: there is no room for it. */
static struct arrival *admit(struct arrivals *a, const struct net_peer *who, bool counted)
{
	static const struct stream_user_ops ops = { on_data, on_end, NULL, on_fail };
	struct arrival *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct arrival){ .of = a, .user = { &ops }, .guest = { on_open }, .who = *who };
	r->count = address_counts_add(&a->addresses, &who->at);
	if (!r->count || (counted && r->count->n > ARRIVALS_ADDRESS_MAX)) {
		address_count_drop(r->count);
		free(r);
		return NULL;
	}
	r->guest.round = &r->count->mark;
	while (a->n_shaking >= a->shaking_max) {
		a->n_refused++;
		drop(a->shaking.first);
	}
	queue_add(&a->shaking, r);
	a->n_shaking++;
	return r;
}

static struct arrivals *of_door(struct listener *ln)
{
	struct gateway *g = CONTAINER_OF(ln, struct arrivals_door, listener)->g;

	return g->arrivals;
}

static void arrive(struct arrivals *a, struct stream *s, const struct net_peer *who, bool counted)
{
	struct arrival *r;
	struct err err;

	crowd_look(a->crowd);
	r = crowd_is_full(a->crowd) ? NULL : admit(a, who, counted);
	if (!r) {
		a->n_refused++;
		stream_abort(s);
		return;
	}
	if (tls_service_accept(a->service, s, &r->guest, &r->s, &err) < 0) {
		log_warn("a connection: %s", err.msg);
		leave(r);
		return;
	}
	stream_set_user(r->s, &r->user);
}

static void on_accept(struct listener *ln, struct stream *s, const struct addr *peer)
{
	struct arrivals *a = of_door(ln);
	bool counted =
		!addr_is_local(peer) && proxies_kind_of(a->terms->proxies, peer) == LISTENER_CLIENT;

	arrive(a, s, &(struct net_peer){ .at = *peer }, counted);
}

static void on_introduced(struct listener *ln, struct stream *s, const struct net_peer *who)
{
	arrive(of_door(ln), s, who, true);
}

/* It cannot be told why: that would take a handshake. */
static void on_surplus(struct listener *ln, struct stream *s, const struct addr *peer)
{
	(void)peer;
	of_door(ln)->n_refused++;
	stream_abort(s);
}

static enum listener_peer kind_of(struct listener *ln, const struct addr *peer)
{
	return proxies_kind_of(of_door(ln)->terms->proxies, peer);
}

static int read_introduction(struct listener *ln, struct bytes so_far, struct net_peer *who,
			     size_t *ret_more, struct err *err)
{
	(void)ln;
	return proxies_read_introduction(so_far, who, ret_more, err);
}

static void on_unknown(struct listener *ln, const struct addr *proxy, const struct err *why)
{
	struct arrivals *a = of_door(ln);

	proxies_refused(a->terms->proxies, proxy, why, loop_now_ms(a->g->loop));
}

static const struct listener_ops door_ops = {
	on_accept, on_surplus, kind_of, read_introduction, on_introduced, on_unknown,
};

static int add_door(struct arrivals *a, struct arrivals_door *d, struct err *err)
{
	a->n_doors++;
	listener_pause(&d->listener, true);
	crowd_add(a->crowd, &d->listener);
	return listener_limit_address(&d->listener, a->terms->address_connections_max, true, err);
}

static int open_door(struct arrivals *a, struct bytes text, struct err *err)
{
	struct arrivals_door *d = &a->doors[a->n_doors];
	struct addr at;

	if (a->n_doors == ARRIVALS_DOORS_MAX)
		return err_set(err, ERR_INVALID, 0, "more than %d addresses", ARRIVALS_DOORS_MAX);
	d->g = a->g;
	if (addr_parse(text, &at, err) < 0 ||
	    listener_open(&d->listener, a->g->loop, &door_ops, &at, 0666, a->terms->connections_max,
			  err) < 0)
		return -1;
	return add_door(a, d, err);
}

/* A socket of the service manager. */
static int open_given(struct arrivals *a, int fd, struct err *err)
{
	struct arrivals_door *d = &a->doors[a->n_doors];

	d->g = a->g;
	if (listener_open_fd(&d->listener, a->g->loop, &door_ops, fd, a->terms->connections_max,
			     err) < 0)
		return -1;
	return add_door(a, d, err);
}

static int open_doors(struct arrivals *a, struct err *err)
{
	struct bytes all = bytes_str(a->terms->listen), part, word;

	if (a->terms->given >= 0 && open_given(a, a->terms->given, err) < 0)
		return err_wrap(err, "the service manager's socket `https`");
	while (bytes_next(&all, ',', &part))
		while (bytes_next(&part, ' ', &word))
			if (word.len > 0 && open_door(a, word, err) < 0)
				return err_wrap(err, "listen_tls");
	return 0;
}

/* --- open and close ------------------------------------------------------------------------- */

bool arrivals_on(const struct arrivals *a)
{
	return a->g != NULL;
}

size_t arrivals_doors(const struct arrivals *a)
{
	return a->n_doors;
}

struct listener *arrivals_door(struct arrivals *a, size_t i)
{
	return &a->doors[i].listener;
}

uint16_t arrivals_port(const struct arrivals *a)
{
	struct addr at;

	listener_addr(&a->doors[0].listener, &at);
	return addr_port(&at);
}

/* At least one: somebody has to get in. */
static size_t most_shaking(size_t connections_max)
{
	size_t share = connections_max / ARRIVALS_SHARE;

	if (share == 0)
		return 1;
	return share < ARRIVALS_MAX ? share : ARRIVALS_MAX;
}

int arrivals_open(struct arrivals *a, struct gateway *g, struct http_server *http,
		  struct crowd *crowd, const struct arrivals_terms *terms, struct err *err)
{
	const struct tls_service_terms service = { &a->certificates.chooser, &a->signer.signer,
						   "h2,http/1.1", terms->ticket_ms };

	if (!terms->listen[0] && terms->given < 0)
		return 0;
	a->g = g;
	a->http = http;
	a->crowd = crowd;
	a->terms = terms;
	a->shaking_max = most_shaking(terms->connections_max);
	g->arrivals = a;
	g->arrivals_status = arrivals_json;
	queue_init(&a->shaking);
	if (certificates_open(&a->certificates, g->loop, terms->tls_dir, terms->domain, err) < 0 ||
	    tls_service_open(&a->service, g->loop, &service, err) < 0)
		return -1;
	return open_doors(a, err);
}

static void let_in(struct arrivals *a)
{
	timer_stop(&a->opening);
	for (size_t i = 0; i < a->n_doors; i++)
		listener_pause(&a->doors[i].listener, false);
}

static void on_opening(struct timer *t)
{
	let_in(CONTAINER_OF(t, struct arrivals, opening));
}

static void on_answer(struct certificates *c)
{
	struct arrivals *a = CONTAINER_OF(c, struct arrivals, certificates);

	if (a->opening.active && certificates_settled(c))
		let_in(a);
}

static void on_signer(struct signer_link *s)
{
	certificates_look(&CONTAINER_OF(s, struct arrivals, signer)->certificates);
}

void arrivals_begin(struct arrivals *a)
{
	if (!arrivals_on(a))
		return;
	signer_link_open(&a->signer, a->g->loop, a->terms->signer_socket, on_signer);
	timer_init(&a->opening, a->g->loop, on_opening);
	timer_start(&a->opening, SIGNER_WAIT_MS);
	certificates_begin(&a->certificates, a->service, &a->signer, on_answer);
	on_answer(&a->certificates); /* there may be none */
}

void arrivals_close(struct arrivals *a)
{
	if (!arrivals_on(a))
		return;
	timer_stop(&a->opening);
	for (size_t i = 0; i < a->n_doors; i++)
		listener_close(&a->doors[i].listener);
	while (a->shaking.first)
		drop(a->shaking.first);
	certificates_close(&a->certificates);
	signer_link_close(&a->signer);
	tls_service_close(a->service);
	a->g->arrivals = NULL;
	*a = (struct arrivals){ 0 };
}

/* Of the signer, as /admin/status has it of all daemons. */
static json_t *build_json(const struct link *l)
{
	return l->peer.build[0] ? json_text(bytes_str(l->peer.build)) : json_null();
}

static json_t *mismatch_json(const struct link *l)
{
	struct err err;

	if (!l->mismatch)
		return json_null();
	link_why(l, &err);
	return json_text(bytes_str(err.msg));
}

json_t *arrivals_json(const struct arrivals *a)
{
	return json_pack(
		"{s:b, s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I}, s:{s:I, s:I}}", "signer",
		a->signer.link.up, "build", build_json(&a->signer.link), "mismatch",
		mismatch_json(&a->signer.link), "certificates", certificates_json(&a->certificates),
		"handshakes", "open", (json_int_t)a->n_open, "failed", (json_int_t)a->n_failed,
		"refused", (json_int_t)a->n_refused, "now", (json_int_t)a->n_shaking, "signatures",
		"made", (json_int_t)a->signer.n_signed, "failed", (json_int_t)a->signer.n_failed);
}
