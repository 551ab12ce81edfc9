/* date.c - without strftime, which looks into a locale: every answer has a date. */
#include "http/date.h"

#include <stdio.h>
#include <time.h>

static const char days[] = "SunMonTueWedThuFriSat";
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

void http_date_put(int64_t seconds, char ret[static HTTP_DATE_MAX])
{
	const int64_t last = 253402300799; /* the year 9999 has four digits */
	time_t t = (time_t)(seconds < 0 ? 0 : seconds > last ? last : seconds);
	struct tm tm = { 0 };

	(void)gmtime_r(&t, &tm);
	snprintf(ret, HTTP_DATE_MAX, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
		 days + 3 * (tm.tm_wday % 7), tm.tm_mday, months + 3 * (tm.tm_mon % 12),
		 tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static bool number(struct bytes text, size_t at, size_t n, int *ret)
{
	uint64_t v;

	if (!bytes_to_u64(bytes_head(bytes_tail(text, at), n), &v) || v > 9999)
		return false;
	*ret = (int)v;
	return true;
}

static int month_of(struct bytes text)
{
	for (int i = 0; i < 12; i++)
		if (memcmp(text.ptr + 8, months + 3 * i, 3) == 0)
			return i;
	return -1;
}

/* Reads it loosely, then asks whether writing the result gives the same text. */
bool http_date_parse(struct bytes text, int64_t *ret)
{
	char again[HTTP_DATE_MAX];
	struct tm tm = { 0 };
	int year;
	time_t t;

	if (text.len != 29)
		return false;
	tm.tm_mon = month_of(text);
	if (tm.tm_mon < 0 || !number(text, 5, 2, &tm.tm_mday) || !number(text, 12, 4, &year) ||
	    !number(text, 17, 2, &tm.tm_hour) || !number(text, 20, 2, &tm.tm_min) ||
	    !number(text, 23, 2, &tm.tm_sec))
		return false;
	tm.tm_year = year - 1900;
	t = timegm(&tm);
	http_date_put((int64_t)t, again);
	*ret = (int64_t)t;
	return bytes_eq(text, bytes_str(again));
}
