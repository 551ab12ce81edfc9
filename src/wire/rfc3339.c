/* rfc3339.c - dates of the Gregorian calendar, counted in days since 1970-01-01. */
#include "wire/rfc3339.h"

#include "wire/http1_chars.h"

enum { YEAR_FIRST = 1970, YEAR_LAST = 2200, DAY_S = 24 * 3600, SECOND_DIGITS = 9 };

#define SECOND_NS 1000000000ull

static bool is_leap(unsigned int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static unsigned int month_days(unsigned int year, unsigned int month) /* 1 to 12 */
{
	static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

/* Full years before `year`, in days. */
static uint64_t year_days(unsigned int year)
{
	unsigned int y = year - 1, first = YEAR_FIRST - 1;

	return 365ull * (year - YEAR_FIRST) + (y / 4 - first / 4) - (y / 100 - first / 100) +
	       (y / 400 - first / 400);
}

void rfc3339_put(uint64_t ns, unsigned int digits, char ret[static RFC3339_SIZE])
{
	uint64_t s = ns / SECOND_NS, day = s / DAY_S;
	unsigned int in_day = (unsigned int)(s % DAY_S);
	unsigned int year = YEAR_FIRST + (unsigned int)(day / 366), month = 1;
	char fraction[16];
	size_t n;

	while (year_days(year + 1) <= day)
		year++;
	day -= year_days(year);
	for (; day >= month_days(year, month); month++)
		day -= month_days(year, month);
	n = (size_t)snprintf(ret, RFC3339_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u", year, month,
			     (unsigned int)day + 1, in_day / 3600, in_day / 60 % 60, in_day % 60);
	snprintf(fraction, sizeof(fraction), ".%09u", (unsigned int)(ns % SECOND_NS));
	snprintf(ret + n, RFC3339_SIZE - n, "%.*sZ", digits > 0 ? (int)digits + 1 : 0, fraction);
}

/* `n` digits off the front. */
static bool take_number(struct bytes *in, size_t n, unsigned int *ret)
{
	*ret = 0;
	if (in->len < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(in->ptr[i]))
			return false;
		*ret = *ret * 10 + (in->ptr[i] - '0');
	}
	*in = bytes_tail(*in, n);
	return true;
}

static bool take_mark(struct bytes *in, const char *marks)
{
	if (in->len == 0 || in->ptr[0] == 0 || !strchr(marks, in->ptr[0]))
		return false;
	*in = bytes_tail(*in, 1);
	return true;
}

static bool take_date(struct bytes *in, uint64_t *ret_days)
{
	unsigned int year, month, day;

	if (!take_number(in, 4, &year) || !take_mark(in, "-") || !take_number(in, 2, &month) ||
	    !take_mark(in, "-") || !take_number(in, 2, &day))
		return false;
	if (year < YEAR_FIRST || year > YEAR_LAST || month < 1 || month > 12 || day < 1 ||
	    day > month_days(year, month))
		return false;
	*ret_days = year_days(year) + day - 1;
	for (unsigned int m = 1; m < month; m++)
		*ret_days += month_days(year, m);
	return true;
}

static bool take_time(struct bytes *in, uint64_t *ret_s)
{
	unsigned int hour, minute, second;

	if (!take_number(in, 2, &hour) || !take_mark(in, ":") || !take_number(in, 2, &minute) ||
	    !take_mark(in, ":") || !take_number(in, 2, &second))
		return false;
	*ret_s = hour * 3600ull + minute * 60 + second;
	return hour < 24 && minute < 60 && second < 60;
}

/* At least one digit after the point; what is finer than a nanosecond is dropped. */
static bool take_fraction(struct bytes *in, uint64_t *ret_ns)
{
	unsigned int n = 0;

	*ret_ns = 0;
	if (!take_mark(in, "."))
		return true;
	for (; in->len > 0 && is_digit(in->ptr[0]); n++) {
		if (n < SECOND_DIGITS)
			*ret_ns = *ret_ns * 10 + (in->ptr[0] - '0');
		*in = bytes_tail(*in, 1);
	}
	for (unsigned int i = n; i < SECOND_DIGITS; i++)
		*ret_ns *= 10;
	return n > 0;
}

static bool take_offset(struct bytes *in, int64_t *ret_s)
{
	unsigned int hour, minute;
	bool west;

	*ret_s = 0;
	if (take_mark(in, "Zz"))
		return true;
	west = in->len > 0 && in->ptr[0] == '-';
	if (!take_mark(in, "+-") || !take_number(in, 2, &hour) || !take_mark(in, ":") ||
	    !take_number(in, 2, &minute) || hour > 23 || minute > 59)
		return false;
	*ret_s = (int64_t)(hour * 3600 + minute * 60) * (west ? -1 : 1);
	return true;
}

int rfc3339_parse(struct bytes in, uint64_t *ret_ns, struct err *err)
{
	uint64_t days, in_day, ns;
	int64_t offset, s;

	if (!take_date(&in, &days) || !take_mark(&in, "Tt ") || !take_time(&in, &in_day) ||
	    !take_fraction(&in, &ns) || !take_offset(&in, &offset) || in.len > 0)
		return err_set(err, ERR_INVALID, 0, "not a time as RFC 3339 writes it");
	s = (int64_t)(days * DAY_S + in_day) - offset;
	if (s < 0)
		return err_set(err, ERR_INVALID, 0, "a time before 1970");
	*ret_ns = (uint64_t)s * SECOND_NS + ns;
	return 0;
}
