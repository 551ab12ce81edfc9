/* bytes.c - the only place that moves bytes by pointer. */
/* #parses: pieces of text and decimal numbers; from those who call it, who say so themselves */
/* What malloc, and libc by itself, need. */
/* #syscalls: brk mmap mremap munmap mprotect madvise futex sched_getaffinity getpid gettid
 * tgkill rt_sigaction rt_sigprocmask rt_sigreturn restart_syscall exit exit_group
 * close */
#include "base/bytes.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <strings.h>

#include "base/wipe.h"

enum { FIRST_CAP = 256 };

bool bytes_eq_nocase(struct bytes a, struct bytes b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (byte_lower(a.ptr[i]) != byte_lower(b.ptr[i]))
			return false;
	return true;
}

bool bytes_eq_secret(struct bytes a, struct bytes b)
{
	unsigned int differ = 0;

	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		differ |= (unsigned int)(a.ptr[i] ^ b.ptr[i]);
	return differ == 0;
}

bool bytes_starts(struct bytes b, struct bytes prefix)
{
	return b.len >= prefix.len && bytes_eq(bytes_head(b, prefix.len), prefix);
}

bool bytes_cut(struct bytes *in, uint8_t sep, struct bytes *ret)
{
	const uint8_t *at = in->len ? memchr(in->ptr, sep, in->len) : NULL;
	size_t n;

	if (!at)
		return false;
	n = (size_t)(at - in->ptr);
	*ret = bytes_head(*in, n);
	*in = bytes_tail(*in, n + 1);
	return true;
}

bool bytes_next(struct bytes *in, uint8_t sep, struct bytes *ret)
{
	if (in->len == 0)
		return false;
	if (!bytes_cut(in, sep, ret)) {
		*ret = *in;
		*in = (struct bytes){ 0 };
	}
	return true;
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

struct bytes bytes_trim(struct bytes b)
{
	while (b.len > 0 && is_blank(b.ptr[0]))
		b = bytes_tail(b, 1);
	while (b.len > 0 && is_blank(b.ptr[b.len - 1]))
		b.len--;
	return b;
}

bool bytes_to_u64(struct bytes b, uint64_t *ret)
{
	uint64_t v = 0;

	if (b.len == 0)
		return false;
	for (size_t i = 0; i < b.len; i++) {
		uint8_t c = b.ptr[i];

		if (c < '0' || c > '9' || __builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(c - '0'), &v))
			return false;
	}
	*ret = v;
	return true;
}

bool bytes_to_str(struct bytes b, char *ret, size_t size)
{
	if (b.len >= size || (b.len > 0 && memchr(b.ptr, 0, b.len)))
		return false;
	if (b.len > 0)
		memcpy(ret, b.ptr, b.len);
	ret[b.len] = '\0';
	return true;
}

/* realloc() may leave a copy behind. */
static uint8_t *move_secret(const struct buf *b, size_t cap)
{
	uint8_t *grown = malloc(cap);

	if (!grown)
		return NULL;
	if (b->len > 0)
		memcpy(grown, b->ptr, b->len);
	wipe_free(b->ptr);
	return grown;
}

static int buf_grow(struct buf *b, size_t want, struct err *err)
{
	size_t cap = b->cap < FIRST_CAP ? FIRST_CAP : b->cap;
	uint8_t *grown;

	while (cap < want)
		cap = cap > b->max / 2 ? b->max : cap * 2;
	if (cap > b->max)
		cap = b->max;
	grown = b->secret ? move_secret(b, cap) : realloc(b->ptr, cap);
	if (!grown)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "grow buffer to %zu bytes", cap);
	b->ptr = grown;
	b->cap = cap;
	return 0;
}

int buf_reserve(struct buf *b, size_t n, uint8_t **ret, struct err *err)
{
	assert(b->len <= b->cap && b->cap <= b->max);

	if (n > b->max - b->len)
		return err_set(err, ERR_EXHAUSTED, 0, "buffer limit of %zu bytes reached", b->max);
	if (b->len + n > b->cap && buf_grow(b, b->len + n, err) < 0)
		return -1;
	*ret = b->ptr ? b->ptr + b->len : NULL;
	return 0;
}

void buf_claim(struct buf *b, size_t n)
{
	assert(n <= b->cap - b->len);
	b->len += n;
}

int buf_add(struct buf *b, struct bytes add, struct err *err)
{
	uint8_t *room;

	if (buf_reserve(b, add.len, &room, err) < 0)
		return -1;
	if (add.len > 0)
		memcpy(room, add.ptr, add.len);
	buf_claim(b, add.len);
	return 0;
}

int buf_add_u64(struct buf *b, uint64_t n, struct err *err)
{
	uint8_t digits[20]; /* of the largest */
	size_t at = sizeof(digits);

	do {
		digits[--at] = (uint8_t)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	return buf_add(b, (struct bytes){ digits + at, sizeof(digits) - at }, err);
}

int buf_printf(struct buf *b, struct err *err, const char *fmt, ...)
{
	uint8_t *room;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return err_set(err, ERR_INTERNAL, errno, "format text");
	/* one more for the NUL that vsnprintf writes and nobody claims */
	if (buf_reserve(b, (size_t)n + 1, &room, err) < 0)
		return -1;
	va_start(ap, fmt);
	(void)vsnprintf((char *)room, (size_t)n + 1, fmt, ap);
	va_end(ap);
	buf_claim(b, (size_t)n);
	return 0;
}

void buf_drop(struct buf *b, size_t n)
{
	assert(n <= b->len);
	if (n > 0 && n < b->len)
		memmove(b->ptr, b->ptr + n, b->len - n);
	b->len -= n;
}

void buf_clear(struct buf *b)
{
	b->len = 0;
}

void buf_done(struct buf *b)
{
	if (b->secret)
		wipe_free(b->ptr);
	else
		free(b->ptr);
	*b = (struct buf){ 0 };
}
