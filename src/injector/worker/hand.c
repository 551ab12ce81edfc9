/* hand.c - see hand.h. */
#include "injector/worker/hand.h"

#include "wire/domain.h"

bool hand_is_sound(const struct injector_hand *h, size_t len, size_t n_fds)
{
	char name[DOMAIN_SIZE];

	return h->version == INJECTOR_HAND_VERSION && n_fds == INJECTOR_HAND_FDS &&
	       len >= sizeof(*h) && h->bytes_per_s <= INJECTOR_RATE_MAX &&
	       h->first_len == len - sizeof(*h) && h->first_len <= INJECTOR_FIRST_MAX &&
	       memchr(h->name, 0, sizeof(h->name)) && domain_normal(bytes_str(h->name), name) &&
	       strcmp(name, h->name) == 0;
}
