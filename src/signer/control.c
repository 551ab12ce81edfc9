/* control.c - fixed messages, one answer each. */
/* #syscalls: sendmsg recvmsg close */
#include "signer/control.h"

#include <errno.h>
#include <stdio.h>

#include "base/fdmsg.h"
#include "net/control_socket.h"
#include "signer/request.h"

struct control {
	struct control_socket socket;
	struct keyring *keys; /* NULL: not yet */
};

static int verb_sign(const struct sign_key *key, const struct signer_request *rq,
		     struct signer_reply *r, struct err *err)
{
	size_t n;

	if (sign_key_sign(key, (enum sign_scheme)rq->scheme, (struct bytes){ rq->what, rq->n },
			  r->signature, &n, err) < 0)
		return -1;
	r->n = (uint32_t)n;
	return 0;
}

static int verb_has(const struct sign_key *key, const struct signer_request *rq,
		    struct signer_reply *r, struct err *err)
{
	(void)key; /* whoever comes here has one */
	(void)rq;
	(void)r;
	(void)err;
	return 0;
}

typedef int verb_fn(const struct sign_key *key, const struct signer_request *rq,
		    struct signer_reply *r, struct err *err);

static verb_fn *const verbs[SIGNER_VERBS] = {
	[SIGNER_SIGN] = verb_sign,
	[SIGNER_HAS] = verb_has,
};

static int handle(const struct control *c, const struct signer_request *rq, struct signer_reply *r,
		  struct err *err)
{
	const struct sign_key *key;
	char id[SIGN_ID_HEX + 1];

	if (signer_request_check(rq, err) < 0)
		return -1;
	key = keyring_find(c->keys, rq->id);
	sign_id_text(rq->id, id);
	if (!key)
		return err_set(err, ERR_NOT_FOUND, 0, "there is no key %s", id);
	return verbs[rq->verb](key, rq, r, err);
}

static bool on_request(struct control_client *cl)
{
	const struct control *c = CONTAINER_OF(cl->of, struct control, socket);
	struct signer_reply r = { 0 };
	struct signer_request rq;
	struct err err = { 0 };
	size_t n_fds = 0;

	if (fdmsg_recv(cl->sock, &rq, sizeof(rq), NULL, 0, &n_fds, &err) < 0) {
		if (err.sys != EAGAIN)
			control_hang_up(cl);
		return false;
	}
	r.tag = rq.tag;
	if (handle(c, &rq, &r, &err) < 0) {
		r.code = err.code;
		snprintf(r.msg, sizeof(r.msg), "%.*s", (int)sizeof(r.msg) - 1, err.msg);
	}
	/* who does not read its answers would have to be waited for: it goes */
	if (fdmsg_send(cl->sock, &r, sizeof(r), NULL, 0, &err) == 0)
		return true;
	control_hang_up(cl);
	return false;
}

int control_open(struct control **ret, struct loop *l, const char *path, uid_t gateway_uid,
		 struct err *err)
{
	static const struct control_socket_ops ops = { SIGNER_VERSION_MIN, SIGNER_VERSION_MAX,
						       on_request };
	AUTO(auto_free) struct control *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate control");
	if (control_socket_open(&c->socket, l, &ops, path, gateway_uid, err) < 0)
		return -1;
	*ret = TAKE(c);
	return 0;
}

void control_serve(struct control *c, struct keyring *k)
{
	c->keys = k;
}

void control_close(struct control *c)
{
	if (!c)
		return;
	control_socket_close(&c->socket);
	free(c);
}
