/* relay_refuse.h - what a client is told when there is no way to a port of a sandbox. */
#pragma once

#include "gateway/dispatch.h"
#include "http/server.h"

#define RELAY_TRAFFIC_TOKEN "e2b-traffic-access-token" /* a header */

struct relay;

enum relay_refusal {
	REFUSE_NOT_FOUND,
	REFUSE_PORT,   /* nobody listens */
	REFUSE_BROKEN, /* the guest does not speak HTTP */
	REFUSE_TLS,    /* the same at a port that should speak TLS */
	REFUSE_SILENT, /* the guest closed without an answer */
	REFUSE_LATE,   /* the agent took its time, and more */
	REFUSE_NODE,   /* node cannot be asked */
	REFUSE_HEAD,   /* the request's head cannot be passed on */
	REFUSE_BODY,
	REFUSE_METHOD,
	REFUSE_TOKEN, /* it is paused, and only its token resumes it */
	REFUSE_NO_TRAFFIC_TOKEN,
	REFUSE_TRAFFIC_TOKEN, /* a wrong one */
	REFUSE_PASS,          /* of an address or a cookie: wrong, too old, of another port */
	REFUSE_ORIGIN,        /* another site's page asks with a visitor's cookie */
	REFUSE_LED_DEVTOOLS,  /* another site's link leads into what does as its address says */
	REFUSE_LED_NOVNC,
	REFUSE_BUSY,      /* it is between two states */
	REFUSE_FULL,      /* no room to resume it */
	REFUSE_ELSEWHERE, /* its memory fits another QEMU or processor only */
	REFUSE_BASE,      /* the template it differs from is damaged or gone */
	REFUSE_CROWD,     /* the gateway has no connection left for it */
	REFUSE_REPLACED,  /* the gateway ends; another one is there, or will be */
	REFUSE_ADDRESS,   /* its client's address has too many */
};
void relay_refuse(struct http_request *rq, const struct dispatch *to, bool is_agent,
		  enum relay_refusal why);

/* `limit` requests to its ports are under way. */
void relay_refuse_crowd(struct http_request *rq, const struct dispatch *to, size_t limit);

/* gRPC needs HTTP/2 all the way, and what is relayed goes on as HTTP/1.1. Said as gRPC says it. */
bool relay_is_grpc(const struct http1_head *h);
void relay_refuse_grpc(struct http_request *rq);

void relay_refuse_text(struct http_request *rq, unsigned int status, const char *message);

/* What the gateway answers itself for the agent: paths that are the host's alone, and browsers
 * that ask whether they may ask. True: answered. */
bool relay_answers_for_agent(struct http_request *rq);
