/* given.c - see given.h. */
#include "images/given.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "wire/sha256.h"

enum { MODE = 0600 };

bool given_by(int dir, const char *hex, const char *giver)
{
	AUTO(auto_close) int fd = openat(dir, hex, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint8_t one[SHA256_SIZE], all[GIVEN_MAX * SHA256_SIZE];
	ssize_t n;

	if (fd < 0 || !giver[0])
		return false;
	sha256_of(bytes_str(giver), one);
	n = pread(fd, all, sizeof(all), 0);
	for (ssize_t at = 0; at + SHA256_SIZE <= n; at += SHA256_SIZE)
		if (memcmp(all + at, one, sizeof(one)) == 0)
			return true;
	return false;
}

/* Several may write at once: each is one write, at the end. */
static bool add(int fd, const char *giver)
{
	uint8_t one[SHA256_SIZE];
	struct stat st;

	sha256_of(bytes_str(giver), one);
	if (fstat(fd, &st) < 0 || (st.st_size >= GIVEN_MAX * SHA256_SIZE && ftruncate(fd, 0) < 0))
		return false;
	return write(fd, one, sizeof(one)) == sizeof(one);
}

void given_note(int dir, const char *hex, const char *giver)
{
	AUTO(auto_close) int fd = -1;

	if (!giver[0] || given_by(dir, hex, giver))
		return;
	fd = openat(dir, hex, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, MODE);
	if (fd < 0 || !add(fd, giver))
		log_warn("it is not noted who gave %.12s: %s", hex, strerror(errno));
}
