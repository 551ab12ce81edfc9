/* kernel.c - start a kernel, ask it until it answers, hear of its end. */
#include "interp/kernel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <zmq.h>

#include "base/folder.h"
#include "base/log.h"
#include "base/random.h"
#include "interp/kernel_start.h"

enum { REAP_MAX = 64, KEY_BYTES = 32, SESSION_BYTES = 16 };

static pid_t to_reap[REAP_MAX]; /* 0: free. Of processes that were killed */

void kernels_reap(void)
{
	for (size_t i = 0; i < REAP_MAX; i++)
		if (to_reap[i] && waitpid(to_reap[i], NULL, WNOHANG) != 0)
			to_reap[i] = 0;
}

static void reap_later(pid_t pid)
{
	for (size_t i = 0; i < REAP_MAX; i++)
		if (!to_reap[i]) {
			to_reap[i] = pid;
			kernels_reap();
			return;
		}
	log_warn("process %d is left to itself", pid);
}

static int send_message(struct kernel *k, enum kernel_channel to, const char *type,
			const json_t *content, char ret_id[MESSAGE_ID_SIZE], struct err *err)
{
	AUTO(kernel_frames_done) struct kernel_frames f;

	snprintf(ret_id, MESSAGE_ID_SIZE, "%s-%lu", k->session, (unsigned long)++k->asked);
	if (kernel_message_encode(bytes_str(k->key), type, ret_id, k->session, content, &f, err) <
	    0)
		return -1;
	return zsock_send(&k->channel[to], f.frames, MESSAGE_FRAMES, err);
}

int kernel_execute(struct kernel *k, struct bytes code, bool silent, char ret_id[MESSAGE_ID_SIZE],
		   struct err *err)
{
	AUTO(json_decrefp)
	json_t *content = json_pack("{s:o, s:b, s:b, s:{}, s:b, s:b}", "code", json_text(code),
				    "silent", silent, "store_history", !silent, "user_expressions",
				    "allow_stdin", 0, "stop_on_error", 0);

	if (!content)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a request to the kernel");
	return send_message(k, KERNEL_SHELL, "execute_request", content, ret_id, err);
}

void kernel_interrupt(struct kernel *k)
{
	AUTO(json_decrefp) json_t *nothing = json_object();
	char id[MESSAGE_ID_SIZE];
	struct err err;

	if (k->pid <= 0)
		return;
	if (!k->interrupt_message)
		(void)kill(-k->pid, SIGINT); /* it leads a group: what it started is told too */
	else if (send_message(k, KERNEL_CONTROL, "interrupt_request", nothing, id, &err) < 0)
		log_warn("interrupt a kernel: %s", err.msg);
}

void kernel_pause(struct kernel *k, bool on)
{
	zsock_pause(&k->channel[KERNEL_IOPUB], on);
}

/* The first question waits for the kernel to come, and is enough for an answer. But what the kernel
 * publishes meanwhile is lost until it knows of us: then it is asked again. (Questions that pile up
 * while a slow kernel starts would all be answered before the first execution.) */
static void on_ask(struct timer *t)
{
	struct kernel *k = CONTAINER_OF(t, struct kernel, ask);
	AUTO(json_decrefp) json_t *nothing = json_object();
	char id[MESSAGE_ID_SIZE];
	struct err err;

	if (!k->answered && k->ticks++ % KERNEL_ASK_TICKS != 0)
		return;
	if (send_message(k, KERNEL_SHELL, "kernel_info_request", nothing, id, &err) < 0)
		log_debug("%s", err.msg);
}

/* True: it became ready by this. */
static bool learn(struct kernel *k, enum kernel_channel from, const struct kernel_message *m)
{
	size_t session = strlen(k->session);

	if (k->ready || strncmp(m->parent, k->session, session) != 0)
		return false;
	if (from == KERNEL_SHELL && strcmp(m->type, "kernel_info_reply") == 0)
		k->answered = true;
	if (from == KERNEL_IOPUB)
		k->heard = true;
	return k->answered && k->heard;
}

static void take_message(struct kernel *k, enum kernel_channel from, const struct bytes *frames,
			 size_t n)
{
	struct kernel_message m;
	struct err err;

	if (kernel_message_decode(bytes_str(k->key), frames, n, &m, &err) < 0) {
		log_warn("kernel %d: %s", k->pid, err.msg);
		return;
	}
	if (learn(k, from, &m)) {
		k->ready = true;
		timer_stop(&k->ask);
		timer_stop(&k->deadline);
		k->ops->on_ready(k);
	} else if (k->ready) {
		k->ops->on_message(k, from, &m);
	}
	kernel_message_done(&m);
}

static void on_shell(struct zsock *z, const struct bytes *frames, size_t n)
{
	take_message(CONTAINER_OF(z, struct kernel, channel[KERNEL_SHELL]), KERNEL_SHELL, frames,
		     n);
}

static void on_iopub(struct zsock *z, const struct bytes *frames, size_t n)
{
	take_message(CONTAINER_OF(z, struct kernel, channel[KERNEL_IOPUB]), KERNEL_IOPUB, frames,
		     n);
}

static void on_control(struct zsock *z, const struct bytes *frames, size_t n)
{
	(void)z, (void)frames, (void)n; /* that it was interrupted is seen by its effect */
}

static void on_death(struct watch *w, unsigned int events)
{
	struct kernel *k = CONTAINER_OF(w, struct kernel, death);
	struct err why;
	int status = 0;

	(void)events;
	/* what it started goes with it, as at a restart. Before its number can be another's. */
	(void)kill(-k->pid, SIGKILL);
	if (waitpid(k->pid, &status, WNOHANG) == 0)
		return;
	k->pid = 0;
	watch_close(&k->death);
	if (WIFSIGNALED(status))
		err_set(&why, ERR_UNAVAILABLE, 0, "signal %d", WTERMSIG(status));
	else
		err_set(&why, ERR_UNAVAILABLE, 0, "exit status %d", WEXITSTATUS(status));
	k->ops->on_death(k, &why);
}

static void on_deadline(struct timer *t)
{
	struct kernel *k = CONTAINER_OF(t, struct kernel, deadline);
	struct err why;

	err_set(&why, ERR_TIMEOUT, 0, "not ready after %d s", KERNEL_START_MS / 1000);
	k->ops->on_death(k, &why);
}

static int open_channels(struct kernel *k, const struct kernel_ends *ends, struct err *err)
{
	static const int types[] = { ZMQ_DEALER, ZMQ_SUB, ZMQ_DEALER };
	static zsock_message_fn *const calls[] = { on_shell, on_iopub, on_control };

	for (int i = 0; i < KERNEL_CHANNELS; i++)
		if (zsock_open(&k->channel[i], k->place->loop, k->place->zmq, types[i], ends->at[i],
			       calls[i], err) < 0)
			return -1;
	return 0;
}

static int begin(struct kernel *k, const struct kernel_spec *spec, const char *cwd, struct err *err)
{
	struct kernel_ends ends;

	if (kernel_start(k, spec, cwd, &ends, err) < 0)
		return -1;
	k->pidfd = (int)syscall(SYS_pidfd_open, k->pid, 0);
	if (k->pidfd < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "watch a process");
	if (watch_open(&k->death, k->place->loop, k->pidfd, WATCH_READ, on_death, err) < 0 ||
	    open_channels(k, &ends, err) < 0)
		return -1;
	timer_repeat(&k->ask, KERNEL_ASK_MS);
	timer_start(&k->deadline, KERNEL_START_MS);
	return 0;
}

int kernel_open(struct kernel *k, const struct kernel_place *p, const struct kernel_ops *ops,
		const struct kernel_spec *spec, const char *cwd, struct err *err)
{
	*k = (struct kernel){
		.ops = ops,
		.place = p,
		.pidfd = -1,
		.interrupt_message = spec->interrupt_message,
	};
	random_hex(k->key, KEY_BYTES);
	random_hex(k->session, SESSION_BYTES);
	timer_init(&k->ask, p->loop, on_ask);
	timer_init(&k->deadline, p->loop, on_deadline);
	if (begin(k, spec, cwd, err) < 0) {
		kernel_close(k);
		return err_wrap(err, "start a kernel");
	}
	return 0;
}

void kernel_close(struct kernel *k)
{
	if (!k->place)
		return;
	for (int i = 0; i < KERNEL_CHANNELS; i++)
		zsock_close(&k->channel[i]);
	timer_stop(&k->ask);
	timer_stop(&k->deadline);
	watch_close(&k->death);
	if (k->pid > 0) {
		(void)kill(-k->pid, SIGKILL);
		(void)kill(k->pid, SIGKILL); /* it may not have a group yet */
		reap_later(k->pid);
	}
	auto_close(&k->pidfd);
	kernel_folder_remove(k);
	*k = (struct kernel){ 0 };
}
