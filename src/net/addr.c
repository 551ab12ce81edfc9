/* addr.c - addresses as text and as the kernel wants them. */
#include "net/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "base/random.h"

int addr_unix(const char *path, struct addr *ret, struct err *err)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	if (path[0] == '\0' || !bytes_to_str(bytes_str(path), un.sun_path, sizeof(un.sun_path)))
		return err_set(err, ERR_INVALID, 0, "socket path is empty or longer than %zu",
			       sizeof(un.sun_path) - 1);
	*ret = (struct addr){ .len = sizeof(un) };
	memcpy(&ret->at, &un, sizeof(un));
	return 0;
}

int addr_ip(const char *ip, uint16_t port, struct addr *ret, struct err *err)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	if (inet_pton(AF_INET, ip, &v4.sin_addr) == 1) {
		*ret = (struct addr){ .len = sizeof(v4) };
		memcpy(&ret->at, &v4, sizeof(v4));
		return 0;
	}
	if (inet_pton(AF_INET6, ip, &v6.sin6_addr) == 1) {
		*ret = (struct addr){ .len = sizeof(v6) };
		memcpy(&ret->at, &v6, sizeof(v6));
		return 0;
	}
	return err_set(err, ERR_INVALID, 0, "`%s` is not an IP address", ip);
}

static int bad_addr(struct bytes text, struct err *err)
{
	return err_set(err, ERR_INVALID, 0, "`%.*s` is not an address with a port",
		       (int)bytes_head(text, ADDR_TEXT_MAX).len, (const char *)text.ptr);
}

int addr_parse(struct bytes text, struct addr *ret, struct err *err)
{
	char host[ADDR_TEXT_MAX];
	struct bytes rest = text, ip;
	uint64_t port;
	bool v6;

	if (bytes_starts(text, BYTES_LIT("unix:"))) {
		if (!bytes_to_str(bytes_tail(text, 5), host, sizeof(host)))
			return err_set(err, ERR_INVALID, 0, "socket path is too long");
		return addr_unix(host, ret, err);
	}
	v6 = bytes_starts(text, BYTES_LIT("["));
	if (v6) {
		rest = bytes_tail(rest, 1);
		if (!bytes_cut(&rest, ']', &ip) || !bytes_starts(rest, BYTES_LIT(":")))
			return bad_addr(text, err);
		rest = bytes_tail(rest, 1);
	} else if (!bytes_cut(&rest, ':', &ip)) {
		return bad_addr(text, err);
	}
	if (!bytes_to_u64(rest, &port) || port > UINT16_MAX ||
	    !bytes_to_str(ip, host, sizeof(host)) || v6 != (strchr(host, ':') != NULL))
		return bad_addr(text, err);
	return addr_ip(host, (uint16_t)port, ret, err);
}

uint16_t addr_port(const struct addr *a)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (a->at.ss_family == AF_INET) {
		memcpy(&v4, &a->at, sizeof(v4));
		return ntohs(v4.sin_port);
	}
	if (a->at.ss_family == AF_INET6) {
		memcpy(&v6, &a->at, sizeof(v6));
		return ntohs(v6.sin6_port);
	}
	return 0;
}

static void unix_text(const struct addr *a, char *ret)
{
	struct sockaddr_un un;

	memcpy(&un, &a->at, sizeof(un));
	if (a->len <= offsetof(struct sockaddr_un, sun_path) || un.sun_path[0] == '\0')
		(void)snprintf(ret, ADDR_TEXT_MAX, "unix");
	else
		(void)snprintf(ret, ADDR_TEXT_MAX, "unix:%.*s", (int)sizeof(un.sun_path),
			       un.sun_path);
}

void addr_text(const struct addr *a, char ret[static ADDR_TEXT_MAX])
{
	char host[INET6_ADDRSTRLEN] = "?";
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (a->at.ss_family == AF_INET) {
		memcpy(&v4, &a->at, sizeof(v4));
		(void)inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
		(void)snprintf(ret, ADDR_TEXT_MAX, "%s:%u", host, addr_port(a));
	} else if (a->at.ss_family == AF_INET6) {
		memcpy(&v6, &a->at, sizeof(v6));
		(void)inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
		(void)snprintf(ret, ADDR_TEXT_MAX, "[%s]:%u", host, addr_port(a));
	} else {
		unix_text(a, ret);
	}
}

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff }; /* an IPv4 address follows */

enum { PREFIX_BYTES = 8 };

static bool is_mapped(const uint8_t ip[static ADDR_KEY])
{
	return memcmp(ip, mapped, sizeof(mapped)) == 0;
}

bool addr_octets(const struct addr *a, uint8_t ret[static ADDR_KEY])
{
	/* SAFETY: sockaddr_storage is made to be seen as the address of its family */
	if (a->at.ss_family == AF_INET) {
		memcpy(ret, mapped, sizeof(mapped));
		memcpy(ret + sizeof(mapped), &((const struct sockaddr_in *)&a->at)->sin_addr, 4);
		return true;
	}
	if (a->at.ss_family == AF_INET6) {
		memcpy(ret, ((const struct sockaddr_in6 *)&a->at)->sin6_addr.s6_addr, ADDR_KEY);
		return true;
	}
	return false;
}

void addr_of_octets(const uint8_t ip[static ADDR_KEY], uint16_t port, struct addr *ret)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memcpy(&v4.sin_addr, ip + sizeof(mapped), sizeof(v4.sin_addr));
	memcpy(&v6.sin6_addr, ip, sizeof(v6.sin6_addr));
	*ret = (struct addr){ .len = is_mapped(ip) ? sizeof(v4) : sizeof(v6) };
	if (is_mapped(ip))
		memcpy(&ret->at, &v4, sizeof(v4));
	else
		memcpy(&ret->at, &v6, sizeof(v6));
}

void addr_key(const struct addr *a, uint8_t ret[static ADDR_KEY])
{
	memset(ret, 0, ADDR_KEY);
	if (a && addr_octets(a, ret) && !is_mapped(ret))
		memset(ret + PREFIX_BYTES, 0, ADDR_KEY - PREFIX_BYTES);
}

uint64_t addr_key_hash(const uint8_t key[static ADDR_KEY], uint64_t *seed)
{
	uint64_t h;

	while (*seed == 0)
		random_fill(seed, sizeof(*seed));
	h = *seed;
	for (size_t i = 0; i < ADDR_KEY; i++) {
		h = (h ^ key[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return h;
}

bool addr_is_local(const struct addr *a)
{
	uint8_t key[ADDR_KEY];

	if (a->at.ss_family != AF_INET && a->at.ss_family != AF_INET6)
		return true;
	if (a->at.ss_family == AF_INET6 &&
	    IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&a->at)->sin6_addr))
		return true;
	addr_key(a, key);
	return memcmp(key, mapped, sizeof(mapped)) == 0 && key[sizeof(mapped)] == 127;
}
