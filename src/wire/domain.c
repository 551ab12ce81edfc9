/* domain.c - see domain.h. */
#include "wire/domain.h"

#include "wire/http1_chars.h"

enum { LABEL_MAX = 63, PORT_DIGITS = 5 };

static bool is_label_char(uint8_t c)
{
	return is_alnum(c) || c == '-' || c == '_';
}

static bool is_label(struct bytes label)
{
	return label.len > 0 && label.len <= LABEL_MAX && label.ptr[0] != '-' &&
	       label.ptr[label.len - 1] != '-' && bytes_all(label, is_label_char);
}

/* As strtoul() would: decimal, octal, or hexadecimal behind 0x. */
static bool is_number(struct bytes label)
{
	if (label.len >= 2 && label.ptr[0] == '0' && (label.ptr[1] | 0x20) == 'x') {
		for (size_t i = 2; i < label.len; i++)
			if (hex_value(label.ptr[i]) < 0)
				return false;
		return true;
	}
	return bytes_all(label, is_digit);
}

static void lower(struct bytes text, char *ret)
{
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = text.ptr[i];

		ret[i] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
	}
	ret[text.len] = '\0';
}

bool domain_normal(struct bytes text, char ret[static DOMAIN_SIZE])
{
	struct bytes rest, label = { 0 };

	if (text.len > 0 && text.ptr[text.len - 1] == '.')
		text.len--;
	if (text.len == 0 || text.len > DOMAIN_MAX || text.ptr[text.len - 1] == '.')
		return false;
	rest = text;
	while (bytes_next(&rest, '.', &label))
		if (!is_label(label))
			return false;
	if (is_number(label))
		return false;
	lower(text, ret);
	return true;
}

bool domain_and_port(struct bytes text, char ret[static DOMAIN_SIZE], uint16_t *ret_port)
{
	struct bytes name = text, rest = text;
	uint64_t port = 0;

	if (bytes_cut(&rest, ':', &name) &&
	    (rest.len > PORT_DIGITS || !bytes_to_u64(rest, &port) || port < 1 || port > UINT16_MAX))
		return false;
	*ret_port = (uint16_t)port;
	return domain_normal(name, ret);
}

bool domain_pattern(struct bytes text, char ret[static DOMAIN_SIZE])
{
	char name[DOMAIN_SIZE];

	if (bytes_eq(text, BYTES_LIT("*"))) {
		memcpy(ret, "*", 2);
		return true;
	}
	if (!bytes_starts(text, BYTES_LIT("*.")))
		return domain_normal(text, ret);
	if (!domain_normal(bytes_tail(text, 2), name) || strlen(name) + 2 > DOMAIN_MAX)
		return false;
	memcpy(ret, "*.", 2);
	memcpy(ret + 2, name, strlen(name) + 1);
	return true;
}

bool domain_match(const char *pattern, const char *name)
{
	size_t suffix, whole = strlen(name);

	if (pattern[0] != '*')
		return strcmp(pattern, name) == 0;
	suffix = strlen(pattern) - 1;
	return suffix == 0 || (whole > suffix && strcmp(name + whole - suffix, pattern + 1) == 0);
}

bool domain_is_closer(const char *a, const char *b)
{
	if ((a[0] == '*') != (b[0] == '*'))
		return b[0] == '*';
	return strlen(a) > strlen(b);
}
