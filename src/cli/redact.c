/* redact.c - see redact.h. */
#include "cli/redact.h"

#include <ctype.h>

enum { RUN_MIN = 28, UUID_LENGTH = 36, SECRET_NAME_MAX = 64 };

static const struct bytes taken_out = BYTES_LIT("[redacted]");

/* What names of secrets have in them, in lower case. */
static const char *const secret_words[] = { "key",           "token",      "secret", "passw",
					    "authorization", "credential", "cookie", "bearer",
					    "basic",         "apikey" };

static bool is_word(uint8_t c)
{
	return isalnum(c) || c == '_' || c == '-' || c == '+' || c == '=' || c == '.' || c == '~';
}

static bool sounds_secret(struct bytes name)
{
	char lower[SECRET_NAME_MAX];
	size_t n = name.len < sizeof(lower) - 1 ? name.len : sizeof(lower) - 1;

	for (size_t i = 0; i < n; i++)
		lower[i] = (char)byte_lower(name.ptr[name.len - n + i]);
	lower[n] = '\0';
	for (size_t i = 0; i < COUNT(secret_words); i++)
		if (strstr(lower, secret_words[i]))
			return true;
	return false;
}

static bool is_uuid(struct bytes run)
{
	if (run.len != UUID_LENGTH)
		return false;
	for (size_t i = 0; i < run.len; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? run.ptr[i] != '-' : !isxdigit(run.ptr[i]))
			return false;
	}
	return true;
}

/* Long, of letters and digits, and no name that people gave: those have few digits. */
static bool looks_random(struct bytes run)
{
	size_t digits = 0, letters = 0;

	if (bytes_starts(run, BYTES_LIT("e2b_")) && run.len > 8)
		return true;
	if (run.len < RUN_MIN || is_uuid(run))
		return false;
	for (size_t i = 0; i < run.len; i++) {
		digits += isdigit(run.ptr[i]) != 0;
		letters += isalpha(run.ptr[i]) != 0;
	}
	return letters > 0 && digits >= 3 && letters + digits + 4 >= run.len;
}

/* Between a name and its value: `: `, `=`, `": "`, blanks; then the value may be quoted. */
static size_t skip_between(struct bytes line, size_t i)
{
	while (i < line.len && strchr(" \t:=\"'\\", line.ptr[i]))
		i++;
	return i;
}

/* Up to the quote that ends it, or to a blank or a comma. */
static size_t value_end(struct bytes line, size_t from)
{
	uint8_t quote = from > 0 && strchr("\"'", line.ptr[from - 1]) ? line.ptr[from - 1] : 0;
	size_t i = from;

	while (i < line.len && (quote ? line.ptr[i] != quote : !strchr(" \t,;}]", line.ptr[i])))
		i += quote && line.ptr[i] == '\\' && i + 1 < line.len ? 2 : 1;
	return i;
}

/* A path, a number, or a word of the kind, is no secret: `key_file = /etc/x`, "keys": 3. */
static bool value_is_plain(struct bytes value)
{
	uint64_t n;

	return value.len == 0 || value.ptr[0] == '/' ||
	       (value.len < 6 && bytes_to_u64(value, &n)) || bytes_eq(value, BYTES_LIT("null")) ||
	       bytes_eq(value, BYTES_LIT("true")) || bytes_eq(value, BYTES_LIT("false")) ||
	       bytes_eq(value, BYTES_LIT("[]")) || value.ptr[0] == '[' || value.ptr[0] == '{';
}

/* `Authorization: Basic abc`: what follows a scheme is the secret. */
static bool is_scheme(struct bytes value)
{
	return bytes_eq_nocase(value, BYTES_LIT("basic")) ||
	       bytes_eq_nocase(value, BYTES_LIT("bearer"));
}

/* http://user:password@host */
static int take_address(struct bytes line, size_t *i, struct buf *out, struct err *err)
{
	size_t end = *i + 3;

	while (end < line.len && !strchr("/ \t\"'", line.ptr[end]) && line.ptr[end] != '@')
		end++;
	if (end >= line.len || line.ptr[end] != '@')
		end = *i + 3;
	if (buf_add(out, BYTES_LIT("://"), err) < 0)
		return -1;
	if (end > *i + 3 && buf_add(out, taken_out, err) < 0)
		return -1;
	*i = end;
	return 0;
}

/* A word, and, if it is the name of a secret and a value follows, that without its value. */
static int take_word(struct bytes line, size_t *i, struct buf *out, struct err *err)
{
	size_t end = *i, from, to;
	struct bytes word, value;

	while (end < line.len && is_word(line.ptr[end]) &&
	       !(line.ptr[end] == '=' && end + 1 < line.len && line.ptr[end + 1] != '='))
		end++;
	end += end == *i;
	word = (struct bytes){ line.ptr + *i, end - *i };
	*i = end;
	if (buf_add(out, looks_random(word) ? taken_out : word, err) < 0)
		return -1;
	from = skip_between(line, end);
	if (!sounds_secret(word) || from == end || from >= line.len)
		return 0;
	to = value_end(line, from);
	value = (struct bytes){ line.ptr + from, to - from };
	if (value_is_plain(value) || is_scheme(value))
		return 0;
	*i = to;
	return buf_add(out, (struct bytes){ line.ptr + end, from - end }, err) < 0
		       ? -1
		       : buf_add(out, taken_out, err);
}

static bool has(struct bytes line, const char *text)
{
	return line.len > 0 && memmem(line.ptr, line.len, text, strlen(text)) != NULL;
}

int redact_line(struct redact *r, struct bytes line, struct buf *out, struct err *err)
{
	bool begins = has(line, "-----BEGIN ") && has(line, "PRIVATE"), was = r->in_key;

	r->in_key = (begins || was) && !has(line, "-----END ");
	if (begins || was)
		return begins ? buf_printf(out, err, "[redacted: a private key]\n") : 0;
	for (size_t i = 0; i < line.len;) {
		int rc;

		if (bytes_starts(bytes_tail(line, i), BYTES_LIT("://")))
			rc = take_address(line, &i, out, err);
		else if (is_word(line.ptr[i]))
			rc = take_word(line, &i, out, err);
		else
			rc = buf_add(out, (struct bytes){ line.ptr + i++, 1 }, err);
		if (rc < 0)
			return -1;
	}
	return buf_add(out, BYTES_LIT("\n"), err);
}

int redact_text(struct bytes text, struct buf *out, struct err *err)
{
	struct redact r = { 0 };
	struct bytes line;

	while (bytes_next(&text, '\n', &line))
		if (redact_line(&r, line, out, err) < 0)
			return -1;
	return 0;
}
