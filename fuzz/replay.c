/* replay.c - run a fuzz target over a folder of inputs, so that the corpus is a unit test under
 * any compiler. A folder that is missing or empty is a failure: it would test nothing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "fuzz/must.h"

enum { INPUT_MAX = 1 << 20 };

static void auto_closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static int read_input(int dir, const char *name, struct buf *ret, struct err *err)
{
	AUTO(auto_close) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	uint8_t *room;
	ssize_t got;

	if (fd < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open %s", name);
	do {
		if (buf_reserve(ret, 4096, &room, err) < 0)
			return -1;
		got = read(fd, room, 4096);
		if (got < 0)
			return err_set(err, ERR_UNAVAILABLE, errno, "read %s", name);
		buf_claim(ret, (size_t)got);
	} while (got > 0);
	return 0;
}

static int replay(int dir, const char *name, struct err *err)
{
	AUTO(buf_done) struct buf input = BUF_MAX(INPUT_MAX);

	fprintf(stderr, "%s\n", name); /* the last one named is the one that broke a promise */
	if (read_input(dir, name, &input, err) < 0)
		return -1;
	return LLVMFuzzerTestOneInput(input.ptr, input.len);
}

int main(int argc, char **argv)
{
	AUTO(auto_closedir) DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	const struct dirent *entry;
	struct err err = { 0 };
	size_t n = 0;

	if (!dir) {
		fprintf(stderr, "usage: replay FOLDER: %s\n", argc == 2 ? "cannot open it" : "");
		return EXIT_FAILURE;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (replay(dirfd(dir), entry->d_name, &err) < 0) {
			fprintf(stderr, "%s\n", err.msg);
			return EXIT_FAILURE;
		}
		n++;
	}
	printf("%zu inputs\n", n);
	return n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
