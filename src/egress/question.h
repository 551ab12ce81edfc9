/* question.h - one name asked of the resolvers upstream, one after the other, until one answers.
 *
 * A datagram first, from a port of its own; over TCP when the answer was cut.
 */
#pragma once

#include "net/dial.h"
#include "wire/dns_answer.h"

enum {
	QUESTION_SERVERS_MAX = 4,
	QUESTION_TRIES = 4,      /* of datagrams, over all servers */
	QUESTION_WAIT_MS = 1500, /* for each */
	QUESTION_TCP_MS = 3000,
};

struct question_servers {
	struct addr all[QUESTION_SERVERS_MAX];
	size_t n;
};

struct question;
typedef void question_done_fn(struct question *q, enum dns_reading reading,
			      const struct dns_addresses *found);
struct question { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop: DNS_ANSWERED, DNS_NO_NAME or DNS_FAILED. */
	question_done_fn *on_done;
	struct loop *loop;
	const struct question_servers *servers; /* borrowed */
	struct buf query, answer;               /* answer: what arrived over TCP */
	unsigned int tries;
	size_t server; /* whom the next datagram goes to */
	int udp;
	struct watch ready;
	struct timer late;
	struct dial dial;
	struct stream *tcp;
	struct stream_user user;
	struct dns_addresses found;
};

/* `name` is normal. Failure (-1): on_done will not come. */
int question_start(struct question *q, struct loop *l, const struct question_servers *servers,
		   const char *name, question_done_fn *on_done, struct err *err) NODISCARD;
void question_cancel(struct question *q); /* fine when nothing is under way */
