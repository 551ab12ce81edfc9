/* json_skim.c - see json_skim.h. One pass, and one bit for each level that is open. */
#include "wire/json_skim.h"

struct skim {
	struct bytes in;
	size_t at, depth;
	bool object[JSON_SKIM_DEPTH_MAX]; /* of each level: an object, or an array */
	struct json_span *members;
	size_t n;
	struct err *err;
};

static int bad(struct skim *s, const char *what)
{
	return err_set(s->err, ERR_INVALID, 0, "JSON, byte %zu: %s", s->at, what);
}

/* The next byte, 0 at the end. */
static uint8_t peek(const struct skim *s)
{
	return s->at < s->in.len ? s->in.ptr[s->at] : 0;
}

static bool accept(struct skim *s, uint8_t c)
{
	if (s->at >= s->in.len || s->in.ptr[s->at] != c)
		return false;
	s->at++;
	return true;
}

static void skip_blanks(struct skim *s)
{
	while (accept(s, ' ') || accept(s, '\t') || accept(s, '\n') || accept(s, '\r'))
		;
}

/* --- strings -------------------------------------------------------------------------------- */

static int hex_of(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = byte_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* uXXXX at the front; -1: it is not. */
static long unit_of(struct bytes in)
{
	long unit = 0;

	if (in.len < 5 || in.ptr[0] != 'u')
		return -1;
	for (size_t i = 1; i < 5; i++) {
		int digit = hex_of(in.ptr[i]);

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

/* What stands behind a backslash: its character, and how many bytes it has. -1: nothing does. */
static long escape_of(struct bytes in, size_t *ret_len)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found = in.len > 0 && in.ptr[0] ? strchr(from, in.ptr[0]) : NULL;
	long high, low;

	*ret_len = 1;
	if (found)
		return to[found - from];
	high = unit_of(in);
	*ret_len = 5;
	if (high < 0xd800 || high > 0xdfff)
		return high;
	*ret_len = 11;
	low = in.len > 6 && in.ptr[5] == '\\' ? unit_of(bytes_tail(in, 6)) : -1;
	if (high > 0xdbff || low < 0xdc00 || low > 0xdfff)
		return -1;
	return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/* The length of the UTF-8 character at the front; 0: there is none. */
static size_t character(struct bytes in)
{
	uint8_t first = in.ptr[0];
	size_t n = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	if (n == 0 || first > 0xf4 || n > in.len)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((in.ptr[i] & 0xc0) != 0x80)
			return 0;
	if ((first == 0xe0 && in.ptr[1] < 0xa0) || (first == 0xed && in.ptr[1] > 0x9f) ||
	    (first == 0xf0 && in.ptr[1] < 0x90) || (first == 0xf4 && in.ptr[1] > 0x8f))
		return 0;
	return n;
}

/* Behind the first quote, up to behind the last. */
static int skip_string(struct skim *s)
{
	while (s->at < s->in.len) {
		struct bytes rest = bytes_tail(s->in, s->at);
		size_t n;

		if (accept(s, '"'))
			return 0;
		if (rest.ptr[0] < ' ')
			return bad(s, "a control character in a string");
		if (rest.ptr[0] == '\\') {
			if (escape_of(bytes_tail(rest, 1), &n) < 0)
				return bad(s, "an escape that is none");
			n++;
		} else {
			n = character(rest);
		}
		if (n == 0)
			return bad(s, "not UTF-8");
		s->at += n;
	}
	return bad(s, "a string without an end");
}

bool json_skim_string(struct bytes value, struct bytes *ret)
{
	if (value.len < 2 || value.ptr[0] != '"')
		return false;
	*ret = (struct bytes){ value.ptr + 1, value.len - 2 };
	return true;
}

static size_t put_character(long c, uint8_t *out)
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t mark[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n; i-- > 1; c >>= 6)
		out[i] = (uint8_t)(0x80 | (c & 0x3f));
	out[0] = (uint8_t)(mark[n] | c);
	return n;
}

size_t json_skim_take(struct bytes *text, uint8_t *out, size_t size)
{
	size_t made = 0;

	assert(size >= JSON_SKIM_CHARACTER);
	while (text->len > 0 && size - made >= JSON_SKIM_CHARACTER) {
		size_t n = 1;

		if (text->ptr[0] == '\\') {
			long c = escape_of(bytes_tail(*text, 1), &n);

			made += put_character(c < 0 ? '?' : c, out + made);
			n = c < 0 ? 1 : n + 1;
		} else {
			n = character(*text);
			n = n > 0 ? n : 1;
			memcpy(out + made, text->ptr, n);
			made += n;
		}
		*text = bytes_tail(*text, n);
	}
	return made;
}

/* --- values --------------------------------------------------------------------------------- */

static bool skip_digits(struct skim *s)
{
	size_t before = s->at;

	while (peek(s) >= '0' && peek(s) <= '9')
		s->at++;
	return s->at > before;
}

static int skip_number(struct skim *s)
{
	(void)accept(s, '-');
	if (!accept(s, '0') && !skip_digits(s))
		return bad(s, "no value");
	if (accept(s, '.') && !skip_digits(s))
		return bad(s, "no digits behind a point");
	if (!accept(s, 'e') && !accept(s, 'E'))
		return 0;
	if (!accept(s, '+'))
		(void)accept(s, '-');
	return skip_digits(s) ? 0 : bad(s, "no digits in an exponent");
}

static int skip_scalar(struct skim *s)
{
	static const struct bytes words[] = { BYTES_LIT("true"), BYTES_LIT("false"),
					      BYTES_LIT("null") };

	if (accept(s, '"'))
		return skip_string(s);
	for (size_t i = 0; i < COUNT(words); i++)
		if (bytes_starts(bytes_tail(s->in, s->at), words[i])) {
			s->at += words[i].len;
			return 0;
		}
	return skip_number(s);
}

/* Of the outermost object: its name is kept, and where its value begins. */
static int add_member(struct skim *s, struct bytes name)
{
	if (s->n == JSON_SKIM_MEMBERS_MAX)
		return err_set(s->err, ERR_EXHAUSTED, 0, "JSON with more than %d members",
			       JSON_SKIM_MEMBERS_MAX);
	for (size_t i = 0; i < s->n; i++)
		if (bytes_eq(s->members[i].name, name))
			return bad(s, "a member given twice");
	s->members[s->n++] = (struct json_span){ name, bytes_tail(s->in, s->at) };
	return 0;
}

static int take_name(struct skim *s)
{
	size_t begin;

	skip_blanks(s);
	if (!accept(s, '"'))
		return bad(s, "no name");
	begin = s->at;
	if (skip_string(s) < 0)
		return -1;
	struct bytes name = { s->in.ptr + begin, s->at - 1 - begin };

	skip_blanks(s);
	if (!accept(s, ':'))
		return bad(s, "no colon");
	skip_blanks(s);
	return s->depth == 1 ? add_member(s, name) : 0;
}

/* 1: a value is over; 0: one begins. */
static int enter(struct skim *s)
{
	bool object = peek(s) == '{';

	if (!object && peek(s) != '[')
		return skip_scalar(s) < 0 ? -1 : 1;
	if (s->depth == JSON_SKIM_DEPTH_MAX)
		return err_set(s->err, ERR_EXHAUSTED, 0, "JSON nested deeper than %d",
			       JSON_SKIM_DEPTH_MAX);
	s->at++;
	s->object[s->depth++] = object;
	skip_blanks(s);
	if (accept(s, object ? '}' : ']')) {
		s->depth--;
		return 1;
	}
	return object ? take_name(s) : 0;
}

/* Behind a value: 1: another is over with it; 0: the next begins. */
static int leave(struct skim *s)
{
	bool object = s->object[s->depth - 1];

	if (s->depth == 1) {
		struct bytes *value = &s->members[s->n - 1].value;

		value->len = (size_t)(s->in.ptr + s->at - value->ptr);
	}
	skip_blanks(s);
	if (accept(s, object ? '}' : ']')) {
		s->depth--;
		return 1;
	}
	if (!accept(s, ','))
		return bad(s, "no comma");
	if (object)
		return take_name(s);
	skip_blanks(s);
	return 0;
}

int json_skim(struct bytes in, struct json_span ret[static JSON_SKIM_MEMBERS_MAX], struct err *err)
{
	struct skim s = { .in = in, .members = ret, .err = err };
	int over;

	skip_blanks(&s);
	if (peek(&s) != '{')
		return bad(&s, "not an object");
	do {
		over = enter(&s);
		while (over == 1 && s.depth > 0)
			over = leave(&s);
	} while (over == 0);
	if (over < 0)
		return -1;
	skip_blanks(&s);
	return s.at == in.len ? (int)s.n : bad(&s, "something behind the object");
}
