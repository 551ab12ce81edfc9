/* host_addresses.c - see host_addresses.h. Read once, before the process confines itself. */
#include "egress/host_addresses.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "base/log.h"

int host_addresses_read(struct policy_ground *g, struct err *err)
{
	struct ifaddrs *all = NULL;
	struct sockaddr_in at;

	if (getifaddrs(&all) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "the addresses of this host");
	for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
		if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET)
			continue;
		memcpy(&at, one->ifa_addr, sizeof(at));
		if (ip4_kind(ntohl(at.sin_addr.s_addr)) != IP4_PUBLIC) /* refused as such */
			continue;
		if (g->n_host == POLICY_HOST_MAX) {
			log_warn("more than %d public addresses of this host: the rest is refused "
				 "by "
				 "the kernel's rules alone",
				 POLICY_HOST_MAX);
			break;
		}
		g->host[g->n_host++] = ntohl(at.sin_addr.s_addr);
	}
	freeifaddrs(all);
	return 0;
}

void host_addresses_proxy(struct policy_ground *g, const struct addr *proxy)
{
	struct sockaddr_in at;

	if (proxy->at.ss_family != AF_INET) /* guests have IPv4 alone */
		return;
	memcpy(&at, &proxy->at, sizeof(at));
	g->proxy = ntohl(at.sin_addr.s_addr);
}
