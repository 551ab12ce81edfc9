/* control.c - fixed messages, one answer each. */
/* #syscalls: sendmsg recvmsg memfd_create pwrite64 fstat pread64 close */
#include "egress/control.h"

#include <errno.h>

#include "base/list.h"
#include "base/memory_file.h"
#include "egress/audit.h"
#include "egress/doors.h"
#include "egress/explain.h"
#include "egress/request.h"
#include "base/fdmsg.h"
#include "net/control_socket.h"

enum {
	EXPLAINING_MAX = 32, /* questions that wait for addresses */
	EXPLAIN_MS =
		5 * 1000, /* node gives up on who says nothing for longer (DAEMON_SILENCE_MS) */
};

struct control {
	struct control_socket socket;
	const struct house *house; /* borrowed */
	struct doors *slots[EGRESS_SLOTS_MAX];
	struct egress_counts past; /* of sandboxes that are gone */
	struct explaining *explaining;
	size_t n_explaining;
	struct asker asker; /* of these questions */
};

struct explaining { /* an answer that waits for the addresses of a name */
	struct control *control;
	struct control_client *client;
	uint64_t tag;
	struct explain explain;
	struct lookup lookup;
	struct timer late;
	struct explaining *next, **prev;
};

/* A request with what came along; descriptors that nobody takes are closed. */
struct call {
	struct egress_request rq;
	int fds[EGRESS_DOORS];
	size_t n_fds;
	struct egress_reply reply;
	int answer; /* a descriptor that goes back with the reply; -1: none */
	struct control_client *client;
	bool later; /* the reply comes when more is known */
};

/* --- the verbs ------------------------------------------------------------------------------ */

typedef int verb_fn(struct control *c, struct call *call, struct err *err);

/* A text that goes back with the reply. */
static int answer_with(struct call *call, const char *name, const struct buf *text, struct err *err)
{
	call->answer = memory_file_make(name, buf_view(text), err);
	return call->answer < 0 ? -1 : 0;
}

static void add_counts(struct egress_counts *to, const struct doors *d)
{
	const struct egress_counts more = doors_counts(d);

	to->tcp_refused += more.tcp_refused;
	to->names_refused += more.names_refused;
	to->tcp_allowed += more.tcp_allowed;
	to->tcp_failed += more.tcp_failed;
	to->names_allowed += more.names_allowed;
	to->bytes_out += more.bytes_out;
	to->bytes_in += more.bytes_in;
}

static void let_go(struct control *c, uint32_t slot)
{
	if (c->slots[slot])
		add_counts(&c->past, c->slots[slot]);
	doors_close(c->slots[slot]);
	c->slots[slot] = NULL;
}

static int verb_open(struct control *c, struct call *call, struct err *err)
{
	let_go(c, call->rq.slot);
	call->n_fds = 0; /* taken, whatever comes of it */
	return doors_open(&c->slots[call->rq.slot], c->house, call->fds, err);
}

static int verb_close(struct control *c, struct call *call, struct err *err)
{
	(void)err;
	let_go(c, call->rq.slot);
	return 0;
}

static struct doors *find(struct control *c, const struct call *call, struct err *err)
{
	if (!c->slots[call->rq.slot])
		err_set(err, ERR_NOT_FOUND, 0, "slot %u has no doors here", call->rq.slot);
	return c->slots[call->rq.slot];
}

static int verb_name(struct control *c, struct call *call, struct err *err)
{
	struct doors *d = find(c, call, err);

	if (!d)
		return -1;
	add_counts(&c->past, d);
	doors_name(d, call->rq.id);
	return 0;
}

static int verb_count(struct control *c, struct call *call, struct err *err)
{
	const struct doors *d = find(c, call, err);

	if (!d)
		return -1;
	call->reply.counts = doors_counts(d);
	return 0;
}

static int verb_rule(struct control *c, struct call *call, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(POLICY_TEXT_MAX);
	struct doors *d = find(c, call, err);

	if (!d || memory_file_read(call->fds[0], &text, err) < 0)
		return -1;
	if (call->n_fds == 2)
		call->n_fds--; /* taken, whatever comes of it */
	else
		call->fds[1] = -1;
	/* first: with the new rules nothing is handed to the injector of the old ones */
	if (doors_injector(d, call->fds[1], err) < 0)
		return -1;
	return doors_rule(d, buf_view(&text), err);
}

static int verb_log(struct control *c, struct call *call, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(AUDIT_TEXT_MAX);
	const struct doors *d = find(c, call, err);

	if (!d || doors_log(d, &text, err) < 0)
		return -1;
	return answer_with(call, "log", &text, err);
}

static int verb_known(struct control *c, struct call *call, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(POLICY_TEXT_MAX);
	const struct doors *d = find(c, call, err);

	if (!d || doors_known(d, &text, err) < 0)
		return -1;
	return answer_with(call, "known", &text, err);
}

static void explaining_free(struct explaining *x)
{
	lookup_cancel(&x->lookup);
	timer_stop(&x->late);
	explain_done(&x->explain);
	list_remove(x);
	x->control->n_explaining--;
	free(x);
}

static int tell_explained(const struct explain *x, struct call *call, struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_MAX(EXPLAIN_OUT_MAX);

	return explain_tell(x, &out, err) < 0 ? -1 : answer_with(call, "explained", &out, err);
}

static bool answer(struct control_client *cl, const struct egress_reply *r, int fd);
static void fill_error(struct egress_reply *r, const struct err *err);

static void explained(struct explaining *x, enum dns_reading reading,
		      const struct dns_addresses *found)
{
	struct call call = { .reply.tag = x->tag, .answer = -1, .client = x->client };
	struct err err = { 0 };

	explain_found(&x->explain, reading, found);
	if (tell_explained(&x->explain, &call, &err) < 0)
		fill_error(&call.reply, &err);
	explaining_free(x);
	(void)answer(call.client, &call.reply, call.answer);
}

static void on_addresses(struct lookup *l, enum dns_reading reading,
			 const struct dns_addresses *found)
{
	explained(CONTAINER_OF(l, struct explaining, lookup), reading, found);
}

static void on_explain_late(struct timer *t)
{
	explained(CONTAINER_OF(t, struct explaining, late), DNS_FAILED,
		  &(struct dns_addresses){ 0 });
}

static struct explaining *explaining_add(struct control *c, const struct call *call,
					 struct err *err)
{
	struct explaining *x = c->n_explaining < EXPLAINING_MAX ? calloc(1, sizeof(*x)) : NULL;

	if (!x) {
		err_set(err, ERR_EXHAUSTED, 0, "%d questions wait for addresses; ask again",
			EXPLAINING_MAX);
		return NULL;
	}
	x->control = c;
	x->client = call->client;
	x->tag = call->rq.tag;
	timer_init(&x->late, c->house->loop, on_explain_late);
	list_add(&c->explaining, x);
	c->n_explaining++;
	return x;
}

static int begin_explaining(struct explaining *x, struct call *call, struct err *err)
{
	AUTO(buf_done) struct buf in = BUF_MAX(EXPLAIN_IN_MAX);
	struct control *c = x->control;

	if (memory_file_read(call->fds[0], &in, err) < 0 ||
	    explain_begin(&x->explain, c->house->ground, buf_view(&in), err) < 0)
		return -1;
	if (!x->explain.name[0])
		return tell_explained(&x->explain, call, err);
	if (resolver_ask(c->house->resolver, &x->lookup, &c->asker, x->explain.name, on_addresses,
			 err) < 0)
		return -1;
	timer_start(&x->late, EXPLAIN_MS);
	call->later = true;
	return 0;
}

static int verb_explain(struct control *c, struct call *call, struct err *err)
{
	struct explaining *x = explaining_add(c, call, err);
	int r = x ? begin_explaining(x, call, err) : -1;

	if (x && !call->later)
		explaining_free(x);
	return r;
}

static int verb_reset(struct control *c, struct call *call, struct err *err)
{
	(void)call;
	(void)err;
	for (uint32_t i = 0; i < EGRESS_SLOTS_MAX; i++)
		let_go(c, i);
	return 0;
}

/* Of 2,048 slots at most: some ten microseconds. */
static int verb_totals(struct control *c, struct call *call, struct err *err)
{
	(void)err;
	call->reply.counts = c->past;
	for (uint32_t i = 0; i < EGRESS_SLOTS_MAX; i++)
		if (c->slots[i])
			add_counts(&call->reply.counts, c->slots[i]);
	return 0;
}

static verb_fn *const verbs[EGRESS_VERBS] = {
	[EGRESS_OPEN] = verb_open,     [EGRESS_CLOSE] = verb_close,     [EGRESS_NAME] = verb_name,
	[EGRESS_COUNT] = verb_count,   [EGRESS_RULE] = verb_rule,       [EGRESS_LOG] = verb_log,
	[EGRESS_KNOWN] = verb_known,   [EGRESS_EXPLAIN] = verb_explain, [EGRESS_RESET] = verb_reset,
	[EGRESS_TOTALS] = verb_totals,
};

static int handle(struct control *c, struct call *call, struct err *err)
{
	if (egress_request_check(&call->rq, call->n_fds, err) < 0)
		return -1;
	return verbs[call->rq.verb](c, call, err);
}

/* --- clients -------------------------------------------------------------------------------- */

/* Takes `fd`, which may be -1. Who does not read its answers would have to be waited for: it goes.
 */
static bool answer(struct control_client *cl, const struct egress_reply *r, int fd)
{
	AUTO(auto_close) int own = fd;
	struct err err;

	if (fdmsg_send(cl->sock, r, sizeof(*r), &own, own >= 0, &err) == 0)
		return true;
	control_hang_up(cl);
	return false;
}

static void fill_error(struct egress_reply *r, const struct err *err)
{
	r->code = err->code;
	snprintf(r->msg, sizeof(r->msg), "%.*s", (int)sizeof(r->msg) - 1, err->msg);
}

static bool on_request(struct control_client *cl)
{
	struct control *c = CONTAINER_OF(cl->of, struct control, socket);
	struct call call = { .answer = -1, .client = cl };
	struct egress_reply *r = &call.reply;
	struct err err = { 0 };

	if (fdmsg_recv(cl->sock, &call.rq, sizeof(call.rq), call.fds, EGRESS_DOORS, &call.n_fds,
		       &err) < 0) {
		if (err.sys != EAGAIN)
			control_hang_up(cl);
		return false;
	}
	r->tag = call.rq.tag;
	if (handle(c, &call, &err) < 0)
		fill_error(r, &err);
	else if (call.rq.verb == EGRESS_RESET)
		control_alone(cl);
	while (call.n_fds > 0)
		close(call.fds[--call.n_fds]);
	return call.later || answer(cl, r, call.answer);
}

static void on_gone(struct control_client *cl)
{
	struct control *c = CONTAINER_OF(cl->of, struct control, socket);

	list_each(struct explaining, x, c->explaining)
		if (x->client == cl)
			explaining_free(x);
}

/* --- open and close ------------------------------------------------------------------------- */

int control_open(struct control **ret, const struct house *house, const char *path, uid_t node_uid,
		 struct err *err)
{
	static const struct control_socket_ops ops = { EGRESS_VERSION_MIN, EGRESS_VERSION_MAX,
						       on_request, on_gone };
	AUTO(auto_free) struct control *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate control");
	c->house = house;
	if (control_socket_open(&c->socket, house->loop, &ops, path, node_uid, err) < 0)
		return -1;
	*ret = TAKE(c);
	return 0;
}

void control_close(struct control *c)
{
	if (!c)
		return;
	control_socket_close(&c->socket);
	for (uint32_t i = 0; i < EGRESS_SLOTS_MAX; i++)
		let_go(c, i);
	resolver_leave(c->house->resolver, &c->asker);
	free(c);
}
