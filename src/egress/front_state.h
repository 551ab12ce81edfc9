/* front_state.h - all that is known of one connection; for the three sources of a front.
 *
 * front.c hears and speaks, front_decide.c decides, front_pass.c dials and passes bytes.
 */
#pragma once

#include "egress/front.h"
#include "egress/peek.h"
#include "egress/way.h"
#include "http/http_guard.h"
#include "net/fd_stream.h"
#include "net/pump.h"

struct front {
	struct sandbox_egress *sandbox_egress;
	struct stream *guest; /* NULL: it is the pump's */
	struct stream_user user;
	uint32_t ip; /* where the guest meant to go, then where it goes */
	uint16_t port;
	enum sandbox_egress_kind kind;
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
