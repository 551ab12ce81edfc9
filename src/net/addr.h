/* addr.h - where to listen or connect: an IP address with a port, or the path of a socket. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/bytes.h"

enum { ADDR_TEXT_MAX = 128, ADDR_KEY = 16 };

struct addr {
	socklen_t len;
	struct sockaddr_storage at;
};

/* "127.0.0.1:80", "[::1]:80", "unix:/run/x.sock". Numbers only, no names. */
int addr_parse(struct bytes text, struct addr *ret, struct err *err) NODISCARD;
int addr_ip(const char *ip, uint16_t port, struct addr *ret, struct err *err) NODISCARD;
int addr_unix(const char *path, struct addr *ret, struct err *err) NODISCARD;

/* The form that addr_parse() reads; "unix" for a socket without a path. */
void addr_text(const struct addr *a, char ret[static ADDR_TEXT_MAX]);

/* The address alone, in 16 octets; IPv4 in its IPv6 clothes, ::ffff:a.b.c.d. False: it has none. */
bool addr_octets(const struct addr *a, uint8_t ret[static ADDR_KEY]);
void addr_of_octets(const uint8_t ip[static ADDR_KEY], uint16_t port, struct addr *ret);

uint16_t addr_port(const struct addr *a); /* 0 for anything but IP */

/* What counts as one client: an IPv4 address, in its IPv6 clothes, or a /64; all zero for anybody
 * else, and for NULL. */
void addr_key(const struct addr *a, uint8_t ret[static ADDR_KEY]);
/* For a table that clients fill: nobody can choose keys that meet in it. *seed is made if it is 0.
 */
uint64_t addr_key_hash(const uint8_t key[static ADDR_KEY], uint64_t *seed);
bool addr_is_local(const struct addr *a); /* of this host: loopback, or no IP address at all */
