/* tar.c - see tar.h. */
#include "wire/tar.h"

#include <stdio.h>

/* Where a header has what, as POSIX says for ustar. */
enum {
	NAME_AT = 0,
	NAME_LEN = 100,
	SIZE_AT = 124,
	SIZE_LEN = 12,
	SUM_AT = 148,
	SUM_LEN = 8,
	TYPE_AT = 156,
	LINK_AT = 157,
	LINK_LEN = 100,
	MAGIC_AT = 257,
	PREFIX_AT = 345,
	PREFIX_LEN = 155,
	BINARY = 0x80, /* GNU: a number that is not written in digits */
};

static int broken(struct err *err)
{
	return err_set(err, ERR_INVALID, 0, "the archive is damaged, or no tar file");
}

/* Digits of eight, with spaces or NULs around them; GNU writes large ones as they are. */
static bool number(struct bytes field, uint64_t *ret)
{
	uint64_t n = 0;
	size_t i = 0;

	if (field.ptr[0] & BINARY) {
		if (field.ptr[0] != BINARY)
			return false; /* negative */
		for (i = 1; i < field.len; i++) {
			if (n > TAR_SIZE_MAX)
				return false;
			n = n << 8 | field.ptr[i];
		}
		*ret = n;
		return n <= TAR_SIZE_MAX;
	}
	while (i < field.len && field.ptr[i] == ' ')
		i++;
	for (; i < field.len && field.ptr[i] >= '0' && field.ptr[i] <= '7'; i++)
		n = n << 3 | (uint64_t)(field.ptr[i] - '0');
	for (; i < field.len; i++)
		if (field.ptr[i] != ' ' && field.ptr[i] != '\0')
			return false;
	*ret = n;
	return n <= TAR_SIZE_MAX;
}

static bool sum_ok(const uint8_t *block)
{
	uint64_t said, sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= SUM_AT && i < SUM_AT + SUM_LEN ? ' ' : block[i];
	return number((struct bytes){ block + SUM_AT, SUM_LEN }, &said) && said == sum;
}

static bool is_zero(const uint8_t *block)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

/* Up to its NUL, if it has one. */
static struct bytes field(const uint8_t *block, size_t at, size_t len)
{
	return (struct bytes){ block + at, strnlen((const char *)block + at, len) };
}

static void names(struct tar *t, const uint8_t *block)
{
	struct bytes name = field(block, NAME_AT, NAME_LEN);
	struct bytes prefix = field(block, PREFIX_AT, PREFIX_LEN);
	struct bytes link = field(block, LINK_AT, LINK_LEN);

	if (memcmp(block + MAGIC_AT, "ustar", 6) !=
	    0) /* GNU's own has a space in it, and no prefix */
		prefix.len = 0;
	snprintf(t->name, sizeof(t->name), "%.*s%s%.*s", (int)prefix.len, (const char *)prefix.ptr,
		 prefix.len > 0 ? "/" : "", (int)name.len, (const char *)name.ptr);
	snprintf(t->link, sizeof(t->link), "%.*s", (int)link.len, (const char *)link.ptr);
	if (t->has_name)
		memcpy(t->name, t->next_name, sizeof(t->name));
	if (t->has_link)
		memcpy(t->link, t->next_link, sizeof(t->link));
	if (t->has_size)
		t->size = t->next_size;
	t->has_name = t->has_link = t->has_size = false;
}

static int about_next(struct tar *t, uint8_t type, enum tar_step *ret, struct err *err)
{
	if (t->size > TAR_TEXT_MAX)
		return err_set(err, ERR_INVALID, 0, "a name in the archive is too long");
	t->kind = type;
	*ret = TAR_TEXT;
	return 0;
}

int tar_block(struct tar *t, const uint8_t block[static TAR_BLOCK], enum tar_step *ret,
	      struct err *err)
{
	uint8_t type = block[TYPE_AT];

	if (is_zero(block)) {
		t->size = 0;
		*ret = TAR_END;
		return 0;
	}
	if (!sum_ok(block) || !number((struct bytes){ block + SIZE_AT, SIZE_LEN }, &t->size))
		return broken(err);
	if (type == 'L' || type == 'K' || type == 'x')
		return about_next(t, type, ret, err);
	if (type == 'g') {
		*ret = TAR_SKIP;
		return 0;
	}
	names(t, block);
	t->symbolic = type == '2';
	if (type != '1' && type != '2')
		t->link[0] = '\0';
	else
		t->size = 0; /* whatever it says, nothing follows a link */
	*ret = type == '0' || type == '\0' || type == '1' || type == '2' ? TAR_FILE : TAR_SKIP;
	if (type >= '3' && type <= '6')
		t->size = 0; /* nor a device, a folder or a pipe */
	return 0;
}

/* --- what is about the next file -------------------------------------------------------------- */

static int keep(struct bytes text, char ret[static TAR_NAME_MAX + 1], bool *has, struct err *err)
{
	if (text.len == 0 || !bytes_to_str(text, ret, TAR_NAME_MAX + 1))
		return err_set(err, ERR_INVALID, 0, "a name in the archive is too long");
	*has = true;
	return 0;
}

static int pax_record(struct tar *t, struct bytes record, struct err *err)
{
	struct bytes key;

	if (!bytes_cut(&record, '=', &key))
		return broken(err);
	if (bytes_eq(key, BYTES_LIT("path")))
		return keep(record, t->next_name, &t->has_name, err);
	if (bytes_eq(key, BYTES_LIT("linkpath")))
		return keep(record, t->next_link, &t->has_link, err);
	if (!bytes_eq(key, BYTES_LIT("size")))
		return 0;
	if (!bytes_to_u64(record, &t->next_size) || t->next_size > TAR_SIZE_MAX)
		return broken(err);
	t->has_size = true;
	return 0;
}

/* "LENGTH KEY=VALUE\n", where the length is that of the whole. */
static int pax(struct tar *t, struct bytes text, struct err *err)
{
	while (text.len > 0) {
		struct bytes rest = text, digits;
		uint64_t len;
		size_t head;

		if (!bytes_cut(&rest, ' ', &digits) || !bytes_to_u64(digits, &len))
			return broken(err);
		head = digits.len + 1;
		if (len <= head || len > text.len || text.ptr[len - 1] != '\n')
			return broken(err);
		if (pax_record(t, bytes_head(rest, (size_t)len - head - 1), err) < 0)
			return -1;
		text = bytes_tail(text, (size_t)len);
	}
	return 0;
}

int tar_text(struct tar *t, struct bytes text, struct err *err)
{
	if (t->kind == 'x')
		return pax(t, text, err);
	if (text.len > 0 && text.ptr[text.len - 1] == '\0')
		text.len--;
	if (t->kind == 'L')
		return keep(text, t->next_name, &t->has_name, err);
	return keep(text, t->next_link, &t->has_link, err);
}
