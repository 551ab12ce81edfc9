/* slot.c - one namespace, one tap, one ruleset. */
#include "warden/slot.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "jail/oneshot.h"
#include "warden/protocol.h"
#include "warden/step.h"

#define TAP_NAME "tap0"

static const uint8_t host_mac[6] = { 0x02, 0x48, 0x43, 0x00, 0x00, 0x01 };
static const uint8_t guest_mac[6] = { 0x02, 0x48, 0x43, 0x00, 0x00, 0x02 }; /* WARDEN_GUEST_MAC */

/* Only conversations begun from outside the guest go on; nothing the guest begins is heard, and
 * nothing is ever forwarded. */
static const char ruleset[] =
	"table inet cell {\n"
	"  chain input { type filter hook input priority 0; policy drop;\n"
	"    iifname \"" TAP_NAME "\" ip saddr " WARDEN_GUEST_ADDR " ct state established accept\n"
	"  }\n"
	"  chain forward { type filter hook forward priority 0; policy drop; }\n"
	"  chain output { type filter hook output priority 0; policy drop;\n"
	"    oifname \"" TAP_NAME "\" ip daddr " WARDEN_GUEST_ADDR " tcp dport 1-65535 accept\n"
	"  }\n"
	"}\n";

static int open_tap(struct err *err)
{
	AUTO(auto_close) int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	struct ifreq req = { .ifr_name = TAP_NAME,
			     .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };

	if (fd < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "open /dev/net/tun");
	if (ioctl(fd, TUNSETIFF, &req) < 0)
		return err_set(err, ERR_INTERNAL, errno, "make the tap");
	return take_fd(&fd);
}

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	inet_pton(AF_INET, text, &a.sin_addr);
	return a;
}

static int set_address(int sock, unsigned long request, const char *text, struct err *err)
{
	struct ifreq req = { .ifr_name = TAP_NAME };
	struct sockaddr_in a = address(text);

	memcpy(&req.ifr_addr, &a, sizeof(a));
	if (ioctl(sock, request, &req) < 0)
		return err_set(err, ERR_INTERNAL, errno, "set the tap's address %s", text);
	return 0;
}

/* A guest keeps our address in its neighbour table across a snapshot: it must fit every slot. */
static int set_mac(int sock, struct err *err)
{
	struct ifreq req = { .ifr_name = TAP_NAME };

	req.ifr_hwaddr.sa_family = ARPHRD_ETHER;
	memcpy(req.ifr_hwaddr.sa_data, host_mac, sizeof(host_mac));
	if (ioctl(sock, SIOCSIFHWADDR, &req) < 0)
		return err_set(err, ERR_INTERNAL, errno, "set the tap's hardware address");
	return 0;
}

static int bring_up(int sock, struct err *err)
{
	struct ifreq req = { .ifr_name = TAP_NAME, .ifr_flags = IFF_UP | IFF_RUNNING };

	if (ioctl(sock, SIOCSIFFLAGS, &req) < 0)
		return err_set(err, ERR_INTERNAL, errno, "bring the tap up");
	return 0;
}

/* A fixed neighbour: no ARP exchange before the first byte, and none that a guest could spoof. */
static int fix_neighbour(int sock, struct err *err)
{
	struct arpreq req = { .arp_flags = ATF_PERM | ATF_COM, .arp_dev = TAP_NAME };
	struct sockaddr_in a = address(WARDEN_GUEST_ADDR);

	memcpy(&req.arp_pa, &a, sizeof(a));
	req.arp_ha.sa_family = ARPHRD_ETHER;
	memcpy(req.arp_ha.sa_data, guest_mac, sizeof(guest_mac));
	if (ioctl(sock, SIOCSARP, &req) < 0)
		return err_set(err, ERR_INTERNAL, errno, "fix the guest's hardware address");
	return 0;
}

static int configure(struct err *err)
{
	AUTO(auto_close) int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return err_set(err, ERR_INTERNAL, errno, "make a socket");
	if (set_mac(sock, err) < 0 || set_address(sock, SIOCSIFADDR, WARDEN_HOST_ADDR, err) < 0 ||
	    set_address(sock, SIOCSIFNETMASK, "255.255.255.252", err) < 0 ||
	    bring_up(sock, err) < 0)
		return -1;
	return fix_neighbour(sock, err);
}

int slot_make(const char *nft, struct slot *ret, struct err *err)
{
	const char *const argv[] = { nft, "-f", "-", NULL };
	const struct oneshot load = { .argv = argv,
				      .input = BYTES_LIT(ruleset),
				      .capabilities = 1ull << CAP_NET_ADMIN };
	AUTO(auto_close) int tap = -1;

	step("slot.namespace");
	if (unshare(CLONE_NEWNET) < 0)
		return err_set(err, ERR_DENIED, errno, "make a network namespace");
	step("slot.rules");
	if (oneshot_run(&load, err) < 0)
		return err_wrap(err, "load the slot's rules");
	step("slot.tap");
	tap = open_tap(err);
	if (tap < 0 || configure(err) < 0)
		return -1;
	ret->netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (ret->netns < 0)
		return err_set(err, ERR_INTERNAL, errno, "open the network namespace");
	ret->tap = take_fd(&tap);
	return 0;
}

int slot_sockets(int netns, int *ret, size_t n, struct err *err)
{
	if (setns(netns, CLONE_NEWNET) < 0)
		return err_set(err, ERR_INTERNAL, errno, "enter the sandbox's network");
	for (size_t i = 0; i < n; i++) {
		ret[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (ret[i] < 0)
			return err_set(err, ERR_EXHAUSTED, errno, "make a socket");
	}
	return 0;
}
