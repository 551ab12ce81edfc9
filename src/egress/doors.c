/* doors.c - hearing whoever comes, quickly and fairly. */
/* #syscalls: accept4 setsockopt getsockopt recvfrom close */
#include "egress/doors.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/log.h"
#include "egress/front.h"
#include "egress/names.h"
#include "net/timer.h"
#include "net/watch.h"

enum { ORIGINAL_DST = 80 }; /* linux/netfilter_ipv4.h, which does not agree with netinet/in.h */

struct doors {
	struct loop *loop;
	int tcp, udp;
	struct watch tcp_ready, udp_ready;
	struct timer rest; /* runs while the sandbox has been heard enough */
	uint64_t since_ms; /* when counting `heard` began */
	unsigned int heard;
	struct sandbox_egress sandbox_egress;
};

static void listen_again(struct timer *t)
{
	struct doors *d = CONTAINER_OF(t, struct doors, rest);

	watch_set(&d->tcp_ready, WATCH_READ);
	watch_set(&d->udp_ready, WATCH_READ);
}

static void have_a_rest(struct doors *d)
{
	watch_set(&d->tcp_ready, 0);
	watch_set(&d->udp_ready, 0);
	timer_start(&d->rest, DOORS_HEARD_MS);
}

/* May one more be taken? If not, the doors stay shut until the time is over. */
static bool may_hear(struct doors *d)
{
	uint64_t now = loop_now_ms(d->loop);

	if (now - d->since_ms >= DOORS_HEARD_MS) {
		d->since_ms = now;
		d->heard = 0;
	}
	if (d->heard < d->sandbox_egress.house->limits.per_second * DOORS_HEARD_MS / 1000) {
		d->heard++;
		return true;
	}
	have_a_rest(d);
	return false;
}

static bool is_shortage(int why)
{
	return why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM;
}

/* --- connections ---------------------------------------------------------------------------- */

/* No time to linger: the sandbox sees a reset. */
static void reset(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

/* Where the guest meant to go, before the rules of its namespace turned it to our door. */
static bool destination(int fd, uint32_t *ret_ip, uint16_t *ret_port)
{
	struct sockaddr_in to;
	socklen_t len = sizeof(to);

	if (getsockopt(fd, SOL_IP, ORIGINAL_DST, &to, &len) < 0 || to.sin_family != AF_INET)
		return false;
	*ret_ip = ntohl(to.sin_addr.s_addr);
	*ret_port = ntohs(to.sin_port);
	return true;
}

static void turn_away(struct sandbox_egress *o, int fd, uint32_t ip, uint16_t port, const char *why)
{
	struct policy_verdict v = { 0 };

	snprintf(v.why, sizeof(v.why), "%s", why);
	o->counts.tcp_refused++;
	sandbox_egress_audit(
		o, &(struct audit_entry){ SANDBOX_EGRESS_TCP, AUDIT_REFUSED, "", ip, port, v.why });
	reset(fd);
}

static void receive(struct doors *d, int fd)
{
	struct sandbox_egress *o = &d->sandbox_egress;
	struct err err;
	uint32_t ip = 0;
	uint16_t port = 0;

	if (!destination(fd, &ip, &port))
		turn_away(o, fd, ip, port, "where it goes is not known");
	else if (!o->ruled)
		turn_away(o, fd, ip, port, "no rules yet");
	else if (o->n_fronts + o->n_handed >= o->house->limits.connections)
		turn_away(o, fd, ip, port, "too many connections at a time");
	else if (front_start(o, fd, ip, port, &err) < 0)
		o->counts.tcp_refused++;
}

static void on_tcp(struct watch *w, unsigned int events)
{
	struct doors *d = CONTAINER_OF(w, struct doors, tcp_ready);

	if (events & WATCH_ERROR)
		log_warn("sandbox %s: its door for connections failed", d->sandbox_egress.id);
	for (int i = 0; i < DOORS_BATCH && may_hear(d); i++) {
		int fd = accept4(d->tcp, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0)
			receive(d, fd);
		else if (is_shortage(errno)) {
			have_a_rest(d);
			return;
		} else if (errno == EAGAIN || errno == EINVAL) {
			return;
		} /* else that one connection was gone before we saw it */
	}
}

/* --- names ---------------------------------------------------------------------------------- */

static void on_udp(struct watch *w, unsigned int events)
{
	struct doors *d = CONTAINER_OF(w, struct doors, udp_ready);
	uint8_t in[DNS_QUERY_MAX + 1]; /* a longer one is cut, and still too long */

	if (events & WATCH_ERROR)
		log_warn("sandbox %s: its door for names failed", d->sandbox_egress.id);
	for (int i = 0; i < DOORS_BATCH && may_hear(d); i++) {
		struct sockaddr_in who = { 0 };
		socklen_t len = sizeof(who);
		ssize_t n = recvfrom(d->udp, in, sizeof(in), MSG_DONTWAIT, (struct sockaddr *)&who,
				     &len);

		if (n < 0)
			return;
		names_ask(&d->sandbox_egress, d->udp, (struct bytes){ in, (size_t)n }, &who);
	}
}

/* --- open and close ------------------------------------------------------------------------- */

static int option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

static int check(const struct doors *d, struct err *err)
{
	if (option(d->tcp, SO_DOMAIN) != AF_INET || option(d->tcp, SO_TYPE) != SOCK_STREAM ||
	    option(d->tcp, SO_ACCEPTCONN) != 1)
		return err_set(err, ERR_INVALID, 0, "not a socket that listens");
	if (option(d->udp, SO_DOMAIN) != AF_INET || option(d->udp, SO_TYPE) != SOCK_DGRAM)
		return err_set(err, ERR_INVALID, 0, "not a socket for datagrams");
	return 0;
}

int doors_open(struct doors **ret, const struct house *house, const int fds[static EGRESS_DOORS],
	       struct err *err)
{
	AUTO(auto_close) int tcp = fds[0];
	AUTO(auto_close) int udp = fds[1];
	AUTO(auto_free) struct doors *d = calloc(1, sizeof(*d));
	struct loop *l = house->loop;

	if (!d)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate doors");
	*d = (struct doors){ .loop = l, .tcp = tcp, .udp = udp };
	sandbox_egress_open(&d->sandbox_egress, house);
	if (check(d, err) < 0 || watch_open(&d->tcp_ready, l, tcp, WATCH_READ, on_tcp, err) < 0)
		return -1;
	if (watch_open(&d->udp_ready, l, udp, WATCH_READ, on_udp, err) < 0) {
		watch_close(&d->tcp_ready);
		return -1;
	}
	timer_init(&d->rest, l, listen_again);
	take_fd(&tcp);
	take_fd(&udp);
	*ret = TAKE(d);
	return 0;
}

static void say_counts(const struct doors *d)
{
	const struct egress_counts *c = &d->sandbox_egress.counts;

	if (c->tcp_refused + c->names_refused + c->tcp_allowed > 0)
		log_info("sandbox %s: connections: %lu allowed, %lu refused; names: %lu refused",
			 d->sandbox_egress.id, c->tcp_allowed, c->tcp_refused, c->names_refused);
}

void doors_name(struct doors *d, const char id[static EGRESS_ID_MAX + 1])
{
	say_counts(d);
	sandbox_egress_forget(&d->sandbox_egress);
	snprintf(d->sandbox_egress.id, sizeof(d->sandbox_egress.id), "%s", id);
}

int doors_rule(struct doors *d, struct bytes text, struct err *err)
{
	return sandbox_egress_rule(&d->sandbox_egress, text, err);
}

int doors_injector(struct doors *d, int fd, struct err *err)
{
	return sandbox_egress_injector(&d->sandbox_egress, fd, err);
}

struct egress_counts doors_counts(const struct doors *d)
{
	return d->sandbox_egress.counts;
}

int doors_log(const struct doors *d, struct buf *out, struct err *err)
{
	return audit_tell(&d->sandbox_egress.audit, out, err);
}

int doors_known(const struct doors *d, struct buf *out, struct err *err)
{
	return known_names_tell(&d->sandbox_egress.known, out, err);
}

void doors_close(struct doors *d)
{
	if (!d)
		return;
	say_counts(d);
	sandbox_egress_forget(&d->sandbox_egress);
	timer_stop(&d->rest);
	watch_close(&d->tcp_ready);
	watch_close(&d->udp_ready);
	close(d->tcp);
	close(d->udp);
	free(d);
}
