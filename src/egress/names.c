/* names.c - see names.h. */
/* #syscalls: sendto */
#include "egress/names.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/list.h"
#include "egress/fake_ip.h"
#include "egress/why.h"

struct name_query { /* a question that was just read */
	int udp;
	const struct sockaddr_in *who;
	struct bytes in;
	struct dns_query query; /* borrows from it */
	char name[DOMAIN_SIZE];
	struct policy_verdict verdict;
};

struct name_asked { /* a question under way */
	struct sandbox_egress *sandbox_egress;
	int udp;
	struct sockaddr_in who;
	uint8_t datagram[DNS_QUERY_MAX];
	struct dns_query query;  /* borrows from it */
	char name[DOMAIN_SIZE];  /* whose addresses are looked up */
	struct why_question why; /* for the sake of which they are, if so */
	struct lookup lookup;
	struct name_asked *next, **prev;
};

/* One that cannot be sent now is one that was lost on the way. */
static void send_to(int udp, const struct sockaddr_in *who, const struct buf *out)
{
	(void)!sendto(udp, out->ptr, out->len, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)who, sizeof(*who));
}

static void refuse(int udp, const struct sockaddr_in *who, const struct dns_query *q,
		   enum dns_rcode code)
{
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_REPLY_MAX);
	struct err err;

	if (dns_write_refusal(q, code, &out, &err) == 0)
		send_to(udp, who, &out);
}

static void block(const struct name_query *q, const char *name)
{
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_REPLY_MAX + DNS_EDNS_MAX);
	char why[DNS_REASON_MAX + 1];
	struct err err;

	snprintf(why, sizeof(why), "hotcell: %.60s; more: hotcell-why %s", q->verdict.why,
		 name[0] && strlen(name) <= WHY_SHOWN_MAX ? name : "HOST");
	if (dns_write_blocked(&q->query, why, &out, &err) == 0)
		send_to(q->udp, q->who, &out);
}

static void tell(int udp, const struct sockaddr_in *who, const struct dns_query *q,
		 const struct dns_addresses *a)
{
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_RESOLVED_MAX);
	struct err err;

	if (dns_write_answer(q, a, &out, &err) == 0)
		send_to(udp, who, &out);
}

/* A name that a browser may show as refused. One of a single label is for nobody on the internet,
 * and browsers ask for such to see whether somebody answers for all of them. */
static bool has_page(const struct sandbox_egress *o, const char *name)
{
	return o->ruled && o->policy.pages && strchr(name, '.');
}

/* It is said why where that is asked for, or where the address leads. */
static void turn_away(const struct sandbox_egress *o, const struct name_query *q, const char *name)
{
	struct dns_addresses a = { { FAKE_IP_REFUSED }, 1, FAKE_IP_REFUSED_TTL_S };

	if (q->query.type != DNS_TYPE_A || q->query.class != DNS_CLASS_INTERNET)
		a.n = 0;
	if (has_page(o, name))
		tell(q->udp, q->who, &q->query, &a);
	else
		block(q, name);
}

static void tell_why(const struct sandbox_egress *o, const struct name_query *q,
		     const struct why_question *why, const struct policy_verdict *v)
{
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_EDNS_MAX);
	struct dns_lines lines = { 0 };
	struct err err;

	why_tell(&o->policy, why, v, &lines);
	if (dns_write_lines(&q->query, &lines, &out, &err) == 0)
		send_to(q->udp, q->who, &out);
}

static void audit(struct sandbox_egress *o, enum audit_verdict verdict, const char *name,
		  uint32_t ip, const char *why)
{
	const struct audit_entry e = { SANDBOX_EGRESS_NAME, verdict, name, ip, 0, why };

	sandbox_egress_audit(o, &e);
}

static void asked_free(struct name_asked *n)
{
	lookup_cancel(&n->lookup);
	list_remove(n);
	n->sandbox_egress->n_asked--;
	free(n);
}

void names_cut(struct sandbox_egress *o)
{
	while (o->asked)
		asked_free(o->asked);
}

/* Those that may be dialled, and why, or why none may. */
static struct policy_verdict sift(const struct name_asked *n, enum dns_reading reading,
				  const struct dns_addresses *found, struct dns_addresses *ret)
{
	const struct sandbox_egress *o = n->sandbox_egress;
	struct policy_verdict v = { .why = "the name has no address" };

	*ret = (struct dns_addresses){ .ttl_s = found->ttl_s };
	for (size_t i = 0; o->ruled && reading == DNS_ANSWERED && i < found->n; i++) {
		struct policy_verdict one = policy_answer(&o->policy, n->name, found->ip[i]);

		if (i == 0 || (one.yes && !v.yes))
			v = one;
		if (one.yes)
			ret->ip[ret->n++] = found->ip[i];
	}
	if (reading == DNS_FAILED)
		snprintf(v.why, sizeof(v.why), "no resolver answers");
	return v;
}

static void on_why_found(struct lookup *l, enum dns_reading reading,
			 const struct dns_addresses *found)
{
	struct name_asked *n = CONTAINER_OF(l, struct name_asked, lookup);
	const struct name_query q = { n->udp, &n->who, .query = n->query };
	struct dns_addresses fit;
	struct policy_verdict v = sift(n, reading, found, &fit);

	if (n->sandbox_egress->ruled) /* still: else it asks again */
		tell_why(n->sandbox_egress, &q, &n->why, &v);
	asked_free(n);
}

/* Only what may be dialled is told. A name that leads inside does not exist: told that it has no
 * address, apt speaks of something wicked. */
static void on_found(struct lookup *l, enum dns_reading reading, const struct dns_addresses *found)
{
	struct name_asked *n = CONTAINER_OF(l, struct name_asked, lookup);
	struct sandbox_egress *o = n->sandbox_egress;
	struct dns_addresses fit;
	struct policy_verdict v = sift(n, reading, found, &fit);

	if (found->n > 0)
		audit(o, v.yes ? AUDIT_ALLOWED : AUDIT_REFUSED, n->name,
		      fit.n > 0 ? fit.ip[0] : found->ip[0], v.why);
	else
		audit(o, AUDIT_FAILED, n->name, 0, v.why);
	known_names_add(&o->known, n->name, &fit);
	if (reading == DNS_FAILED)
		refuse(n->udp, &n->who, &n->query, DNS_SERVFAIL);
	else if (reading == DNS_NO_NAME)
		refuse(n->udp, &n->who, &n->query, DNS_NXDOMAIN);
	else if (found->n > 0 && fit.n == 0)
		turn_away(o,
			  &(struct name_query){ n->udp, &n->who, .query = n->query, .verdict = v },
			  n->name);
	else
		tell(n->udp, &n->who, &n->query, &fit);
	asked_free(n);
}

/* `why`: for the sake of that question. NULL: the name itself was asked for. */
static void look_up(struct sandbox_egress *o, const struct name_query *q,
		    const struct why_question *why)
{
	struct name_asked *n = o->n_asked < SANDBOX_EGRESS_NAMES_MAX ? calloc(1, sizeof(*n)) : NULL;
	struct err err;

	if (!n)
		return; /* it asks again */
	n->sandbox_egress = o;
	n->udp = q->udp;
	n->who = *q->who;
	memcpy(n->datagram, q->in.ptr, q->in.len);
	(void)dns_read_query((struct bytes){ n->datagram, q->in.len }, &n->query);
	memcpy(n->name, why ? why->name : q->name, DOMAIN_SIZE);
	if (why)
		n->why = *why;
	list_add(&o->asked, n);
	o->n_asked++;
	if (resolver_ask(o->house->resolver, &n->lookup, &o->asker, n->name,
			 why ? on_why_found : on_found, &err) < 0) {
		refuse(q->udp, q->who, &n->query, DNS_SERVFAIL);
		asked_free(n);
	}
}

static void tell_one(struct sandbox_egress *o, const struct name_query *q, uint32_t ip,
		     uint32_t ttl_s)
{
	const struct dns_addresses a = { { ip }, 1, ttl_s };

	o->counts.names_allowed++;
	audit(o, AUDIT_ALLOWED, q->name, ip, q->verdict.why);
	tell(q->udp, q->who, &q->query, &a);
}

/* The proxy resolves it. */
static void tell_fake_ip(struct sandbox_egress *o, const struct name_query *q)
{
	uint32_t ip = fake_ip_for(&o->known, q->name);

	if (ip != 0) /* else it asks again */
		tell_one(o, q, ip, FAKE_IP_TTL_S);
}

/* A name that may be asked for, of the one type there is. */
static void answer_allowed(struct sandbox_egress *o, const struct name_query *q)
{
	const struct policy_service *s = policy_service(&o->policy, q->name);

	if (q->query.type != DNS_TYPE_A || q->query.class != DNS_CLASS_INTERNET) {
		tell(q->udp, q->who, &q->query, &(struct dns_addresses){ 0 });
	} else if (s) {
		tell_one(o, q, s->ip, RESOLVER_TTL_MIN_S);
	} else if (o->policy.ground->proxy_resolves) {
		tell_fake_ip(o, q);
	} else {
		o->counts.names_allowed++;
		look_up(o, q, NULL);
	}
}

/* A question about a host, not for it: nobody is asked whom the rules do not allow. */
static void answer_why(struct sandbox_egress *o, const struct name_query *q)
{
	struct policy_verdict v = { .why = "neither a name of a host nor an address of IPv4" };
	struct why_question why;
	bool readable = why_read(q->name, &why);

	if (q->query.type != DNS_TYPE_TXT || q->query.class != DNS_CLASS_INTERNET) {
		tell(q->udp, q->who, &q->query, &(struct dns_addresses){ 0 });
		return;
	}
	if (readable)
		v = why_decide(&o->policy, &o->known, &why);
	if (v.yes && why.name[0] && !policy_service(&o->policy, why.name) &&
	    !o->policy.ground->proxy_resolves)
		look_up(o, q, &why);
	else
		tell_why(o, q, &why, &v);
}

void names_ask(struct sandbox_egress *o, int udp, struct bytes in, const struct sockaddr_in *who)
{
	struct name_query q = { udp, who, in, .verdict.why = "no rules yet" };
	enum dns_verdict verdict = dns_read_query(in, &q.query);
	bool named;

	if (verdict == DNS_SILENCE)
		return;
	if (verdict == DNS_UNREADABLE) {
		o->counts.names_refused++;
		refuse(udp, who, &q.query, DNS_FORMERR);
		return;
	}
	named = dns_query_name(&q.query, q.name);
	if (named && o->ruled && is_why(q.name)) {
		answer_why(o, &q);
		return;
	}
	if (!named)
		snprintf(q.verdict.why, sizeof(q.verdict.why), "no name of a host");
	else if (o->ruled)
		q.verdict = policy_name(&o->policy, q.name);
	if (q.verdict.yes) {
		answer_allowed(o, &q);
		return;
	}
	o->counts.names_refused++;
	audit(o, AUDIT_REFUSED, q.name, 0, q.verdict.why);
	turn_away(o, &q, q.name);
}
