/* conn.c - in its server's lists: of all, and of those that wait for their client. */
#include "http/conn.h"

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

void http_conn_leave(struct http_conn *c)
{
	stop_waiting(c);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->server->n_conns--;
	c->server = NULL;
}
