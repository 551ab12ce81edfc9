/* link_hello.c - see link_hello.h. */
/* #parses: the first message of a client, of a fixed size; from node */
#include "base/link_hello.h"

#include "base/fdmsg.h"
#include "base/log.h"

const char link_build[] = HOTCELL_RELEASE;

static_assert(sizeof(link_build) <= LINK_BUILD_SIZE, "the name of the build is too long");

struct link_hello link_hello_make(uint32_t min, uint32_t max)
{
	struct link_hello h = { .magic = LINK_MAGIC, .min = min, .max = max };

	memcpy(h.build, link_build, sizeof(link_build));
	return h;
}

bool link_hello_ok(const struct link_hello *h)
{
	size_t n = strnlen(h->build, sizeof(h->build));

	for (size_t i = 0; i < n; i++)
		if (h->build[i] <= ' ' || h->build[i] > '~')
			return false;
	return memcmp(h->magic, LINK_MAGIC, sizeof(h->magic)) == 0 && h->min > 0 &&
	       h->min <= h->max && n > 0 && n < sizeof(h->build);
}

uint32_t link_hello_version(const struct link_hello *a, const struct link_hello *b)
{
	uint32_t max = a->max < b->max ? a->max : b->max;

	return max >= a->min && max >= b->min ? max : 0;
}

/* Said once by a program: a client of an older build calls again and again, and may not know why.
 */
static int no_hello(const struct err *err)
{
	static bool told;

	if (!told)
		log_warn("a client was turned away: no hello, as of an older build: %s", err->msg);
	told = true;
	return -1;
}

int link_hello_answer(int sock, uint32_t min, uint32_t max, struct err *err)
{
	const struct link_hello own = link_hello_make(min, max);
	struct link_hello client;
	size_t n_fds = 0;

	if (fdmsg_recv(sock, &client, sizeof(client), NULL, 0, &n_fds, err) < 0)
		return err->code == ERR_INVALID ? no_hello(err) : -1;
	if (!link_hello_ok(&client)) {
		err_set(err, ERR_INVALID, 0, "what a client said first is no hello");
		return no_hello(err);
	}
	if (fdmsg_send(sock, &own, sizeof(own), NULL, 0, err) < 0)
		return -1;
	if (!link_hello_version(&client, &own))
		return err_set(err, ERR_VERSION, 0, "a client of build %s speaks versions %u to %u",
			       client.build, client.min, client.max);
	return 0;
}
