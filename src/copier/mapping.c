/* mapping.c - reads the kernel's table of mappings. */
/* #syscalls: pread64 */
#include "copier/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

struct line {
	uint64_t from, to, offset;
	bool copy; /* private and writable */
	struct mapping_file file;
};

static bool hex(struct bytes b, uint64_t *ret)
{
	if (b.len == 0 || b.len > 16)
		return false;
	*ret = 0;
	for (size_t i = 0; i < b.len; i++) {
		uint8_t c = b.ptr[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
						   : -1;

		if (digit < 0)
			return false;
		*ret = *ret << 4 | (uint64_t)digit;
	}
	return true;
}

/* `7f12a4000000-7f12c4000000 rw-p 00000000 fd:01 1835 /memory`: the name is not looked at. */
static bool read_line(struct bytes text, struct line *ret)
{
	struct bytes from, to, mode, offset, major, minor, inode;
	uint64_t dev[2];

	if (!bytes_cut(&text, '-', &from) || !bytes_cut(&text, ' ', &to) ||
	    !bytes_cut(&text, ' ', &mode) || !bytes_cut(&text, ' ', &offset) ||
	    !bytes_cut(&text, ':', &major) || !bytes_cut(&text, ' ', &minor))
		return false;
	if (!bytes_cut(&text, ' ', &inode))
		inode = text;
	if (!hex(from, &ret->from) || !hex(to, &ret->to) || ret->to <= ret->from ||
	    !hex(offset, &ret->offset) || !hex(major, &dev[0]) || !hex(minor, &dev[1]) ||
	    !bytes_to_u64(inode, &ret->file.inode) || mode.len != 4)
		return false;
	ret->copy = mode.ptr[1] == 'w' && mode.ptr[3] == 'p';
	ret->file.major = (uint32_t)dev[0];
	ret->file.minor = (uint32_t)dev[1];
	return true;
}

static bool same_file(const struct mapping_file *a, const struct mapping_file *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

static int add(struct mappings *m, const struct line *l, struct err *err)
{
	size_t i = m->n;

	if (!l->copy)
		return err_set(err, ERR_INVALID, 0, "the memory is mapped, but not as a copy");
	if (m->n == MAPPINGS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "the memory is in too many pieces");
	for (; i > 0 && m->all[i - 1].offset > l->offset; i--)
		m->all[i] = m->all[i - 1];
	m->all[i] = (struct mapping){ l->offset, l->to - l->from, l->from };
	m->n++;
	return 0;
}

int mapping_parse(struct bytes text, const struct mapping_file *f, uint64_t bytes,
		  struct mappings *ret, struct err *err)
{
	uint64_t next = 0;
	struct bytes line;

	ret->n = 0;
	while (bytes_cut(&text, '\n', &line)) {
		struct line l;

		if (!read_line(line, &l))
			return err_set(err, ERR_INVALID, 0, "a line of maps cannot be read");
		if (same_file(&l.file, f) && add(ret, &l, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < ret->n; i++) {
		if (ret->all[i].offset != next)
			return err_set(err, ERR_INVALID, 0,
				       "the memory is mapped twice or in part");
		next += ret->all[i].bytes;
	}
	if (next != bytes)
		return err_set(err, ERR_INVALID, 0, "%lu of %lu bytes of memory are mapped", next,
			       bytes);
	return 0;
}

static int read_all(int maps, struct buf *text, struct err *err)
{
	for (;;) {
		uint8_t *room;
		ssize_t n;

		if (buf_reserve(text, 64 * 1024, &room, err) < 0)
			return -1;
		n = pread(maps, room, 64 * 1024, (off_t)text->len);
		if (n < 0)
			return err_set(err, ERR_UNAVAILABLE, errno, "read maps");
		if (n == 0)
			return 0;
		buf_claim(text, (size_t)n);
	}
}

int mapping_find(int maps, const struct mapping_file *f, uint64_t bytes, struct mappings *ret,
		 struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MAPPING_TEXT_MAX);

	if (read_all(maps, &text, err) < 0)
		return -1;
	return mapping_parse(buf_view(&text), f, bytes, ret, err);
}

static int find_address(int maps, uint64_t at, struct mapping_file *ret, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MAPPING_TEXT_MAX);
	struct bytes rest, line;
	struct line l;

	if (read_all(maps, &text, err) < 0)
		return -1;
	rest = buf_view(&text);
	while (bytes_cut(&rest, '\n', &line))
		if (read_line(line, &l) && l.from <= at && at < l.to) {
			*ret = l.file;
			return 0;
		}
	return err_set(err, ERR_INTERNAL, 0, "an own mapping is not in maps");
}

int mapping_identify(int fd, struct mapping_file *ret, struct err *err)
{
	AUTO(auto_close) int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	int found;

	if (at == MAP_FAILED)
		return err_set(err, ERR_INVALID, errno, "map the memory file");
	found = maps < 0 ? err_set(err, ERR_UNAVAILABLE, errno, "open /proc/self/maps")
			 : find_address(maps, (uint64_t)(uintptr_t)at, ret, err);
	munmap(at, PAGE);
	return found;
}
