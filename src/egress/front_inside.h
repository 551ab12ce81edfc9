/* front_inside.h - the parts of a connection: front.c hears and speaks, front_decide.c decides,
 * front_pass.c dials and passes bytes.
 */
#pragma once

#include "egress/front.h"
#include "egress/peek.h"
#include "egress/way.h"
#include "http/http_guard.h"
#include "net/fd_stream.h"
#include "net/pump.h"

struct front {
	struct outlet *outlet;
	struct stream *guest; /* NULL: it is the pump's */
	struct stream_user user;
	uint32_t ip; /* where the guest meant to go, then where it goes */
	uint16_t port;
	enum outlet_kind kind;
	char name[DOMAIN_SIZE]; /* that decided; empty: the address did */
	struct buf first;       /* what the guest said before anybody was dialled */
	struct peek_place place;
	struct timer quiet, late;
	struct lookup lookup;
	struct dns_addresses found;
	size_t tried;
	struct way way;
	struct pump pump;
	struct share_taker taker; /* in line: the guest, or later both sides, are not read */
	struct stream *server;    /* dialled, and nobody has spoken yet */
	struct stream_user server_user;
	bool silent; /* the address decided, for want of a word; the first one may change that */
	bool out;    /* decided: it is let out */
	bool pumping, guarded, hides; /* the last: who it means, perhaps (peek.h) */
	struct http_guard guard;
	struct front *next, **prev;
};

void front_free(struct front *f);
/* Who speaks HTTP is told in HTTP, and counted until it has left; the rest sees a reset. Frees it.
 */
void front_refuse(struct front *f, unsigned int status, const char *why);
void front_turn_away(struct front *f, const struct policy_verdict *v); /* 403, and the audit */
/* Nobody has spoken yet: whoever does it first says what this is. */
void front_wait(struct front *f, struct stream *server, struct bytes early);

void front_decide(struct front *f);
struct policy_verdict front_by_address(const struct front *f);

bool front_has_rule(const struct front *f);
void front_let_out(struct front *f, const struct policy_verdict *v); /* towards f->found */
void front_told(struct front *f, const struct policy_verdict *v);    /* counted, and the audit */
/* Bytes, first what each has said already: of the server, `early`. */
void front_begin(struct front *f, struct stream *server, struct bytes early);
