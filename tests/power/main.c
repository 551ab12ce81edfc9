/* main.c - lossy-fs: mounts the store, serves it, and cuts its power when told.
 *
 *	lossy-fs STORE MOUNT_POINT
 *
 * Says `mounted`, then takes commands, one a line, and answers each with a line:
 *	lie NAME       fsync of NAME and NAME.new does nothing from now on; no NAME: none
 *	cut HOW SEED   from here on no process is answered; the store's tree is what was durable
 * It ends when its input does, and with it the mount.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "answers.h"

enum { COMMAND_MAX = 512 };

/* The word at the beginning of what is left of a line; "" at its end. */
static const char *next_word(char **line)
{
	char *word = *line + strspn(*line, " \n");
	size_t n = strcspn(word, " \n");

	*line = word + n + (word[n] != '\0');
	word[n] = '\0';
	return word;
}

/* False: the power is off. */
static bool command(struct store *s, char *line)
{
	const char *verb = next_word(&line), *what = next_word(&line);
	int rc;

	if (strcmp(verb, "lie") == 0) {
		snprintf(s->lie, sizeof(s->lie), "%s", what);
		puts("lies");
		return true;
	}
	if (strcmp(verb, "cut") != 0) {
		puts("what?");
		return true;
	}
	rc = cut(s, what, strtoull(next_word(&line), NULL, 10));
	printf("%s\n", rc < 0 ? strerror(-rc) : "cut");
	return false;
}

static void serve(struct answers *a)
{
	static _Alignas(8) uint8_t request[ANSWERS_REQUEST_MAX];
	struct pollfd fds[] = { { .fd = 0, .events = POLLIN },
				{ .fd = a->fuse, .events = POLLIN } };
	char line[COMMAND_MAX];
	nfds_t n_fds = 2; /* without power: commands alone */

	for (;;) {
		if (poll(fds, n_fds, -1) < 0 && errno != EINTR)
			return;
		if (fds[0].revents) {
			if (!fgets(line, sizeof(line), stdin))
				return;
			if (!command(a->store, line))
				n_fds = 1;
		} else if (n_fds == 2 && fds[1].revents) {
			ssize_t n = read(a->fuse, request, sizeof(request));

			if (n >= 0)
				answers_give(a, request, (size_t)n);
			else if (errno != EINTR && errno != EAGAIN && errno != ENOENT)
				return;
		}
	}
}

static int mount_it(const char *at)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", fd);
	if (fd < 0 || mount("lossy", at, "fuse.lossy", MS_NOSUID | MS_NODEV, options) < 0)
		return -errno;
	return fd;
}

int main(int argc, char **argv)
{
	struct answers a = { .fuse = -1 };
	struct store s;
	int rc;

	if (argc != 3) {
		fprintf(stderr, "usage: lossy-fs STORE MOUNT_POINT\n");
		return 2;
	}
	setvbuf(stdin, NULL, _IONBF, 0); /* poll() knows of what is not read */
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = store_open(&s, argv[1]);
	if (rc == 0)
		rc = tree_read(&s);
	if (rc == 0)
		rc = mount_it(argv[2]);
	if (rc < 0) {
		fprintf(stderr, "lossy-fs: %s at %s: %s\n", argv[1], argv[2], strerror(-rc));
		return 1;
	}
	a.store = &s;
	a.fuse = rc;
	puts("mounted");
	serve(&a);
	umount2(argv[2], MNT_DETACH); /* somebody may still be in it */
	_exit(0);                     /* what it holds is not worth tidying */
}
