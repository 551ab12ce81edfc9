/* why.c - see why.h. One question, asked a few times; nothing of the agent's state is used. */
#include "agent/why.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/random.h"
#include "wire/dns_text.h"

#define RESOLVER   "169.254.77.1" /* of every sandbox */
#define WHY_DOMAIN ".why.hotcell.internal"

enum { PORT_OF_NAMES = 53, TRIES = 3, WAIT_MS = 4000, TEXT_MAX = 512 };

static const char help[] = "usage: " WHY_PROGRAM " HOST[:PORT]\n"
			   "\n"
			   "Says whether this sandbox may reach a host (a name, an address, or a "
			   "URL), which rule says\n"
			   "so, and who would have to change what. Exits with 0: it may, 1: it may "
			   "not, 2: not told.\n";

bool why_is_meant(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');

	return strcmp(slash ? slash + 1 : argv0, WHY_PROGRAM) == 0;
}

/* --- the question --------------------------------------------------------------------------- */

/* What people paste: https://user@example.com:443/path */
static struct bytes host_of(struct bytes text)
{
	struct bytes part = text;
	const uint8_t *scheme = memmem(text.ptr, text.len, "://", 3);

	if (scheme)
		text = bytes_tail(text, (size_t)(scheme - text.ptr) + 3);
	part = text;
	if (bytes_cut(&text, '/', &part))
		text = part;
	while (bytes_cut(&text, '@', &part))
		;
	return text;
}

/* False: nothing that can be asked for. */
static bool make_name(const char *asked, char ret[static DOMAIN_SIZE])
{
	struct bytes rest = host_of(bytes_str(asked)), host = rest;
	char text[TEXT_MAX] = "";
	uint64_t port = 0;
	int n;

	if (bytes_cut(&rest, ':', &host) &&
	    (!bytes_to_u64(rest, &port) || port < 1 || port > UINT16_MAX))
		return false;
	if (host.len > 0 && host.ptr[host.len - 1] == '.')
		host.len--;
	if (host.len == 0 || host.len > DOMAIN_MAX)
		return false;
	if (port > 0)
		snprintf(text, sizeof(text), "_%u.", (unsigned int)port);
	n = (int)strlen(text);
	snprintf(text + n, sizeof(text) - (size_t)n, "%.*s" WHY_DOMAIN, (int)host.len,
		 (const char *)host.ptr);
	return domain_normal(bytes_str(text), ret);
}

/* --- asking --------------------------------------------------------------------------------- */

static int dial(struct err *err)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT_OF_NAMES) };
	AUTO(auto_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)inet_pton(AF_INET, RESOLVER, &to.sin_addr);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "dial " RESOLVER);
	return take_fd(&fd);
}

/* Until the time is over: others may send, too. */
static bool hear(int fd, struct bytes query, struct dns_lines *ret)
{
	uint64_t end = clock_mono_ns() + WAIT_MS * NSEC_PER_MSEC, now;
	uint8_t in[DNS_ANSWER_MAX];

	while ((now = clock_mono_ns()) < end) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, (int)((end - now) / NSEC_PER_MSEC) + 1) <= 0)
			continue;
		n = recv(fd, in, sizeof(in), MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			return false; /* nobody is there, now */
		if (n > 0 && dns_read_lines((struct bytes){ in, (size_t)n }, query, ret))
			return true;
	}
	return false;
}

static int ask(const char *name, struct dns_lines *ret, struct err *err)
{
	AUTO(buf_done) struct buf query = BUF_MAX(DNS_QUERY_MAX);
	AUTO(auto_close) int fd = dial(err);
	uint16_t id;

	random_fill(&id, sizeof(id));
	if (fd < 0 || dns_write_lines_query(id, name, &query, err) < 0)
		return -1;
	for (int i = 0; i < TRIES; i++) {
		(void)!send(fd, query.ptr, query.len, MSG_NOSIGNAL);
		if (hear(fd, buf_view(&query), ret))
			return 0;
	}
	return err_set(err, ERR_TIMEOUT, 0, "the resolver (" RESOLVER ") does not tell");
}

int why_main(int argc, char **argv)
{
	struct dns_lines told;
	char name[DOMAIN_SIZE];
	struct err err = { 0 };

	if (argc != 2 || argv[1][0] == '-') {
		bool wanted = argc == 2 && strcmp(argv[1], "--help") == 0;

		fputs(help, wanted ? stdout : stderr);
		return wanted ? WHY_ALLOWED : WHY_NOT_TOLD;
	}
	if (!make_name(argv[1], name)) {
		fprintf(stderr, WHY_PROGRAM ": %s: no name of a host, nor an address of IPv4\n",
			argv[1]);
		return WHY_NOT_TOLD;
	}
	if (ask(name, &told, &err) < 0) {
		fprintf(stderr, WHY_PROGRAM ": %s\n", err.msg);
		return WHY_NOT_TOLD;
	}
	printf("%s: %s\n", argv[1], told.line[0]);
	for (size_t i = 1; i < told.n; i++)
		printf("  %s: %s\n", i == 1 ? "why" : "fix", told.line[i]);
	return strcmp(told.line[0], "yes") == 0 ? WHY_ALLOWED : WHY_REFUSED;
}
