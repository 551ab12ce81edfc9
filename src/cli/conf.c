/* conf.c - see conf.h. */
#include "cli/conf.h"

#include <fcntl.h>

#include "base/bytes.h"
#include "base/read_all.h"

void conf_read(struct conf *ret, const char *path)
{
	ret->there = read_text(AT_FDCWD, path, ret->text, sizeof(ret->text)) >= 0;
}

void conf_read_daemon(struct conf *ret, const char *folder, const char *daemon)
{
	char path[CONF_VALUE_MAX];

	snprintf(path, sizeof(path), "%s/%s.conf", folder, daemon);
	conf_read(ret, path);
}

void conf_value(const struct conf *c, const char *name, char ret[static CONF_VALUE_MAX])
{
	struct bytes rest = bytes_str(c->text), line, key;

	ret[0] = '\0';
	while (bytes_next(&rest, '\n', &line)) {
		if (!bytes_next(&line, '=', &key) || !bytes_eq(bytes_trim(key), bytes_str(name)))
			continue;
		(void)bytes_to_str(bytes_trim(line), ret, CONF_VALUE_MAX);
	}
}

void conf_text(const struct conf *c, const char *name, const char *otherwise,
	       char ret[static CONF_VALUE_MAX])
{
	conf_value(c, name, ret);
	if (!ret[0])
		snprintf(ret, CONF_VALUE_MAX, "%s", otherwise);
}

uint64_t conf_number(const struct conf *c, const char *name, uint64_t otherwise)
{
	char text[CONF_VALUE_MAX];
	uint64_t n;

	conf_value(c, name, text);
	return bytes_to_u64(bytes_str(text), &n) ? n : otherwise;
}

bool conf_says(const struct conf *c, const char *name, const char *value)
{
	char text[CONF_VALUE_MAX];

	conf_value(c, name, text);
	return strcmp(text, value) == 0;
}
