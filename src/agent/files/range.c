/* range.c - see range.h. */
#include "agent/files/range.h"

#include "http/date.h"

/* --- conditions --------------------------------------------------------------------------- */

/* The date of a field; false when it is not there, not once, or no date. */
static bool date_of(const struct http1_head *h, const char *name, int64_t *ret)
{
	struct bytes value;

	return http1_find(h, name, &value) == 1 && http_date_parse(value, ret);
}

/* Files have no entity tags here, so only "*" fits one. */
static bool any_tag(struct bytes value)
{
	return bytes_eq(value, BYTES_LIT("*"));
}

static bool precondition_failed(const struct http1_head *h, int64_t mtime)
{
	struct bytes value;
	int64_t t;

	if (http1_find(h, "if-match", &value) > 0)
		return !any_tag(value);
	return date_of(h, "if-unmodified-since", &t) && mtime > t;
}

static bool not_modified(const struct http1_head *h, int64_t mtime)
{
	struct bytes value;
	int64_t t;

	if (http1_find(h, "if-none-match", &value) > 0)
		return any_tag(value);
	return date_of(h, "if-modified-since", &t) && mtime <= t;
}

static bool range_applies(const struct http1_head *h, int64_t mtime)
{
	struct bytes value;
	int64_t t;

	if (http1_find(h, "if-range", &value) == 0)
		return true;
	return date_of(h, "if-range", &t) && t == mtime;
}

/* --- ranges ------------------------------------------------------------------------------- */

static const struct range not_satisfiable = { .kind = RANGE_NOT_SATISFIABLE };

static struct range last_bytes(struct bytes count, uint64_t size)
{
	uint64_t n;

	if (!bytes_to_u64(count, &n) || n == 0)
		return not_satisfiable;
	n = n < size ? n : size;
	return (struct range){ RANGE_PART, size - n, n };
}

/* `first-`, `first-last` or `-count`. */
static struct range one_range(struct bytes text, uint64_t size)
{
	struct bytes first;
	uint64_t from, to = size - 1;

	if (!bytes_cut(&text, '-', &first))
		return not_satisfiable;
	first = bytes_trim(first);
	text = bytes_trim(text);
	if (first.len == 0)
		return last_bytes(text, size);
	if (!bytes_to_u64(first, &from) || (text.len > 0 && !bytes_to_u64(text, &to)) ||
	    from >= size || to < from)
		return not_satisfiable;
	to = to < size ? to : size - 1;
	return (struct range){ RANGE_PART, from, to - from + 1 };
}

struct range range_of(const struct http1_head *h, uint64_t size, int64_t mtime)
{
	static const struct bytes unit = BYTES_LIT("bytes=");
	const struct range all = { RANGE_ALL, 0, size };
	struct bytes value;

	if (precondition_failed(h, mtime))
		return (struct range){ .kind = RANGE_FAILED };
	if (not_modified(h, mtime))
		return (struct range){ .kind = RANGE_NOT_MODIFIED };
	if (size == 0 || http1_find(h, "range", &value) != 1 || !range_applies(h, mtime))
		return all;
	if (!bytes_starts(value, unit))
		return not_satisfiable;
	value = bytes_tail(value, unit.len);
	if (value.len > 0 && memchr(value.ptr, ',', value.len))
		return all;
	return one_range(value, size);
}

/* --- codings ------------------------------------------------------------------------------ */

/* Is it `q=0`, `q=0.0` ... */
static bool is_refusal(struct bytes weight)
{
	weight = bytes_trim(weight);
	if (!bytes_eq_nocase(bytes_head(weight, 3), BYTES_LIT("q=0")))
		return false;
	for (size_t i = 3; i < weight.len; i++)
		if (weight.ptr[i] != '.' && weight.ptr[i] != '0')
			return false;
	return true;
}

/* What an element says of identity: -1 no, 1 yes, 0 nothing. "*" speaks only when nobody else
 * does. */
static void weigh(struct bytes element, int *named, int *other)
{
	struct bytes coding;
	bool weighed = bytes_cut(&element, ';', &coding);
	int says = weighed && is_refusal(element) ? -1 : 1;

	coding = bytes_trim(weighed ? coding : element);
	if (bytes_eq_nocase(coding, BYTES_LIT("identity")))
		*named = says;
	else if (bytes_eq(coding, BYTES_LIT("*")))
		*other = says;
}

bool range_takes_identity(const struct http1_head *h)
{
	struct bytes list, element;
	int named = 0, other = 0;

	if (http1_find(h, "accept-encoding", &list) != 1)
		return true;
	while (bytes_cut(&list, ',', &element))
		weigh(element, &named, &other);
	weigh(list, &named, &other);
	return named != 0 ? named > 0 : other >= 0;
}
