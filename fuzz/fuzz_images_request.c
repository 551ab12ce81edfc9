/* fuzz_images_request.c - promises of what the images daemon lets node ask: of the one length, with
 * as many descriptors as its verb and flags say. */
#include "fuzz/sent.h"
#include "base/fdmsg.h"
#include "images/request.h"

static void must_be_usable(const struct images_request *rq, size_t n_fds)
{
	MUST(rq->verb < IMAGES_VERBS && rq->tag != 0 && rq->zero == 0);
	MUST((rq->flags & ~3u) == 0 && n_fds <= IMAGES_FDS_MAX);
	if (rq->verb == IMAGES_MAKE) {
		MUST(n_fds >= 1 && rq->of == 0);
		MUST(((rq->flags & IMAGES_DISK) != 0) == (rq->disk_mib != 0));
		MUST(rq->disk_mib <= IMAGES_DISK_MIB_MAX);
	} else {
		MUST(n_fds == 0 && rq->flags == 0 && rq->disk_mib == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fds[IMAGES_FDS_MAX] = { -1, -1, -1 };
	struct images_request rq;
	struct err err = { 0 };
	struct sent sent;
	size_t n_fds = 0;

	sent_open(&sent, (struct bytes){ data, size });
	if (fdmsg_recv(sent.ours, &rq, sizeof(rq), fds, IMAGES_FDS_MAX, &n_fds, &err) < 0) {
		must_say_why(&err);
		MUST(n_fds == 0);
	} else if (images_request_check(&rq, n_fds, &err) < 0) {
		must_say_why(&err);
	} else {
		must_be_usable(&rq, n_fds);
	}
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	sent_close(&sent);
	return 0;
}
