/* placeholder.c - see placeholder.h. */
#include "wire/placeholder.h"

static const struct {
	enum placeholder_kind kind;
	const char *mark;
} marks[] = {
	{ PLACEHOLDER_SECRET, "${e2b.secrets." },
	{ PLACEHOLDER_IDENTITY, "${e2b.identity.tokens." },
};

/* Which begins first, and where; NONE: neither does. */
static enum placeholder_kind find(struct bytes text, size_t *ret_at, size_t *ret_name)
{
	for (size_t at = 0; at < text.len; at++)
		for (size_t i = 0; i < COUNT(marks); i++)
			if (bytes_starts(bytes_tail(text, at), bytes_str(marks[i].mark))) {
				*ret_at = at;
				*ret_name = at + strlen(marks[i].mark);
				return marks[i].kind;
			}
	return PLACEHOLDER_NONE;
}

bool secret_name_normal(struct bytes text, char ret[static SECRET_NAME_SIZE])
{
	text = bytes_trim(text);
	if (text.len == 0 || !bytes_to_str(text, ret, SECRET_NAME_SIZE))
		return false;
	for (char *p = ret; *p; p++) {
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
		else if (!((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '_' ||
			   *p == '-'))
			return false;
	}
	return !bytes_starts(bytes_str(ret), BYTES_LIT("sec_"));
}

enum placeholder_kind placeholder_next(struct bytes *rest, struct placeholder *ret)
{
	size_t at = 0, name = 0, other, end;
	enum placeholder_kind kind = find(*rest, &at, &name);
	struct bytes after;

	*ret = (struct placeholder){ .before = *rest };
	if (kind == PLACEHOLDER_NONE) {
		*rest = (struct bytes){ 0 };
		return kind;
	}
	ret->before = bytes_head(*rest, at);
	after = bytes_tail(*rest, name);
	if (!bytes_cut(&after, '}', &ret->name) || ret->name.len == 0 ||
	    find(ret->name, &other, &end) != PLACEHOLDER_NONE)
		return PLACEHOLDER_BROKEN;
	if (kind == PLACEHOLDER_SECRET && !secret_name_normal(ret->name, ret->secret))
		return PLACEHOLDER_BROKEN;
	*rest = after;
	return kind;
}
