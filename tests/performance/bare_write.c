/* bare_write.c - the floor to compare a pause with: so many bytes copied, written and synced, and
 *nothing else.
 *
 *	bare_write FILE
 *
 * For each number on standard input it takes the time of that many bytes: copied from one place in
 *memory to another, written to a new FILE, and fdatasync'ed. Prints the steps in microseconds as
 *one line of JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	PIECE = 1 << 20
}; /* copied, then written: what was copied is still in the processor's cache */

static const size_t most = (size_t)4 << 30;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bare_write: %s: %s\n", what, strerrordesc_np(errno));
	exit(1);
}

/* Memory that is there, as a guest's is. */
static uint8_t *some_memory(size_t bytes)
{
	uint8_t *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (m == MAP_FAILED)
		die("memory");
	memset(m, 0x5a, bytes);
	return m;
}

static void write_all(int fd, const uint8_t *from, size_t bytes)
{
	while (bytes > 0) {
		ssize_t put = write(fd, from, bytes);

		if (put <= 0)
			die("write");
		from += put;
		bytes -= (size_t)put;
	}
}

static void measure(const char *path, size_t bytes)
{
	uint8_t *from = some_memory(bytes), *to = some_memory(PIECE);
	uint64_t begin = clock_mono_ns(), written, synced;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		die(path);
	for (size_t at = 0; at < bytes; at += PIECE) {
		size_t n = bytes - at < PIECE ? bytes - at : PIECE;

		memcpy(to, from + at, n);
		write_all(fd, to, n);
	}
	written = clock_mono_ns();
	if (fdatasync(fd) < 0)
		die("fdatasync");
	synced = clock_mono_ns();
	printf("{\"written\":%lu,\"synced\":%lu,\"total\":%lu}\n", (written - begin) / 1000,
	       (synced - written) / 1000, (synced - begin) / 1000);
	fflush(stdout);
	close(fd);
	unlink(path);
	munmap(from, bytes);
	munmap(to, PIECE);
}

int main(int argc, char **argv)
{
	char line[32];

	if (argc != 2) {
		fprintf(stderr, "usage: bare_write FILE\n");
		return 2;
	}
	while (fgets(line, sizeof(line), stdin)) {
		size_t bytes = strtoull(line, NULL, 10);

		if (bytes == 0 || bytes > most)
			return 2;
		measure(argv[1], bytes);
	}
	return 0;
}
