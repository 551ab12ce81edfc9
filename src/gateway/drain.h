/* drain.h - how a gateway goes, so that another one can take its place without a request failing.
 *
 *	ACCEPTS ---- SIGTERM ----> DRAINS ---- time is over ----> CUT ----> OVER
 *	                             |                             ^
 *	                             +---- nobody is left ---------|------> OVER
 *	any     ---- a second one, or SIGINT ----------------------+------> OVER
 *
 * While it drains it accepts nobody; requests and streams go on. For how long depends on whether
 * another gateway accepts meanwhile (peers.h): drain_seconds if one does. Without one, whoever
 * connects is refused, or waits for the next gateway to start, so it is a matter of seconds.
 */
#pragma once

#include "gateway/api/admin_door.h"
#include "gateway/gateway.h"
#include "gateway/peers.h"
#include "net/listen.h"
#include "net/supervisor.h"

enum {
	DRAIN_DOORS_MAX = 16,
	DRAIN_SECONDS_MAX = 600,
	DRAIN_ALONE_MS = 5000,    /* no other gateway accepts, for so long */
	DRAIN_LOOK_MS = 100,      /* how often to see who is left */
	DRAIN_LAST_MS = 2000,     /* for what clients were told at the end to leave */
	DRAIN_SAY_MS = 10 * 1000, /* how often it is logged */
};

enum drain_state { DRAIN_ACCEPTS, DRAIN_DRAINS, DRAIN_CUT, DRAIN_OVER };

struct drain { /* embedded by its owner */
	struct gateway *g;
	struct http_server *http;
	struct admin_door *admin;
	struct supervisor *supervisor;
	struct peers *peers;
	struct listener *doors[DRAIN_DOORS_MAX];
	size_t n_doors;
	enum drain_state state;
	uint64_t max_ms; /* of draining, while another one accepts */
	uint64_t since_ms, alone_ms, said_ms;
	struct timer look;
};

/* All that is named above is set and open, and outlives it. Tells its peers and the service manager
 * that this gateway accepts. */
void drain_open(struct drain *d);
void drain_add(struct drain *d, struct listener *door); /* of clients, before that */
void drain_close(struct drain *d);

/* One that comes when the others have been cut: it is answered in the same way. False: go on. */
bool drain_refuses(const struct drain *d, struct http_request *rq, bool is_api);

/* When it is over, the loop stops. A second time it is over at once. */
void drain_begin(struct drain *d);
