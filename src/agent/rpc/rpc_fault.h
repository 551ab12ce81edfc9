/* rpc_fault.h - why a Connect call fails, before it is said. */
#pragma once

#include "agent/accounts.h"
#include "wire/connect.h"
#include "wire/http1_head.h"

enum { RPC_WHY_MAX = 1280 }; /* the rest is cut */

struct rpc_fault {
	enum connect_code code;
	char why[RPC_WHY_MAX];
};

/* Both return -1. */
int rpc_fault_set(struct rpc_fault *f, enum connect_code code, const char *fmt, ...) PRINTF(3, 4);
int rpc_fault_from(struct rpc_fault *f, const struct err *err);

struct agent;
/* The user named in the head. False: *ret says why not. */
bool rpc_user(const struct agent *a, const struct http1_head *h, struct account *ret_who,
	      struct rpc_fault *ret);
