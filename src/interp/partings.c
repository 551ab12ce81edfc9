/* partings.c - see partings.h. */
#include "interp/partings.h"

#include <fcntl.h>

#include "base/bytes.h"
#include "base/own.h"

enum { LINE_MAX_BYTES = 32 };

uint64_t partings_count(const char *file)
{
	AUTO(auto_close) int fd = open(file, O_RDONLY | O_CLOEXEC);
	uint8_t text[LINE_MAX_BYTES];
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));
	struct bytes rest, number;
	uint64_t n = 0;

	if (len <= 0)
		return 0;
	rest = (struct bytes){ text, (size_t)len };
	if (bytes_cut(&rest, '\n', &number))
		(void)bytes_to_u64(number, &n);
	return n;
}
