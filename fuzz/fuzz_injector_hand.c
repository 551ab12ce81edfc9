/* fuzz_injector_hand.c - promises of what a worker takes from egress: two descriptors, or one of a
 * connection that is refused, a name that is one, and as many bytes behind it as it says. */
#include "fuzz/sent.h"
#include "base/fdmsg.h"
#include "injector/worker/hand.h"
#include "wire/domain.h"

struct taken {
	struct injector_hand hand;
	uint8_t rest[sizeof(struct injector_refusal) + INJECTOR_FIRST_MAX];
};

static void must_be_usable(const struct taken *t, size_t len, size_t n_fds,
			   const struct hand_rest *rest)
{
	char name[DOMAIN_SIZE];

	MUST(n_fds == (rest->refusal ? 1 : INJECTOR_HAND_FDS) && len >= sizeof(t->hand) &&
	     len <= sizeof(*t));
	MUST(t->hand.first_len == rest->first.len && t->hand.first_len <= INJECTOR_FIRST_MAX);
	MUST(rest->first.ptr + rest->first.len == (const uint8_t *)t + len);
	MUST(len - rest->first.len ==
	     sizeof(t->hand) + (rest->refusal ? sizeof(*rest->refusal) : 0));
	if (rest->refusal)
		MUST(t->hand.tls && strlen(rest->refusal->why) <= INJECTOR_WHY_MAX &&
		     strlen(rest->refusal->fix) <= INJECTOR_FIX_MAX);
	MUST(t->hand.bytes_per_s <= INJECTOR_RATE_MAX);
	MUST(memchr(t->hand.name, 0, sizeof(t->hand.name)));
	MUST(domain_normal(bytes_str(t->hand.name), name) && strcmp(name, t->hand.name) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) struct taken *t = malloc(sizeof(*t));
	int fds[INJECTOR_HAND_FDS] = { -1, -1 };
	struct err err = { 0 };
	size_t len = 0, n_fds = 0;
	struct hand_rest rest;
	struct sent sent;

	MUST(t);
	sent_open(&sent, (struct bytes){ data, size });
	if (fdmsg_recv_some(sent.ours, t, sizeof(t->hand), sizeof(*t), &len, fds, INJECTOR_HAND_FDS,
			    &n_fds, &err) < 0) {
		must_say_why(&err);
		MUST(n_fds == 0 && fds[0] == -1 && fds[1] == -1);
	} else if (hand_is_sound(&t->hand, len, n_fds, &rest)) {
		must_be_usable(t, len, n_fds, &rest);
	}
	while (n_fds > 0)
		close(fds[--n_fds]);
	sent_close(&sent);
	return 0;
}
