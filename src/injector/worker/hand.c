/* hand.c - see hand.h. */
#include "injector/worker/hand.h"

#include "wire/domain.h"

static bool has_end(const char *text, size_t size)
{
	return memchr(text, 0, size);
}

/* False: too short for it, or no text. */
static bool take_refusal(struct bytes *rest, const struct injector_refusal **ret)
{
	const struct injector_refusal *r = (const struct injector_refusal *)(const void *)rest->ptr;

	static_assert(_Alignof(struct injector_refusal) == 1, "it may be anywhere");
	if (rest->len < sizeof(*r) || !has_end(r->why, sizeof(r->why)) ||
	    !has_end(r->fix, sizeof(r->fix)))
		return false;
	*ret = r;
	*rest = bytes_tail(*rest, sizeof(*r));
	return true;
}

static bool take_rest(const struct injector_hand *h, size_t len, size_t n_fds,
		      struct hand_rest *ret)
{
	struct bytes rest = { (const uint8_t *)(h + 1), len - sizeof(*h) };

	*ret = (struct hand_rest){ 0 };
	if (h->version == INJECTOR_REFUSED_VERSION) {
		if (n_fds != 1 || !h->tls || !take_refusal(&rest, &ret->refusal))
			return false;
	} else if (h->version != INJECTOR_HAND_VERSION || n_fds != INJECTOR_HAND_FDS) {
		return false;
	}
	ret->first = rest;
	return h->first_len == rest.len && h->first_len <= INJECTOR_FIRST_MAX;
}

bool hand_is_sound(const struct injector_hand *h, size_t len, size_t n_fds, struct hand_rest *ret)
{
	char name[DOMAIN_SIZE];

	return len >= sizeof(*h) && take_rest(h, len, n_fds, ret) &&
	       h->bytes_per_s <= INJECTOR_RATE_MAX && has_end(h->name, sizeof(h->name)) &&
	       domain_normal(bytes_str(h->name), name) && strcmp(name, h->name) == 0;
}
