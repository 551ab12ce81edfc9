/* env_file.c - see env_file.h. */
#include "agent/machine/env_file.h"

#include "agent/machine/files_small.h"

static bool is_name(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++) {
		uint8_t c = b.ptr[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
		      (c >= '0' && c <= '9' && i > 0)))
			return false;
	}
	return b.len > 0;
}

static struct bytes unquoted(struct bytes value)
{
	if (value.len >= 2 && (value.ptr[0] == '"' || value.ptr[0] == '\'') &&
	    value.ptr[value.len - 1] == value.ptr[0])
		return bytes_head(bytes_tail(value, 1), value.len - 2);
	return value;
}

static int add_line(struct bytes line, struct strings *env, struct err *err)
{
	static const struct bytes export = BYTES_LIT("export ");
	struct bytes name;

	line = bytes_trim(line);
	if (line.len > export.len && bytes_eq(bytes_head(line, export.len), export))
		line = bytes_trim(bytes_tail(line, export.len));
	if (!bytes_cut(&line, '=', &name) || !is_name(name) ||
	    (line.len > 0 && memchr(line.ptr, '\0', line.len)))
		return 0;
	return strings_set_env(env, name, unquoted(line), err);
}

int env_file_parse(struct bytes text, struct strings *env, struct err *err)
{
	struct bytes line;

	while (bytes_next(&text, '\n', &line))
		if (add_line(line, env, err) < 0)
			return -1;
	return 0;
}

int env_file_add(const char *path, struct strings *env, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(ENV_FILE_MAX);
	struct err ignored;

	if (file_read(path, &text, &ignored) < 0)
		return 0;
	return env_file_parse(buf_view(&text), env, err);
}
