/* package_hosts.c - see package_hosts.h. */
#include "vm/package_hosts.h"

#include "wire/domain.h"
#include "wire/ip.h"

static const char script[] =
#include "vm/package_hosts.inc" /* guest/package-hosts as a string, made by meson */
	;

struct bytes package_hosts_script(void)
{
	return bytes_str(script);
}

/* scheme://user:password@HOST:port/path; all but the host may be missing. */
static struct bytes host_of(struct bytes url)
{
	const uint8_t *at = memmem(url.ptr, url.len, "://", 3);
	struct bytes rest = at ? bytes_tail(url, (size_t)(at - url.ptr) + 3) : url, part;

	if (bytes_cut(&rest, '/', &part))
		rest = part;
	while (bytes_cut(&rest, '@', &part))
		;
	return bytes_cut(&rest, ':', &part) ? part : rest;
}

static bool has_word(const char *list, const char *word)
{
	struct bytes rest = bytes_str(list), one;

	while (bytes_next(&rest, ' ', &one))
		if (bytes_eq(one, bytes_str(word)))
			return true;
	return false;
}

static bool add_host(struct bytes host, char *ret)
{
	size_t used = strlen(ret);
	char text[DOMAIN_SIZE];
	uint32_t ip;

	if (ip4_parse(host, &ip))
		ip4_text(ip, text);
	else if (!domain_normal(host, text))
		return false;
	if (has_word(ret, text) || used + 1 + strlen(text) > PACKAGE_HOSTS_TEXT_MAX)
		return false;
	snprintf(ret + used, PACKAGE_HOSTS_TEXT_MAX + 1 - used, "%s%s", used > 0 ? " " : "", text);
	return true;
}

void package_hosts_read(struct bytes said, char ret[static PACKAGE_HOSTS_TEXT_MAX + 1])
{
	struct bytes line, word;
	size_t n = 0;

	ret[0] = '\0';
	while (bytes_next(&said, '\n', &line))
		while (n < PACKAGE_HOSTS_MAX && bytes_next(&line, ' ', &word))
			if (add_host(host_of(word), ret))
				n++;
}
