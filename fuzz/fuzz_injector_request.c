/* fuzz_injector_request.c - promises of what the injector lets node ask: of the one length, with
 * just the descriptors of its verb, and safe to be used as it is. */
#include "fuzz/sent.h"
#include "base/fdmsg.h"
#include "injector/request.h"

static void must_be_usable(const struct injector_request *rq, size_t n_fds)
{
	MUST(rq->verb < INJECTOR_VERBS);
	MUST(rq->tag != 0); /* 0 says that nobody asked */
	MUST(rq->slot < INJECTOR_SLOTS_MAX);
	MUST((n_fds == 1) == (rq->verb == INJECTOR_START));
	if (rq->verb != INJECTOR_START)
		return;
	MUST(memchr(rq->id, 0, sizeof(rq->id)) && memchr(rq->team, 0, sizeof(rq->team)));
	MUST(rq->id[0] &&
	     strspn(rq->id, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(rq->id));
	/* or a secret of one team could have the label of another's */
	MUST(rq->team[0] && !strchr(rq->team, '/') && !strchr(rq->team, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct injector_request rq;
	struct err err = { 0 };
	struct sent sent;
	size_t n_fds = 0;
	int fd = -1;

	sent_open(&sent, (struct bytes){ data, size });
	if (fdmsg_recv(sent.ours, &rq, sizeof(rq), &fd, 1, &n_fds, &err) < 0) {
		must_say_why(&err);
		MUST(n_fds == 0 && fd == -1);
	} else {
		MUST(size == 2 + sizeof(rq) || data[1] > 0);
		MUST(n_fds == data[0] % (SENT_FDS_MAX + 1));
		if (injector_request_check(&rq, n_fds, &err) < 0)
			must_say_why(&err);
		else
			must_be_usable(&rq, n_fds);
	}
	auto_close(&fd);
	sent_close(&sent);
	return 0;
}
