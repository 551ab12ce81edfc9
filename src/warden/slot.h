/* slot.h - a sandbox's place on the network: a namespace with one tap and no way out.
 *
 *	guest 169.254.77.2  <--- tap0 --->  169.254.77.1  (two doors, nothing behind)
 *
 * Every slot has the same addresses and the same MAC, so a snapshot fits any of them. The namespace
 * lives as long as a descriptor or process holds it, the tap as long as its descriptor: neither
 * has a name on the host, so neither can be left behind.
 */
#pragma once

#include "base/err.h"

enum { SLOT_DOORS = 2 };

struct slot {
	int netns;
	int tap;
};

/* In a job: make one. */
int slot_make(const char *nft, struct slot *ret, struct err *err) NODISCARD;

/* In a job: n unconnected TCP sockets inside the namespace `netns`. */
int slot_sockets(int netns, int *ret, size_t n, struct err *err) NODISCARD;

/* In a job: the sockets at which all ends that the guest begins; an earlier TCP door must be
 * closed. */
int slot_doors(int netns, int *ret, struct err *err) NODISCARD;
