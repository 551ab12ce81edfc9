/* server.c - the connections of one server. */
#include "http/server.h"

#include <assert.h>

#include "http/h1_conn.h"
#include "http/request_inside.h"
#include "http/shed.h"

void http_server_init(struct http_server *sv, struct loop *l, const struct http_server_ops *ops,
		      const struct http_limits *limits)
{
	*sv = (struct http_server){ .ops = ops, .loop = l, .limits = *limits };
	sv->waiting_end = &sv->waiting;
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

static void stop_waiting(struct http_conn *c)
{
	if (!c->wait_prev)
		return;
	*c->wait_prev = c->wait_next;
	*(c->wait_next ? &c->wait_next->wait_prev : &c->server->waiting_end) = c->wait_prev;
	c->wait_prev = NULL;
}

void http_conn_waits(struct http_conn *c, bool on, bool anew)
{
	if (on && !anew && c->wait_prev)
		return;
	stop_waiting(c);
	if (!on)
		return;
	c->waits_ms = loop_now_ms(c->server->loop);
	c->wait_next = NULL;
	c->wait_prev = c->server->waiting_end;
	*c->wait_prev = c;
	c->server->waiting_end = &c->wait_next;
}

bool http_server_shed(struct http_server *sv, uint64_t ms)
{
	struct http_conn *c = sv->waiting;
	struct err why;

	if (!c || loop_now_ms(sv->loop) - c->waits_ms < ms)
		return false;
	err_set(&why, ERR_EXHAUSTED, 0, "others need the connection");
	c->ops->kill(c, &why);
	return true;
}

void http_conn_leave(struct http_conn *c)
{
	stop_waiting(c);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->server->n_conns--;
	c->server = NULL;
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
