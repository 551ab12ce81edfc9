/* memory_file.c - see memory_file.h. It says nothing of system calls: not all who could use it do.
 */
#include "base/memory_file.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/own.h"

int memory_file_make(const char *name, struct bytes text, struct err *err)
{
	AUTO(auto_close) int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "a file in memory");
	for (size_t done = 0; done < text.len;) {
		ssize_t n = pwrite(fd, text.ptr + done, text.len - done, (off_t)done);

		if (n <= 0)
			return err_set(err, ERR_EXHAUSTED, errno, "write a file in memory");
		done += (size_t)n;
	}
	return take_fd(&fd);
}

int memory_file_read(int fd, struct buf *text, struct err *err)
{
	struct stat st;
	uint8_t *to;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    (uint64_t)st.st_size > text->max - text->len)
		return err_set(err, ERR_INVALID, 0, "not a file with 1 to %zu bytes",
			       text->max - text->len);
	if (buf_reserve(text, (size_t)st.st_size, &to, err) < 0)
		return -1;
	if (pread(fd, to, (size_t)st.st_size, 0) != st.st_size)
		return err_set(err, ERR_INVALID, errno, "read a file in memory");
	buf_claim(text, (size_t)st.st_size);
	return 0;
}
