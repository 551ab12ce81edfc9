/* server.c - the connections of one server. */
#include "http/server.h"

#include <assert.h>

#include "http/h1_conn.h"
#include "http/request_inside.h"

void http_server_init(struct http_server *sv, struct loop *l, const struct http_server_ops *ops,
		      const struct http_limits *limits)
{
	*sv = (struct http_server){ .ops = ops, .loop = l, .limits = *limits };
}

int http_server_add(struct http_server *sv, struct stream *s, const struct addr *peer,
		    struct err *err)
{
	return h1_conn_open(sv, s, peer, err);
}

void http_conn_join(struct http_conn *c, const struct http_conn_ops *ops, struct http_server *sv)
{
	*c = (struct http_conn){ .ops = ops, .server = sv, .next = sv->conns, .prev = &sv->conns };
	if (c->next)
		c->next->prev = &c->next;
	sv->conns = c;
	sv->n_conns++;
}

void http_conn_leave(struct http_conn *c)
{
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->server->n_conns--;
	c->server = NULL;
}

void http_server_quiesce(struct http_server *sv)
{
	struct http_conn *next;

	sv->quiet = true;
	for (struct http_conn *c = sv->conns; c; c = next) {
		next = c->next; /* an idle one leaves the list */
		c->ops->quiesce(c);
	}
}

void http_server_cut(struct http_server *sv, const struct http_request *keep)
{
	struct http_conn *c;
	struct err why;

	err_set(&why, ERR_UNAVAILABLE, 0, "the connection leads nowhere any more");
	/* from the beginning each time: a handler may end other requests, too */
	while ((c = sv->conns == keep->conn ? sv->conns->next : sv->conns))
		c->ops->kill(c, &why);
}

void http_server_done(struct http_server *sv)
{
	struct err why;

	err_set(&why, ERR_UNAVAILABLE, 0, "the server is going away");
	while (sv->conns)
		sv->conns->ops->kill(sv->conns, &why);
	assert(sv->n_conns == 0);
}
