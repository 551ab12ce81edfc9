/* slot.c - one namespace, one tap, one ruleset. */
#include "warden/slot.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "jail/oneshot.h"
#include "warden/protocol.h"
#include "warden/step.h"

#define TAP_NAME "tap0"

enum { DOOR_BACKLOG = 128, DOOR_TRIES = 50, DOOR_WAIT_MS = 2 };

static const uint8_t host_mac[6] = { 0x02, 0x48, 0x43, 0x00, 0x00, 0x01 };
static const uint8_t guest_mac[6] = { 0x02, 0x48, 0x43, 0x00, 0x00, 0x02 }; /* WARDEN_GUEST_MAC */

/* Conversations begun from outside the guest go on. Whatever it begins itself over TCP, to any
 * address and port, ends at the TCP door, and every question for a name at the UDP door, so many a
 * second; the rest, IPv6 too, is not heard. Nothing is ever forwarded. */
#define TEXT(number)    #number
#define TEXT_OF(number) TEXT(number)
#define TCP_DOOR        TEXT_OF(WARDEN_TCP_DOOR)
#define UDP_DOOR        TEXT_OF(WARDEN_UDP_DOOR)
#define FROM_GUEST      "iifname \"" TAP_NAME "\" ip saddr " WARDEN_GUEST_ADDR
#define TO_GUEST        "oifname \"" TAP_NAME "\" ip daddr " WARDEN_GUEST_ADDR
#define AT_MOST         " ct state new limit rate 200/second burst 400 packets"

static const char ruleset[] =
	"table inet cell {\n"
	"  chain doors { type nat hook prerouting priority -100; policy accept;\n"
	"    " FROM_GUEST " meta l4proto tcp redirect to :" TCP_DOOR "\n"
	"    " FROM_GUEST " udp dport 53 redirect to :" UDP_DOOR "\n"
	"  }\n"
	"  chain input { type filter hook input priority 0; policy drop;\n"
	"    " FROM_GUEST " ct state established accept\n"
	"    " FROM_GUEST " tcp dport " TCP_DOOR AT_MOST " accept\n"
	"    " FROM_GUEST " udp dport " UDP_DOOR AT_MOST " accept\n"
	"  }\n"
	"  chain forward { type filter hook forward priority 0; policy drop; }\n"
	"  chain output { type filter hook output priority 0; policy drop;\n"
	"    " TO_GUEST " tcp dport 1-65535 accept\n"
	"    " TO_GUEST " udp sport " UDP_DOOR " accept\n"
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

static struct ifreq tap_address(const char *text)
{
	struct ifreq req = { .ifr_name = TAP_NAME };
	struct sockaddr_in a = address(text);

	memcpy(&req.ifr_addr, &a, sizeof(a));
	return req;
}

/* A guest keeps our hardware address in its neighbour table across a snapshot: it must fit every
 * slot. Its own is fixed: no ARP exchange before the first byte, and none that it could spoof. */
static int configure(struct err *err)
{
	AUTO(auto_close) int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq mac = { .ifr_name = TAP_NAME, .ifr_hwaddr.sa_family = ARPHRD_ETHER };
	struct ifreq addr = tap_address(WARDEN_HOST_ADDR), mask = tap_address("255.255.255.252");
	struct ifreq up = { .ifr_name = TAP_NAME, .ifr_flags = IFF_UP | IFF_RUNNING };
	struct sockaddr_in guest = address(WARDEN_GUEST_ADDR);
	struct arpreq arp = { .arp_flags = ATF_PERM | ATF_COM, .arp_dev = TAP_NAME };

	memcpy(mac.ifr_hwaddr.sa_data, host_mac, sizeof(host_mac));
	memcpy(&arp.arp_pa, &guest, sizeof(guest));
	arp.arp_ha.sa_family = ARPHRD_ETHER;
	memcpy(arp.arp_ha.sa_data, guest_mac, sizeof(guest_mac));
	if (sock < 0 || ioctl(sock, SIOCSIFHWADDR, &mac) < 0 ||
	    ioctl(sock, SIOCSIFADDR, &addr) < 0 || ioctl(sock, SIOCSIFNETMASK, &mask) < 0 ||
	    ioctl(sock, SIOCSIFFLAGS, &up) < 0 || ioctl(sock, SIOCSARP, &arp) < 0)
		return err_set(err, ERR_INTERNAL, errno, "configure the tap");
	return 0;
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

/* The job that made the last ones may still be ending, with a copy of each. */
static int bind_door(int fd, const struct sockaddr_in *at)
{
	int rc = bind(fd, (const struct sockaddr *)at, sizeof(*at));

	for (int i = 0; rc < 0 && errno == EADDRINUSE && i < DOOR_TRIES; i++) {
		(void)poll(NULL, 0, DOOR_WAIT_MS);
		rc = bind(fd, (const struct sockaddr *)at, sizeof(*at));
	}
	return rc;
}

int slot_doors(int netns, int *ret, struct err *err)
{
	static const int types[SLOT_DOORS] = { SOCK_STREAM, SOCK_DGRAM };
	static const uint16_t ports[SLOT_DOORS] = { WARDEN_TCP_DOOR, WARDEN_UDP_DOOR };
	struct sockaddr_in at = address(WARDEN_HOST_ADDR);
	const int on = 1;

	if (setns(netns, CLONE_NEWNET) < 0)
		return err_set(err, ERR_INTERNAL, errno, "enter the sandbox's network");
	for (size_t i = 0; i < SLOT_DOORS; i++) {
		at.sin_port = htons(ports[i]);
		ret[i] = socket(AF_INET, types[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (ret[i] < 0 ||
		    setsockopt(ret[i], SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		    bind_door(ret[i], &at) < 0 ||
		    (types[i] == SOCK_STREAM && listen(ret[i], DOOR_BACKLOG) < 0))
			return err_set(err, ERR_UNAVAILABLE, errno, "make door %u", ports[i]);
	}
	return 0;
}
