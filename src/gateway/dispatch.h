/* dispatch.h - which plane a request is for. */
#pragma once

#include "node/protocol.h"
#include "wire/http1_head.h"

/* What a request is for. */
enum plane {
	PLANE_API,
	PLANE_SANDBOX, /* id and port below */
	PLANE_SIGNED,  /* /files with a signature, no sandbox named; with a domain, by address only
			*/
	PLANE_BAD,     /* answered with 400 and `message`, as text/plain */
};
struct dispatch {
	enum plane plane;
	char id[NODE_ID_MAX + 1];
	uint16_t port;
	bool named;          /* by its host name, not by headers */
	const char *message; /* a literal */
	/* Of the sandbox whose signature was seen: it resumes it, and goes nowhere else */
	char wake_token[NODE_ID_MAX + 1];
};

/* By headers or by host name; `domain` is empty when none is configured. */
void dispatch_find(const struct http1_head *head, const char *domain, struct dispatch *ret);
