/* fuzz_egress_request.c - promises of what egress lets node ask: of the one length, with the
 * descriptors of its verb, and safe to be used as it is. */
#include "egress/request.h"
#include "fuzz/sent.h"
#include "base/fdmsg.h"

static void must_be_usable(const struct egress_request *rq, size_t n_fds)
{
	MUST(rq->verb < EGRESS_VERBS);
	MUST(rq->slot < EGRESS_SLOTS_MAX);
	MUST(rq->verb != EGRESS_OPEN || n_fds == EGRESS_DOORS);
	MUST(rq->verb != EGRESS_EXPLAIN || n_fds == 1);
	MUST(rq->verb != EGRESS_RULE || n_fds == 1 || n_fds == 2);
	MUST(n_fds == 0 || rq->verb == EGRESS_OPEN || rq->verb == EGRESS_EXPLAIN ||
	     rq->verb == EGRESS_RULE);
	if (rq->verb != EGRESS_NAME)
		return;
	MUST(memchr(rq->id, 0, sizeof(rq->id)));
	MUST(rq->id[0] &&
	     strspn(rq->id, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(rq->id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fds[EGRESS_DOORS] = { -1, -1 };
	struct egress_request rq;
	struct err err = { 0 };
	struct sent sent;
	size_t n_fds = 0;

	sent_open(&sent, (struct bytes){ data, size });
	if (fdmsg_recv(sent.ours, &rq, sizeof(rq), fds, EGRESS_DOORS, &n_fds, &err) < 0) {
		must_say_why(&err);
		MUST(n_fds == 0 && fds[0] == -1 && fds[1] == -1);
	} else {
		MUST(n_fds == data[0] % (SENT_FDS_MAX + 1));
		if (egress_request_check(&rq, n_fds, &err) < 0)
			must_say_why(&err);
		else
			must_be_usable(&rq, n_fds);
	}
	while (n_fds > 0)
		close(fds[--n_fds]);
	sent_close(&sent);
	return 0;
}
