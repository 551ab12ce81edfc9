/* close_later.c - see close_later.h. */
/* #syscalls: close */
#include "vm/close_later.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "vm/work.h"

struct closing {
	struct work work;
	int fd;
};

static int run(struct work *w, struct err *err)
{
	(void)err;
	close(take_fd(&CONTAINER_OF(w, struct closing, work)->fd));
	return 0;
}

static void on_done(struct work *w, const struct err *err)
{
	(void)w;
	(void)err;
}

static void free_closing(struct work *w)
{
	struct closing *c = CONTAINER_OF(w, struct closing, work);

	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

void close_later(struct loop *l, int fd)
{
	struct closing *c = fd < 0 ? NULL : calloc(1, sizeof(*c));
	struct err err;

	if (!c) {
		if (fd >= 0)
			close(fd);
		return;
	}
	*c = (struct closing){ { .run = run, .on_done = on_done, .free = free_closing }, fd };
	if (work_start(&c->work, l, &err) < 0)
		log_warn("a file is closed on the loop: %s", err.msg);
	else
		work_cancel(&c->work); /* nobody waits for it */
}
