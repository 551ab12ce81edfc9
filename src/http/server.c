/* server.c - the connections of one server. */
#include "http/server.h"

#include <assert.h>

#include "base/list.h"
#include "http/conn.h"
#include "http/h1_conn.h"
#include "http/request_ops.h"

enum { SHED_LOOK_MAX = 64 }; /* of those that wait: how many are looked at */

void http_server_init(struct http_server *sv, struct loop *l, const struct http_server_ops *ops,
		      const struct http_limits *limits)
{
	*sv = (struct http_server){ .ops = ops, .loop = l, .limits = *limits };
	queue_init(&sv->waiting);
}

int http_server_add(struct http_server *sv, struct stream *s, const struct addr *peer,
		    struct err *err)
{
	return h1_conn_open(sv, s, peer ? &(struct net_peer){ .at = *peer } : NULL, err);
}

int http_server_add_as(struct http_server *sv, struct stream *s, const struct net_peer *peer,
		       enum http_version version, struct err *err)
{
	assert(version == HTTP_1_1 || sv->open_h2);
	if (version == HTTP_2)
		return sv->open_h2(sv, s, peer, (struct bytes){ 0 }, err);
	return h1_conn_open(sv, s, peer, err);
}

void http_server_drain(struct http_server *sv)
{
	sv->draining = true;
	for (struct http_conn *c = sv->conns, *next; c; c = next) {
		next = c->next; /* none but c leaves */
		c->ops->drain(c);
	}
}

static struct http_conn *who_gives_way(const struct http_server *sv, uint64_t ms)
{
	struct http_conn *c = sv->waiting.first;

	for (size_t n = 0; c && n < SHED_LOOK_MAX; n++, c = c->wait_next)
		if (c->idle || loop_now_ms(sv->loop) - c->waits_ms >= ms)
			return c;
	return NULL;
}

bool http_server_shed(struct http_server *sv, uint64_t ms)
{
	struct http_conn *c = who_gives_way(sv, ms);
	struct err why;

	if (!c)
		return false;
	err_set(&why, ERR_EXHAUSTED, 0, "others need the connection");
	c->ops->kill(c, &why);
	return true;
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
