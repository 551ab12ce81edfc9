/* api.h - the control plane from inside: one object per request, from its head to its answer.
 *
 *	route found -> key checked -> body read -> handler -> node or store asked -> answered
 *
 * A call ends by one of the answers below, after which it does not exist. When the client goes
 * first, what was asked of the store is still waited for, so that a key revoked by it is also
 * forgotten here.
 */
#pragma once

#include "gateway/gateway.h"
#include "gateway/api/health.h"
#include "gateway/api/key_cache.h"
#include "gateway/api/routes.h"
#include "wire/json.h"

enum {
	API_BODY_MAX = 64 * 1024,
	API_LARGE_MAX = 1024 * 1024,       /* of a route with large ones */
	API_LARGE_ALL_MAX = 16,            /* so many that are larger than others at once, */
	API_LARGE_TEAM_MAX = 4,            /* and of one team */
	API_BODIES_MAX = 64 * 1024 * 1024, /* of all calls together, in bytes */
	API_ANSWER_MAX = 16 * 1024 * 1024, /* of one answer */
	API_DEPTH_MAX = 16,                /* of a body's JSON */
	API_KEY_DIGITS = 40,               /* after e2b_ */
	API_KEY_SIZE = 4 + API_KEY_DIGITS + 1,
	API_NODE_MS = 30 * 1000,
	API_CREATE_MS = 120 * 1000, /* and of whatever else may have to wait for a VM */
	API_PAUSE_MS = 330 * 1000,  /* longer than a copier may take */
	API_WARNING_SIZE = 512,
};

struct api_call;
struct node_answer {                    /* borrowed for the call, which may take `after` apart */
	const struct node_reply *reply; /* with an error, too; NULL: node could not be asked */
	struct bytes after;             /* the text or the entries behind the reply */
	const struct err *err;
};
typedef void api_node_fn(struct api_call *c, struct node_answer *said);
typedef void api_refused_fn(struct api_call *c, const struct node_answer *said);
typedef void api_store_fn(struct api_call *c, const struct store_result *ret);
/* `ret` is NULL when there is an error. */
typedef void api_store_any_fn(struct api_call *c, const struct store_result *ret,
			      const struct err *err);

/* What a handler must remember until its answer; embedded in a struct of its own. */
struct api_job {
	void (*free)(struct api_job *j);
};

struct api {
	struct gateway *g;
	struct store *store;
	struct key_cache *keys;
	struct store_call used_call; /* telling the store that a key is in use */
	struct api_call *calls;
	size_t n_calls, body_bytes;
	struct upload *uploads; /* upload_routes.c: under way */
	size_t n_uploads;
	char upload_key[STORE_HASH_SIZE]; /* signs URLs for them; empty: not asked for yet */
	struct http_server *public;       /* for its number of connections; may be NULL */
	size_t connections_max;           /* that there may be of these */
	struct health health;
};

struct api_call {
	struct http_handler handler;
	struct http_request *rq; /* NULL: the client is gone */
	struct gateway *g;
	const struct route *route;
	route_param params[API_PARAMS_MAX];
	struct bytes query;               /* of the target; lives as long as rq */
	char domain[SANDBOX_DOMAIN_SIZE]; /* as api_domain() tells it */
	char key[API_KEY_SIZE];
	uint8_t hash[SHA256_SIZE]; /* of the key */
	uint64_t key_count;        /* key_cache_count(), when the store was asked for it */
	char key_id[STORE_ID_SIZE], family[STORE_ID_SIZE];
	struct store_limits limits; /* of the family */
	char services[STORE_SERVICES_SIZE];
	struct store_team team;         /* whose key it is */
	uint32_t retry_s;               /* for Retry-After; 0: nobody knows */
	uint32_t seconds;               /* of a refresh; of a list of snapshots how many at most */
	char warning[API_WARNING_SIZE]; /* api_warn(); empty: none */
	bool outlives; /* its client: what node answers is dealt with all the same */
	struct buf body;
	struct link_call node;
	api_node_fn *on_node;
	api_refused_fn *on_refused; /* gets answers that are errors; NULL: on_node does */
	struct store_call store;
	api_store_fn *on_store;
	void (*on_team)(struct api_call *c); /* the team that the path names is c->team now */
	api_store_any_fn *on_store_any;
	struct api_job *job; /* ends with the call; NULL: none */
	struct buf out;      /* an answer that leaves in pieces */
	size_t out_sent;
	struct api_call *next, **prev;
};

int api_open(struct gateway *g, struct store *s, struct err *err) NODISCARD; /* sets g->api */
void api_close(struct api *a); /* after the servers; NULL is fine */
void api_cut(struct api *a);   /* what is not answered is refused, so that clients ask again */

/* Each takes or answers the request. */
void api_request(struct gateway *g, struct http_request *rq);
void admin_request(struct gateway *g, struct http_request *rq); /* by the admin door */

static inline bool api_is_admin(const struct api_call *c)
{
	return c->route->auth == AUTH_ADMIN;
}

void api_proceed(struct api_call *c); /* who it is, is known */
void api_call_free(struct api_call *c);

/* The body as a JSON object; an empty one is {}. Answered already when this fails. */
int api_body(struct api_call *c, json_t **ret) NODISCARD;

/* What node said, as JSON. NULL: answered already, "node's `what` cannot be read". */
json_t *api_node_json(struct api_call *c, const struct node_answer *said, const char *what);
json_t *api_node_array(struct api_call *c, const struct node_answer *said, const char *what);

/* A name that a user chose: text without control characters, 1 to STORE_NAME_SIZE - 1 bytes. */
int api_name(struct api_call *c, const json_t *body, char ret[static STORE_NAME_SIZE]) NODISCARD;

/* Ask; each answers the call by itself when that fails, the first one when the store refuses, too.
 */
void api_ask_store(struct api_call *c, const struct store_request *rq, api_store_fn *on_done);
void api_ask_store_any(struct api_call *c, const struct store_request *rq,
		       api_store_any_fn *on_done);
/* on_done comes when node did it; what it refuses is answered by api_fail_reply(). */
void api_ask_node(struct api_call *c, const struct node_request *rq, struct bytes text,
		  uint64_t deadline_ms, api_node_fn *on_done);
/* The same; c->on_refused says who answers then. */
void api_ask_node_or(struct api_call *c, const struct node_request *rq, struct bytes text,
		     uint64_t deadline_ms, api_node_fn *on_done);
/* For those who ask by themselves: c->on_node and c->on_store_any are told. */
void api_on_node(struct link_call *call, const struct link_reply *r);
void api_on_store_any(struct store_call *call, const struct store_result *ret,
		      const struct err *err);
