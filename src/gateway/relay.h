/* relay.h - one request on its way to a port of a sandbox, and the answer on its way back.
 *
 *	SOCKET --> DIAL --> ASKED --> ANSWER --> over
 *	   ^        |         |
 *	   |        v         +-----> SWITCHED --> over
 *	   +------ PAUSE
 *
 * relay.c has the way to the guest and every end, relay_stream.c what flows, relay_head.c which
 * fields are passed on, relay_refuse.c what a client is told when there is no way.
 */
#pragma once

#include "gateway/guest_cache.h"
#include "gateway/guest_tunnel.h"
#include "net/dial.h"
#include "net/pump.h"

#define RELAY_TRAFFIC_TOKEN "e2b-traffic-access-token" /* a header */

enum {
	RELAY_TRIES = 5,      /* connections refused, before a port is called closed */
	RELAY_RETRY_MS = 100, /* after the first, twice that after the second: a second in all */
	RELAY_DIAL_MS = 10 * 1000,
	RELAY_PEER_MAX = 64,
};

enum relay_state {
	RELAY_SOCKET, /* waits for a socket */
	RELAY_DIAL,   /* connects, straight or through the agent */
	RELAY_PAUSE,  /* refused; will try again */
	RELAY_ASKED,  /* the request leaves, nothing was answered */
	RELAY_ANSWER, /* the head of the answer was passed on */
	RELAY_SWITCHED,
};

struct relay {
	struct gateway *g;
	struct dispatch to;
	enum relay_state state;
	struct http_handler handler; /* of rq */
	struct http_request *rq;     /* NULL: switched */
	struct guest_user user;
	struct dial dial;
	struct guest_tunnel tunnel;
	bool by_tunnel; /* refused from outside: this try goes through the agent */
	struct timer retry;
	unsigned int tries;
	struct http_client *client;
	bool pooled; /* the client had other exchanges before */
	struct http_reply reply;
	struct http_exchange *x; /* NULL: not asked yet, or over */
	bool deaf;               /* the guest takes no more of the request */
	struct pump pump;        /* SWITCHED */
};

/* relay.c */
bool relay_is_agent(const struct relay *r); /* the port is that of the agent */
void relay_free(struct relay *r);           /* drops all but rq */

/* The exchange with the guest failed. Answers, resets or tries again; r may be gone after it. */
void relay_failed(struct relay *r, const struct err *err);

/* relay_stream.c: send the request over r->client and let both bodies flow. */
int relay_ask(struct relay *r, struct err *err) NODISCARD;
extern const struct http_handler_ops relay_handler_ops;

/* relay_head.c: fields that came, without those of one connection, and a few of ours. They borrow
 * from the head and from this struct. */
struct relay_fields {
	struct http1_field at[HTTP_FIELDS_OUT_MAX];
	size_t n;
	char peer[RELAY_PEER_MAX];
	char host[INGRESS_HOST_MAX + 1];
};
struct bytes relay_host(const struct relay *r, struct relay_fields *f); /* what the guest is told */
void relay_request_fields(const struct http_request *rq, struct relay_fields *ret);
void relay_answer_fields(const struct relay *r, const struct http1_head *head,
			 struct relay_fields *ret);
/* The target as a guest expects it, in *room when it had to be written anew. */
int relay_target(const struct http1_head *head, struct buf *room, struct bytes *ret,
		 struct err *err) NODISCARD;

/* relay_refuse.c */
enum refusal {
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
	REFUSE_BUSY,          /* it is between two states */
	REFUSE_FULL,          /* no room to resume it */
	REFUSE_ELSEWHERE,     /* its memory fits another QEMU or processor only */
};
void relay_refuse(struct http_request *rq, const struct dispatch *to, bool is_agent,
		  enum refusal why);

/* `limit` requests to its ports are under way. */
void relay_refuse_crowd(struct http_request *rq, const struct dispatch *to, size_t limit);

/* Is this for a port of a private sandbox, and without its token? Node has said what it is. */
bool relay_may_enter(const struct relay *r, enum refusal *ret_why);

/* relay_page.c: a browser that was led to an address is shown a page. */
bool relay_wants_page(const struct http1_head *head);
int relay_page(const struct dispatch *to, unsigned int status, const char *title,
	       const char *message, struct buf *ret, struct err *err) NODISCARD;

void relay_refuse_text(struct http_request *rq, unsigned int status, const char *message);

/* What the gateway answers itself for the agent: paths that are the host's alone, and browsers
 * that ask whether they may ask. True: answered. */
bool relay_answers_for_agent(struct http_request *rq);
