/* run_out.c - see run_out.h. */
#include "cli/run_out.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "wire/json_skim.h"

enum { PIECE = 4096 }; /* a pipe that is ready takes as much at once */

struct run_out run_out_open(int fd, int signals)
{
	return (struct run_out){ .fd = fd, .signals = signals, .terminal = isatty(fd) == 1 };
}

void run_out_clean(uint8_t *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool two =
			text[i] == 0xc2 && i + 1 < len && text[i + 1] >= 0x80 && text[i + 1] < 0xa0;
		bool plain = text[i] == '\n' || text[i] == '\t' || text[i] == '\r';

		if (two)
			text[i + 1] = '?';
		if (two || text[i] == 127 || (text[i] < ' ' && !plain))
			text[i] = '?';
	}
}

static int wait_ready(const struct run_out *o, struct err *err)
{
	struct pollfd fds[] = { { .fd = o->fd, .events = POLLOUT },
				{ .fd = o->signals, .events = POLLIN } };

	while (poll(fds, COUNT(fds), -1) < 0)
		if (errno != EINTR)
			return err_set(err, ERR_INTERNAL, errno, "poll");
	if (fds[1].revents)
		return err_set(err, ERR_UNAVAILABLE, EINTR, "interrupted");
	return 0;
}

static int write_piece(struct run_out *o, const uint8_t *piece, size_t len, struct err *err)
{
	while (len > 0) {
		ssize_t n;

		if (wait_ready(o, err) < 0)
			return -1;
		n = write(o->fd, piece, len);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return err_set(err, ERR_INTERNAL, errno, "write to standard %s",
				       o->fd == STDERR_FILENO ? "error" : "output");
		if (n > 0) {
			o->in_line = piece[n - 1] != '\n';
			piece += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* Where to cut, so that no character is in two pieces. */
static size_t whole_characters(struct bytes text)
{
	size_t n = text.len < PIECE ? text.len : PIECE;

	for (size_t back = 0; n < text.len && back < JSON_SKIM_CHARACTER && n > 1; back++, n--)
		if ((text.ptr[n] & 0xc0) != 0x80)
			break;
	return n;
}

int run_out_bytes(struct run_out *o, struct bytes text, struct err *err)
{
	uint8_t piece[PIECE];

	while (text.len > 0) {
		size_t n = whole_characters(text);

		memcpy(piece, text.ptr, n);
		if (o->terminal)
			run_out_clean(piece, n);
		if (write_piece(o, piece, n, err) < 0)
			return -1;
		text = bytes_tail(text, n);
	}
	return 0;
}

int run_out_json(struct run_out *o, struct bytes string, struct err *err)
{
	uint8_t piece[PIECE];
	size_t n;

	while ((n = json_skim_take(&string, piece, sizeof(piece))) > 0) {
		if (o->terminal)
			run_out_clean(piece, n);
		if (write_piece(o, piece, n, err) < 0)
			return -1;
	}
	return 0;
}

int run_out_line(struct run_out *o, struct err *err)
{
	return o->in_line ? run_out_bytes(o, BYTES_LIT("\n"), err) : 0;
}
