/* relay_head.c - heads as they are passed on. */
#include "gateway/relay/relay_head.h"

#include <arpa/inet.h>

#include "gateway/parse/forwarded.h"
#include "gateway/parse/pass_fields.h"
#include "gateway/relay/relay.h"
#include "gateway/relay/relay_guard.h"
#include "gateway/relay/relay_refuse.h"
#include "wire/target.h"

/* All that came, and those added below. */
static_assert((int)HTTP_FIELDS_OUT_MAX >= (int)HTTP1_FIELDS_MAX + 4, "fields must fit");

static void add(struct relay_fields *f, struct bytes name, struct bytes value)
{
	f->at[f->n++] = (struct http1_field){ name, value };
}

/* Written anew by our client or server, or settled between us and the client: what lets a client in
 * is not for those whom it visits. */
static bool is_ours(struct bytes name)
{
	static const struct bytes names[] = { BYTES_LIT("host"), BYTES_LIT("content-length"),
					      BYTES_LIT("expect"), BYTES_LIT(RELAY_TRAFFIC_TOKEN) };

	for (size_t i = 0; i < COUNT(names); i++)
		if (bytes_eq_nocase(name, names[i]))
			return true;
	return false;
}

/* Of a request and of an answer: what speaks of one connection alone stays behind. */
static void copy(const struct http1_head *head, struct relay_fields *ret)
{
	struct http1_hops hops;

	http1_hops_cut(head, &hops);
	ret->n = 0;
	for (size_t i = 0; i < head->n_fields; i++)
		if (!is_ours(head->fields[i].name) &&
		    !http1_is_hop_field(&hops, head->fields[i].name))
			add(ret, head->fields[i].name, head->fields[i].value);
}

/* The address without its port; false for a client that has none. */
static bool peer_text(const struct addr *a, char ret[static RELAY_PEER_MAX])
{
	if (!a)
		return false;
	/* SAFETY: sockaddr_storage is made to be seen as the address of its family */
	if (a->at.ss_family == AF_INET)
		return inet_ntop(AF_INET, &((const struct sockaddr_in *)&a->at)->sin_addr, ret,
				 RELAY_PEER_MAX);
	if (a->at.ss_family == AF_INET6)
		return inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)&a->at)->sin6_addr, ret,
				 RELAY_PEER_MAX);
	return false;
}

/* What came of this kind said what anybody likes, or was believed and is in what we know. One
 * address, the client's, so that a service finds it whichever end it reads from. */
static void add_forwarded(const struct http_request *rq, struct relay_fields *ret)
{
	struct bytes host;

	if (peer_text(http_request_peer(rq), ret->peer))
		add(ret, BYTES_LIT("X-Forwarded-For"), bytes_str(ret->peer));
	add(ret, BYTES_LIT("X-Forwarded-Proto"),
	    http_request_secure(rq) ? BYTES_LIT("https") : BYTES_LIT("http"));
	if (http1_find(http_request_head(rq), "host", &host) > 0)
		add(ret, BYTES_LIT("X-Forwarded-Host"), host);
}

static bool is_cookie(const struct http1_field *f)
{
	return bytes_eq_nocase(f->name, BYTES_LIT("cookie"));
}

/* A visitor's pass is not for whom he visits. All cookies become one field then; what is left may
 * be none. */
static int drop_passes(struct relay_fields *f, struct buf *room, struct err *err)
{
	bool has = false;
	size_t kept = 0;

	for (size_t i = 0; i < f->n; i++)
		has |= is_cookie(&f->at[i]) && pass_has_cookie(f->at[i].value);
	if (!has)
		return 0;
	for (size_t i = 0; i < f->n; i++) {
		if (!is_cookie(&f->at[i]))
			f->at[kept++] = f->at[i];
		else if (pass_drop_cookies(f->at[i].value, room, err) < 0)
			return -1;
	}
	f->n = kept;
	if (room->len > 0)
		add(f, BYTES_LIT("Cookie"), buf_view(room));
	return 0;
}

int relay_request_fields(const struct relay *r, struct buf *room, struct relay_fields *ret,
			 struct err *err)
{
	size_t kept = 0;

	copy(http_request_head(r->rq), ret);
	for (size_t i = 0; i < ret->n; i++)
		if (!forwarded_is_field(ret->at[i].name) &&
		    !(r->devtools && bytes_eq_nocase(ret->at[i].name, BYTES_LIT("origin"))))
			ret->at[kept++] = ret->at[i];
	ret->n = kept;
	if (drop_passes(ret, room, err) < 0)
		return -1;
	add_forwarded(r->rq, ret);
	return 0;
}

void relay_answer_fields(const struct relay *r, const struct http1_head *head,
			 struct relay_fields *ret)
{
	struct bytes value;

	copy(head, ret);
	if (!relay_is_agent(r) || http1_find(http_request_head(r->rq), "origin", &value) == 0 ||
	    http1_find(head, "access-control-allow-origin", &value) > 0)
		return;
	add(ret, BYTES_LIT("access-control-allow-origin"), BYTES_LIT("*"));
	add(ret, BYTES_LIT("access-control-expose-headers"), BYTES_LIT("*"));
}

struct bytes relay_host(const struct relay *r, struct relay_fields *f)
{
	const struct ingress *in = &r->user.guest->ingress;
	struct bytes host = { 0 };

	if (r->devtools)
		return bytes_str(r->devtools->mark);
	if (in->mask_host[0] != '\0' && !relay_is_agent(r))
		return ingress_host(in, r->to.port, f->host);
	(void)http1_find(http_request_head(r->rq), "host", &host);
	return host;
}

/* What stands in an address for the token is not for whom it leads to. */
static int drop_pass(const struct relay *r, const struct target *t, struct buf *room,
		     bool *ret_dropped, struct err *err)
{
	struct bytes ignored;

	*ret_dropped = relay_guarded(r) && pass_in_query(t->query, &ignored);
	return *ret_dropped ? pass_drop_param(t->path, t->query, room, err) : 0;
}

int relay_target(const struct relay *r, struct buf *room, struct bytes *ret, struct err *err)
{
	const struct http1_head *head = http_request_head(r->rq);
	bool dropped = false;
	struct target t;

	*ret = head->target;
	if (head->form != HTTP1_ABSOLUTE && !relay_guarded(r))
		return 0;
	if (head->form == HTTP1_ASTERISK)
		return 0;
	if (target_split(head->target, &t, err) < 0 || drop_pass(r, &t, room, &dropped, err) < 0)
		return -1;
	if (dropped) {
		*ret = buf_view(room);
		return 0;
	}
	if (head->form != HTTP1_ABSOLUTE)
		return 0;
	if (buf_add(room, t.path, err) < 0)
		return -1;
	if (t.query.len > 0 &&
	    (buf_add(room, BYTES_LIT("?"), err) < 0 || buf_add(room, t.query, err) < 0))
		return -1;
	*ret = buf_view(room);
	return 0;
}
