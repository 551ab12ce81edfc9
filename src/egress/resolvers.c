/* resolvers.c - see resolvers.h. Read once, before the process confines itself. */
#include "egress/resolvers.h"

#include <fcntl.h>

#include "base/log.h"
#include "base/own.h"

#define HOST_FILE "/etc/resolv.conf"

enum { HOST_FILE_MAX = 16 * 1024, PORT = 53 };

static bool is_space(uint8_t c)
{
	return c == ' ' || c == '\t';
}

static bool nameserver(struct bytes line, struct bytes *ret)
{
	const struct bytes word = BYTES_LIT("nameserver");
	size_t n = 0;

	if (!bytes_starts(line, word) || line.len == word.len || !is_space(line.ptr[word.len]))
		return false;
	*ret = bytes_trim(bytes_tail(line, word.len));
	while (n < ret->len && !is_space(ret->ptr[n]))
		n++;
	ret->len = n;
	return true;
}

/* The lines `nameserver ADDRESS` of such a file, the first ones; the rest of it means nothing. */
static void read_resolv_conf(struct bytes file, struct question_servers *ret)
{
	struct bytes line, address;
	char text[ADDR_TEXT_MAX];
	struct err err;

	ret->n = 0;
	while (ret->n < QUESTION_SERVERS_MAX && bytes_next(&file, '\n', &line))
		if (nameserver(line, &address) && bytes_to_str(address, text, sizeof(text)) &&
		    addr_ip(text, PORT, &ret->all[ret->n], &err) == 0)
			ret->n++;
}

static int read_configured(struct bytes text, struct question_servers *ret, struct err *err)
{
	struct bytes word;

	while (bytes_next(&text, ' ', &word)) {
		if (word.len == 0)
			continue;
		if (ret->n == QUESTION_SERVERS_MAX)
			return err_set(err, ERR_INVALID, 0, "more than %d resolvers",
				       QUESTION_SERVERS_MAX);
		if (addr_parse(word, &ret->all[ret->n], err) < 0)
			return err_wrap(err, "resolvers");
		ret->n++;
	}
	return 0;
}

int resolvers_read(const char *configured, struct question_servers *ret, struct err *err)
{
	AUTO(auto_close) int fd = -1;
	uint8_t text[HOST_FILE_MAX];
	ssize_t n;

	*ret = (struct question_servers){ 0 };
	if (read_configured(bytes_str(configured), ret, err) < 0)
		return -1;
	if (ret->n > 0)
		return 0;
	fd = open(HOST_FILE, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (n > 0)
		read_resolv_conf((struct bytes){ text, (size_t)n }, ret);
	if (ret->n == 0)
		log_warn("no resolver in " HOST_FILE ": sandboxes reach no name; set `resolvers`");
	return 0;
}
