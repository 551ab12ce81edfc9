/* metrics_door.c - see metrics_door.h. */
#include "gateway/metrics_door.h"

#include <errno.h>

#include "base/log.h"
#include "gateway/api/answer.h"
#include "gateway/api/api.h"

static void on_request(struct http_server *http, struct http_request *rq)
{
	const struct http1_head *head = http_request_head(rq);
	struct gateway *g = CONTAINER_OF(http, struct metrics_door, http)->g;

	figures_begin(rq, CLASS_METRICS);
	if (bytes_eq(head->target, BYTES_LIT("/metrics")))
		admin_request(g, rq);
	else
		api_refuse(rq, 404, "only GET /metrics is here", NULL);
}

static void on_over(struct http_server *http, struct http_request *rq, unsigned int status)
{
	figures_over(&CONTAINER_OF(http, struct metrics_door, http)->g->figures, rq, status);
}

static void on_accept(struct listener *ln, struct stream *s, const struct addr *peer)
{
	struct metrics_door *d = CONTAINER_OF(ln, struct metrics_door, listener);
	struct err err;

	if (http_server_add(&d->http, s, peer, &err) < 0)
		log_warn("a connection for metrics: %s", err.msg);
}

static void on_surplus(struct listener *ln, struct stream *s, const struct addr *peer)
{
	(void)ln, (void)peer;
	stream_abort(s);
}

static int make_socket(const char *address, struct err *err)
{
	AUTO(auto_close) int fd = -1;
	const int on = 1;
	struct addr at;

	if (addr_parse(bytes_str(address), &at, err) < 0)
		return -1;
	fd = socket(at.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&at.at, at.len) < 0 ||
	    listen(fd, METRICS_BACKLOG) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "listen on %s", address);
	return take_fd(&fd);
}

int metrics_door_open(struct metrics_door *d, struct gateway *g, const char *address,
		      struct err *err)
{
	static const struct http_server_ops ops = { on_request, on_over };
	static const struct listener_ops listener_ops = { .on_accept = on_accept,
							  .on_surplus = on_surplus };
	int fd;

	if (!address[0])
		return 0;
	fd = make_socket(address, err);
	if (fd < 0 || listener_open_fd(&d->listener, g->loop, &listener_ops, fd,
				       METRICS_CONNECTIONS_MAX, err) < 0)
		return err_wrap(err, "metrics_listen");
	d->g = g;
	http_server_init(&d->http, g->loop, &ops, &HTTP_LIMITS);
	log_info("metrics at http://%s/metrics", address);
	return 0;
}

void metrics_door_close(struct metrics_door *d)
{
	if (!d->g)
		return;
	listener_close(&d->listener);
	http_server_done(&d->http);
	*d = (struct metrics_door){ 0 };
}
