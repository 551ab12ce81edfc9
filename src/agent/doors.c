/* doors.c - sockets bound to a device: who comes from inside comes over lo, whatever address it
 * asked for.
 */
#include "agent/doors.h"

#include <errno.h>
#include <net/if.h>
#include <sys/socket.h>

#include "base/log.h"

static void on_host(struct listener *ln, struct stream *s, const struct addr *peer)
{
	struct doors *d = CONTAINER_OF(ln, struct doors, host);

	(void)peer;
	d->on_accept(d, s);
}

static void on_inside(struct listener *ln, struct stream *s, const struct addr *peer)
{
	struct doors *d = CONTAINER_OF(ln, struct doors, inside);

	(void)peer;
	d->on_accept(d, s);
}

static const struct listener_ops host_ops = { on_host }, inside_ops = { on_inside };

/* A socket that listens on one device. ERR_NOT_FOUND: there is no such device. */
static int listen_on(const char *device, const struct addr *at, struct err *err)
{
	AUTO(auto_close) int fd = socket(at->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1;

	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "make a socket");
	if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, (socklen_t)strlen(device)) < 0)
		return err_set(err, errno == ENODEV ? ERR_NOT_FOUND : ERR_INTERNAL, errno,
			       "bind to the device %s", device);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&at->at, at->len) < 0 ||
	    listen(fd, LISTEN_BACKLOG) < 0)
		return err_set(err, ERR_INTERNAL, errno, "listen on the device %s", device);
	return take_fd(&fd);
}

static int open_one(struct doors *d, struct loop *l, const char *ip, uint16_t port, struct err *err)
{
	struct addr at;

	if (addr_ip(ip, port, &at, err) < 0)
		return -1;
	return listener_open(&d->host, l, &host_ops, &at, 0, DOORS_HOST_MAX, err);
}

struct door {
	const struct listener_ops *ops;
	const char *device, *ip;
	size_t limit;
};

static int open_on(struct listener *ln, struct loop *l, const struct door *d, uint16_t port,
		   struct err *err)
{
	struct addr at;
	int fd;

	if (addr_ip(d->ip, port, &at, err) < 0)
		return -1;
	fd = listen_on(d->device, &at, err);
	return fd < 0 ? -1 : listener_open_fd(ln, l, d->ops, fd, d->limit, err);
}

/* The host speaks IPv4 alone; programs inside may use either, if the kernel has both. */
static int open_two(struct doors *d, struct loop *l, uint16_t port, struct err *err)
{
	static const struct door host = { &host_ops, DOORS_HOST_DEVICE, "0.0.0.0", DOORS_HOST_MAX };
	static const struct door both = { &inside_ops, "lo", "::", DOORS_INSIDE_MAX };
	static const struct door four = { &inside_ops, "lo", "0.0.0.0", DOORS_INSIDE_MAX };

	if (open_on(&d->host, l, &host, port, err) < 0)
		return -1;
	if (open_on(&d->inside, l, &both, port, err) == 0)
		return 0;
	return open_on(&d->inside, l, &four, port, err);
}

int doors_open(struct doors *d, struct loop *l, const char *ip, uint16_t port, struct err *err)
{
	if (ip)
		return open_one(d, l, ip, port, err);
	if (open_two(d, l, port, err) == 0)
		return 0;
	log_warn("one door for all: %s", err->msg);
	doors_close(d);
	return open_one(d, l, "::", port, err) == 0 ? 0 : open_one(d, l, "0.0.0.0", port, err);
}

void doors_close(struct doors *d)
{
	listener_close(&d->host);
	listener_close(&d->inside);
}

uint16_t doors_port(const struct doors *d)
{
	struct addr at;

	listener_addr(&d->host, &at);
	return addr_port(&at);
}
