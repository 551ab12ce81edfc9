/* guest_network.c - the same addresses in every sandbox: a snapshot never has to be re-addressed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "agent/machine/guest.h"
#include "base/err.h"
#include "base/log.h"

static const char own_address[] = "169.254.77.2";
static const char netmask[] = "255.255.255.252";
static const char gateway[] = "169.254.77.1";

static struct sockaddr ipv4(const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr any;

	static_assert(sizeof(in) == sizeof(any), "as the kernel has it");
	if (inet_pton(AF_INET, text, &in.sin_addr) != 1)
		abort();
	memcpy(&any, &in, sizeof(any));
	return any;
}

static struct ifreq request(const char *name)
{
	struct ifreq rq = { 0 };

	snprintf(rq.ifr_name, sizeof(rq.ifr_name), "%s", name);
	return rq;
}

static int set_address(int sock, const char *name, struct err *err)
{
	struct ifreq rq = request(name);

	rq.ifr_addr = ipv4(own_address);
	if (ioctl(sock, SIOCSIFADDR, &rq) < 0)
		return err_set(err, ERR_INTERNAL, errno, "%s: set the address", name);
	rq.ifr_netmask = ipv4(netmask);
	if (ioctl(sock, SIOCSIFNETMASK, &rq) < 0)
		return err_set(err, ERR_INTERNAL, errno, "%s: set the netmask", name);
	return 0;
}

static int bring_up(int sock, const char *name, struct err *err)
{
	struct ifreq rq = request(name);

	if (ioctl(sock, SIOCGIFFLAGS, &rq) < 0)
		return err_set(err, ERR_INTERNAL, errno, "%s", name);
	rq.ifr_flags |= IFF_UP;
	if (ioctl(sock, SIOCSIFFLAGS, &rq) < 0)
		return err_set(err, ERR_INTERNAL, errno, "%s: bring up", name);
	return 0;
}

static int add_route(int sock, struct err *err)
{
	struct rtentry route = {
		.rt_dst = ipv4("0.0.0.0"),
		.rt_genmask = ipv4("0.0.0.0"),
		.rt_gateway = ipv4(gateway),
		.rt_flags = RTF_UP | RTF_GATEWAY,
	};

	if (ioctl(sock, SIOCADDRT, &route) < 0 && errno != EEXIST)
		return err_set(err, ERR_INTERNAL, errno, "route to %s", gateway);
	return 0;
}

void guest_network(void)
{
	AUTO(auto_close) int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct err err;

	if (sock < 0) {
		log_error("no network: %s", strerror(errno));
		return;
	}
	if (bring_up(sock, "lo", &err) < 0)
		log_error("%s", err.msg);
	if (set_address(sock, "eth0", &err) < 0 || bring_up(sock, "eth0", &err) < 0 ||
	    add_route(sock, &err) < 0)
		log_error("%s", err.msg);
}
