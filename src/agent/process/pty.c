/* pty.c - system calls instead of the library's, whose helpers want to start programs. */
#include "agent/process/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

int pty_resize(int master, const struct pty_size *size, struct err *err)
{
	struct winsize now = { 0 };

	if (ioctl(master, TIOCGWINSZ, &now) < 0)
		return err_set(err, ERR_INTERNAL, errno, "read the size of a terminal");
	if (size->cols > 0)
		now.ws_col = size->cols;
	if (size->rows > 0)
		now.ws_row = size->rows;
	if (ioctl(master, TIOCSWINSZ, &now) < 0)
		return err_set(err, ERR_INTERNAL, errno, "set the size of a terminal");
	return 0;
}

/* Erasing a character shall erase all of its bytes. */
static void speak_utf8(int slave)
{
	struct termios t;

	if (tcgetattr(slave, &t) < 0)
		return;
	t.c_iflag |= IUTF8;
	(void)tcsetattr(slave, TCSANOW, &t);
}

int pty_open(const struct pty_size *size, uid_t owner, int *ret_master, int *ret_slave,
	     struct err *err)
{
	AUTO(auto_close) int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	AUTO(auto_close) int slave = -1;
	const struct pty_size whole = { size->cols > 0 ? size->cols : PTY_COLS,
					size->rows > 0 ? size->rows : PTY_ROWS };
	int unlocked = 0;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "open a terminal");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "open a terminal");
	if (fchown(slave, owner, (gid_t)-1) < 0 && errno != EPERM) /* a tester is nobody special */
		return err_set(err, ERR_INTERNAL, errno, "give a terminal to its user");
	speak_utf8(slave);
	if (pty_resize(master, &whole, err) < 0)
		return -1;
	*ret_master = take_fd(&master);
	*ret_slave = take_fd(&slave);
	return 0;
}
