/* loop.c - libuv's loop from birth to a death that leaves nothing behind. */
/* What libuv needs. */
/* #syscalls: epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 pipe2 read write close
 * fcntl ioctl clock_gettime rt_sigaction rt_sigprocmask */
#include "net/loop.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>

#include "base/wipe.h"
#include "net/fd_stream.h"
#include "net/loop_inside.h"
#include "net/turn_end.h"

enum { LAST_TURNS = 16 }; /* closing one thing may defer another, a few deep */

/* Before it waits for something new to happen, and hardly deeper than loop_run() itself. */
static void on_turn(uv_prepare_t *count)
{
	struct loop *l = CONTAINER_OF(count, struct loop, count);

	turn_ends_run(l);
	l->turns++;
	if (!l->forgets)
		return;
	l->forgets = false;
	wipe(l->input, sizeof(l->input));
	wipe_stack();
}

int loop_open(struct loop **ret, struct err *err)
{
	AUTO(auto_free) struct loop *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate loop");
	rc = uv_loop_init(&l->uv);
	if (rc < 0)
		return err_set(err, ERR_INTERNAL, -rc, "make an event loop");
	signal(SIGPIPE, SIG_IGN);
	/* neither can fail: they only fill in memory */
	(void)uv_timer_init(&l->uv, &l->clock);
	(void)uv_idle_init(&l->uv, &l->soon);
	(void)uv_prepare_init(&l->uv, &l->count);
	(void)uv_prepare_start(&l->count, on_turn);
	uv_unref((uv_handle_t *)&l->count); /* nobody waits for it */
	l->linger_ms = STREAM_LINGER_MS;
	*ret = TAKE(l);
	return 0;
}

static bool run(struct loop *l, uv_run_mode mode)
{
	int more;

	assert(!l->running);
	l->running = true;
	uv_update_time(&l->uv);
	more = uv_run(&l->uv, mode);
	l->running = false;
	return more != 0;
}

void loop_run(struct loop *l)
{
	(void)run(l, UV_RUN_DEFAULT);
}

bool loop_turn(struct loop *l)
{
	return run(l, UV_RUN_ONCE);
}

void loop_stop(struct loop *l)
{
	uv_stop(&l->uv);
}

static void last_turns(struct loop *l)
{
	for (int i = 0; i < LAST_TURNS && uv_loop_alive(&l->uv); i++)
		uv_run(&l->uv, UV_RUN_NOWAIT);
}

void loop_free(struct loop *l)
{
	int rc;

	if (!l)
		return;
	assert(!l->running);
	while (l->lingering)
		fd_stream_cut(l->lingering);
	last_turns(l);
	assert(!l->top && !l->ends && "a timer still runs");
	uv_close((uv_handle_t *)&l->clock, NULL);
	uv_close((uv_handle_t *)&l->soon, NULL);
	uv_close((uv_handle_t *)&l->count, NULL);
	last_turns(l);
	rc = uv_loop_close(&l->uv);
	if (rc != 0)
		uv_print_all_handles(&l->uv, stderr);
	assert(rc == 0 && "a handle was not closed");
	free(l);
}

void loop_forget(struct loop *l)
{
	l->forgets = true;
}

uint64_t loop_turns(const struct loop *l)
{
	return l->turns;
}

uint64_t loop_now_ms(const struct loop *l)
{
	return uv_now(&l->uv);
}
