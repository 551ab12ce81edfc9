/* rpc_fault.c - see rpc_fault.h. */
#include "agent/rpc/rpc_fault.h"

#include <stdarg.h>

#include "agent/access.h"
#include "agent/agent.h"

enum { USERNAME_TEXT_MAX = 512 };

int rpc_fault_set(struct rpc_fault *f, enum connect_code code, const char *fmt, ...)
{
	va_list ap;

	f->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(f->why, sizeof(f->why), fmt, ap);
	va_end(ap);
	return -1;
}

int rpc_fault_from(struct rpc_fault *f, const struct err *err)
{
	return rpc_fault_set(f, connect_code_of(err->code), "%s", err->msg);
}

bool rpc_user(const struct agent *a, const struct http1_head *h, struct account *ret_who,
	      struct rpc_fault *ret)
{
	AUTO(buf_done) struct buf name = BUF_MAX(USERNAME_TEXT_MAX);
	struct err err;

	if (access_user(h, &name, &err) < 0)
		rpc_fault_set(ret, CONNECT_UNAUTHENTICATED, "%s", err.msg);
	else if (agent_account(a, buf_view(&name), ret_who, &err) == 0)
		return true;
	else if (name.len > 0)
		rpc_fault_set(ret, CONNECT_UNAUTHENTICATED, "invalid username: '%.*s'",
			      (int)name.len, (const char *)name.ptr);
	else
		rpc_fault_set(ret, CONNECT_UNAUTHENTICATED, "invalid default user: '%s'",
			      a->session.default_user);
	return false;
}
