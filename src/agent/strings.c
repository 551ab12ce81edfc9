/* strings.c - bounded, always ready for exec. */
#include "agent/strings.h"

#include <errno.h>

enum { FIRST_ENTRIES = 16 };

static int make_room(struct strings *s, struct err *err)
{
	size_t cap = s->cap ? s->cap * 2 : FIRST_ENTRIES;
	char **grown;

	if (s->n >= STRINGS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d entries", STRINGS_MAX);
	if (s->n + 1 < s->cap) /* one stays free for the NULL */
		return 0;
	grown = reallocarray(s->v, cap, sizeof(*grown));
	if (!grown)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "grow a list of strings");
	s->v = grown;
	s->cap = cap;
	return 0;
}

static int check(const struct strings *s, struct bytes text, struct err *err)
{
	if (text.len > STRINGS_BYTES_MAX - s->bytes)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d bytes of strings",
			       STRINGS_BYTES_MAX);
	if (text.len > 0 && memchr(text.ptr, '\0', text.len))
		return err_set(err, ERR_INVALID, 0, "a NUL in a string");
	return 0;
}

int strings_add(struct strings *s, struct bytes text, struct err *err)
{
	char *copy;

	if (check(s, text, err) < 0 || make_room(s, err) < 0)
		return -1;
	copy = text.len > 0 ? strndup((const char *)text.ptr, text.len) : strdup("");
	if (!copy)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "copy a string");
	s->v[s->n++] = copy;
	s->v[s->n] = NULL;
	s->bytes += text.len;
	return 0;
}

/* The place of `name=...`, or NULL. */
static char **find_env(const struct strings *s, struct bytes name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strncmp(s->v[i], (const char *)name.ptr, name.len) == 0 &&
		    s->v[i][name.len] == '=')
			return &s->v[i];
	return NULL;
}

/* Move the last entry to where `at` is; the order of variables means nothing. */
static void replace_by_last(struct strings *s, char **at)
{
	s->bytes -= strlen(*at);
	free(*at);
	*at = s->v[--s->n];
	s->v[s->n] = NULL;
}

int strings_set_env(struct strings *s, struct bytes name, struct bytes value, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(STRINGS_BYTES_MAX);
	char **old;

	if (name.len == 0 || memchr(name.ptr, '=', name.len))
		return err_set(err, ERR_INVALID, 0,
			       "an environment variable needs a name "
			       "without '='");
	if (buf_add(&text, name, err) < 0 || buf_add(&text, BYTES_LIT("="), err) < 0 ||
	    buf_add(&text, value, err) < 0)
		return -1;
	if (strings_add(s, buf_view(&text), err) < 0)
		return -1;
	old = find_env(s, name);
	if (old != &s->v[s->n - 1])
		replace_by_last(s, old);
	return 0;
}

const char *strings_env(const struct strings *s, const char *name)
{
	char **at = find_env(s, bytes_str(name));

	return at ? *at + strlen(name) + 1 : NULL;
}

void strings_done(struct strings *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	*s = (struct strings){ 0 };
}
