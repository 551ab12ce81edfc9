/* control.c - fixed messages; IMAGES_MAKE is answered when its job says so. */
/* #syscalls: sendmsg recvmsg fstat newfstatat pread64 memfd_create pwrite64 fcntl close */
#include "images/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fdmsg.h"
#include "base/memory_file.h"
#include "images/keys.h"
#include "images/registries.h"
#include "images/request.h"
#include "jail/descriptors.h"

enum { AUTH_MAX = 64 * 1024, FACTS_MAX = 256 };

struct control {
	struct control_socket socket;
	struct control_terms terms;
	struct jobs jobs;
};

struct call {
	struct images_request rq;
	struct control_client *client;
	int fds[IMAGES_FDS_MAX]; /* what came along, closed afterwards; -1: nothing */
	size_t n_fds;
	int answer; /* what goes back with the answer, closed afterwards; -1: nothing */
	bool later; /* it is not answered now */
};

/* --- IMAGES_MAKE ------------------------------------------------------------------------------ */

/* The value is opened here, and goes to the one job in memory alone. Returns a descriptor. */
static int open_sealed(const struct control *c, const struct images_ask *ask, const char *host,
		       struct err *err)
{
	AUTO(buf_done) struct buf value = BUF_SECRET(SEAL_VALUE_MAX + 1);
	AUTO(buf_done) struct buf text = BUF_SECRET(AUTH_MAX);
	char label[IMAGES_TEAM_MAX + sizeof(IMAGES_SEAL_LABEL)];

	loop_forget(c->socket.loop);
	snprintf(label, sizeof(label), "%s" IMAGES_SEAL_LABEL, ask->team);
	if (unseal(c->terms.key, bytes_str(label), buf_view(&ask->sealed), &value, err) < 0)
		return err_wrap(err, "the credentials");
	if (registries_auth(host, buf_view(&value), &text, err) < 0)
		return -1;
	return memory_file_make("auth", buf_view(&text), err);
}

static int read_ask(const struct call *call, struct images_ask *ret, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(IMAGES_ASK_MAX);

	if (memory_file_read(call->fds[0], &text, err) < 0)
		return -1;
	return images_ask_parse(buf_view(&text), call->rq.flags & IMAGES_ARCHIVE, ret, err);
}

static int check_fds(const struct call *call, struct err *err)
{
	const struct images_request *rq = &call->rq;
	struct stat st;

	if (rq->flags & IMAGES_DISK) {
		if (descriptors_check(call->fds[1], S_IFREG, O_RDWR, "the disk", err) < 0)
			return -1;
		if (fstat(call->fds[1], &st) < 0 || st.st_size != 0)
			return err_set(err, ERR_INVALID, 0, "the disk is not empty");
	}
	if (rq->flags & IMAGES_ARCHIVE)
		return descriptors_check(call->fds[call->n_fds - 1], S_IFREG, O_RDONLY,
					 "the archive", err);
	return 0;
}

static int name_image(const struct control *c, const struct images_ask *ask, struct order *o,
		      struct err *err)
{
	const struct config_value *set = c->terms.set;
	const struct image_defaults defaults = { set[SET_DEFAULT_REGISTRY].text,
						 set[SET_DEFAULT_PREFIX].text };

	if (!ask->reference[0])
		return 0;
	if (image_ref_parse(bytes_str(ask->reference), &defaults, &o->ref, err) < 0)
		return -1;
	registries_host(set, &o->ref, o->host);
	return 0;
}

static int start(struct control *c, const struct call *call, const struct images_ask *ask,
		 struct err *err)
{
	struct order o = { .verb = ORDER_JOB, .disk_mib = call->rq.disk_mib };
	AUTO(auto_close) int auth = -1;
	int fds[ORDER_FDS_MAX];
	size_t n = 0;

	if (name_image(c, ask, &o, err) < 0)
		return -1;
	if (ask->sealed.len > 0) {
		auth = open_sealed(c, ask, o.host, err);
		if (auth < 0)
			return -1;
		fds[n++] = auth;
		o.parts |= ORDER_AUTH;
	}
	for (size_t i = 1; i < call->n_fds; i++)
		fds[n++] = call->fds[i];
	o.parts |= (call->rq.flags & IMAGES_DISK ? ORDER_DISK : 0) |
		   (call->rq.flags & IMAGES_ARCHIVE ? ORDER_ARCHIVE : 0);
	return jobs_start(&c->jobs, call->client, call->rq.tag, &o, fds, n, err);
}

/* --- the verbs -------------------------------------------------------------------------------- */

typedef int verb_fn(struct control *c, struct call *call, struct err *err);

static int verb_make(struct control *c, struct call *call, struct err *err)
{
	struct images_ask ask;
	int rc;

	if (check_fds(call, err) < 0 || read_ask(call, &ask, err) < 0)
		return -1;
	rc = start(c, call, &ask, err);
	images_ask_done(&ask);
	call->later = rc == 0;
	return rc;
}

static int verb_cancel(struct control *c, struct call *call, struct err *err)
{
	(void)err;
	jobs_cancel(&c->jobs, call->client, call->rq.of);
	return 0;
}

static int verb_facts(struct control *c, struct call *call, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(FACTS_MAX);

	if (keys_facts(c->terms.key, c->terms.agent, &text, err) < 0)
		return -1;
	call->answer = memory_file_make("facts", buf_view(&text), err);
	return call->answer < 0 ? -1 : 0;
}

static verb_fn *const verbs[IMAGES_VERBS] = {
	[IMAGES_MAKE] = verb_make,
	[IMAGES_CANCEL] = verb_cancel,
	[IMAGES_FACTS] = verb_facts,
};

static int handle(struct control *c, struct call *call, struct err *err)
{
	if (images_request_check(&call->rq, call->n_fds, err) < 0)
		return -1;
	return verbs[call->rq.verb](c, call, err);
}

/* --- clients ---------------------------------------------------------------------------------- */

/* False: it was hung up on, here or on the way. */
static bool answer(struct control_client *cl, const struct call *call, const struct err *why)
{
	struct images_reply r = { .tag = call->rq.tag, .code = why->code };
	struct err err;

	snprintf(r.text, sizeof(r.text), "%s", why->msg);
	if (!cl->of)
		return false;
	if (fdmsg_send(cl->sock, &r, sizeof(r), &call->answer, call->answer >= 0, &err) == 0)
		return true;
	control_hang_up(cl);
	return false;
}

static bool on_request(struct control_client *cl)
{
	struct call call = { .client = cl, .fds = { -1, -1, -1 }, .answer = -1 };
	struct err err = { 0 };
	bool more = true;

	if (fdmsg_recv(cl->sock, &call.rq, sizeof(call.rq), call.fds, IMAGES_FDS_MAX, &call.n_fds,
		       &err) < 0) {
		if (err.sys != EAGAIN)
			control_hang_up(cl);
		return false;
	}
	err = (struct err){ 0 };
	if (handle(CONTAINER_OF(cl->of, struct control, socket), &call, &err) < 0 || !call.later)
		more = answer(cl, &call, &err);
	for (size_t i = 0; i < call.n_fds; i++)
		auto_close(&call.fds[i]);
	auto_close(&call.answer);
	return more;
}

static void on_gone(struct control_client *cl)
{
	struct control *c = CONTAINER_OF(cl->of, struct control, socket);

	jobs_forget(&c->jobs, cl);
}

/* --- open and close --------------------------------------------------------------------------- */

int control_open(struct control **ret, struct loop *l, const struct control_terms *t,
		 struct err *err)
{
	static const struct control_socket_ops ops = { IMAGES_VERSION_MIN, IMAGES_VERSION_MAX,
						       on_request, on_gone };
	AUTO(auto_free) struct control *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate control");
	c->terms = *t;
	jobs_open(&c->jobs, l, t->forkserver, t->set);
	if (control_socket_open(&c->socket, l, &ops, t->set[SET_SOCKET].text,
				(uid_t)t->set[SET_NODE_UID].number, err) < 0)
		return -1;
	*ret = TAKE(c);
	return 0;
}

void control_close(struct control *c)
{
	if (!c)
		return;
	control_socket_close(&c->socket);
	jobs_close(&c->jobs);
	free(c);
}
