/* fuzz_signer_request.c - promises of what the signer lets a gateway ask: of the one length,
 * without descriptors, and what is signed looks like a handshake and like nothing else. */
#include "fuzz/sent.h"
#include "base/fdmsg.h"
#include "signer/request.h"

static void must_be_a_handshake(const struct signer_request *rq)
{
	static const char begins[] = "TLS 1.3, server CertificateVerify";
	const uint8_t *at = rq->what + 64;

	if (rq->n == 64 + sizeof(begins) + 32 || rq->n == 64 + sizeof(begins) + 48)
		if (memcmp(at, begins, sizeof(begins)) == 0) {
			for (size_t i = 0; i < 64; i++)
				MUST(rq->what[i] == ' ');
			MUST(rq->scheme >> 8 == 8 || (rq->scheme & 0xff) == 3); /* PSS, ECDSA */
			return;
		}
	/* two random numbers and one of three curves, with a point as long as that has */
	MUST(rq->n > 68 && at[0] == 3 && at[1] == 0);
	MUST((at[2] == 23 && rq->n == 68 + 65 && at[4] == 4) ||
	     (at[2] == 24 && rq->n == 68 + 97 && at[4] == 4) || (at[2] == 29 && rq->n == 68 + 32));
	MUST(at[3] == rq->n - 68);
}

static void must_be_usable(const struct signer_request *rq)
{
	MUST(rq->verb < SIGNER_VERBS);
	MUST(rq->tag != 0); /* 0 says that nobody asked */
	MUST(rq->n <= sizeof(rq->what));
	for (size_t i = rq->n; i < sizeof(rq->what); i++)
		MUST(rq->what[i] == 0);
	if (rq->verb == SIGNER_SIGN)
		must_be_a_handshake(rq);
	else
		MUST(rq->n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct signer_request rq;
	struct err err = { 0 };
	struct sent sent;
	size_t n_fds = 0;

	sent_open(&sent, (struct bytes){ data, size });
	if (fdmsg_recv(sent.ours, &rq, sizeof(rq), NULL, 0, &n_fds, &err) < 0) {
		must_say_why(&err);
		MUST(n_fds == 0);
	} else {
		MUST(size == 2 + sizeof(rq) || data[1] > 0);
		if (signer_request_check(&rq, &err) < 0)
			must_say_why(&err);
		else
			must_be_usable(&rq);
	}
	sent_close(&sent);
	return 0;
}
