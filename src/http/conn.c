/* conn.c - in its server's lists: of all, and of those that wait for their client. */
#include "http/conn.h"

#include "base/list.h"

void http_conn_join(struct http_conn *c, const struct http_conn_ops *ops, struct http_server *sv)
{
	*c = (struct http_conn){ .ops = ops, .server = sv };
	list_add(&sv->conns, c);
	sv->n_conns++;
}

bool http_conn_says_hsts(const struct http_conn *c, const struct http_response *r)
{
	for (size_t i = 0; i < r->n_fields; i++)
		if (bytes_eq_nocase(r->fields[i].name, BYTES_LIT("strict-transport-security")))
			return false;
	return c->peer.secure;
}

static void stop_waiting(struct http_conn *c)
{
	queue_remove_by(&c->server->waiting, c, wait_next, wait_prev);
}

void http_conn_waits(struct http_conn *c, bool on, bool anew)
{
	if (on && !anew && c->wait_prev)
		return;
	stop_waiting(c);
	if (!on)
		return;
	c->waits_ms = loop_now_ms(c->server->loop);
	queue_add_by(&c->server->waiting, c, wait_next, wait_prev);
}

void http_conn_leave(struct http_conn *c)
{
	stop_waiting(c);
	list_remove(c);
	c->server->n_conns--;
	c->server = NULL;
}
