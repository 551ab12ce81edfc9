/* kernel_version.c - a search through the image, in pieces that overlap. */
/* #syscalls: pread64 */
#include "vm/kernel_version.h"

#include <errno.h>

#include "base/bytes.h"

enum { PIECE = 256 * 1024, OVERLAP = 256 }; /* the banner is shorter than the overlap */

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

/* Other texts begin the same way ("Linux version %s"): a digit must follow. */
static bool find_version(struct bytes in, struct bytes *ret)
{
	static const char banner[] = "Linux version ";
	const uint8_t *at;

	while ((at = memmem(in.ptr, in.len, banner, sizeof(banner) - 1))) {
		in = bytes_tail(in, (size_t)(at - in.ptr) + sizeof(banner) - 1);
		if (in.len > 0 && is_digit(in.ptr[0]))
			return bytes_cut(&in, ' ', ret);
	}
	return false;
}

int kernel_version(int fd, char *ret, size_t size, struct err *err)
{
	AUTO(auto_free) uint8_t *piece = malloc(PIECE);
	struct bytes found;
	off_t at = 0;
	ssize_t n;

	if (!piece)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "read the kernel");
	while ((n = pread(fd, piece, PIECE, at)) > 0) {
		if (find_version((struct bytes){ piece, (size_t)n }, &found) &&
		    bytes_to_str(found, ret, size))
			return 0;
		at += n > OVERLAP ? n - OVERLAP : n;
	}
	if (n < 0)
		return err_set(err, ERR_INTERNAL, errno, "read the kernel");
	return err_set(err, ERR_INVALID, 0,
		       "not an uncompressed Linux kernel: it names no version");
}
