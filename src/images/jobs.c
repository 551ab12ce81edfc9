/* jobs.c - see jobs.h. */
/* #syscalls: sendmsg recvmsg close socketpair pidfd_send_signal */
#include "images/jobs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/fdmsg.h"
#include "base/log.h"
#include "base/random.h"

enum { MS = 1000 };

/* --- what a client is told -------------------------------------------------------------------- */

/* Who does not read its answers would have to be waited for: it goes. A line for a log that does
 * not fit now is left out. */
static void tell(struct jobs_entry *e, const struct images_reply *r, int fd)
{
	struct err err;

	if (!e->client || fdmsg_send(e->client->sock, r, sizeof(*r), &fd, fd >= 0, &err) == 0)
		return;
	if (!r->more || err.sys != EAGAIN)
		control_hang_up(e->client);
}

/* The first word counts. */
static void set_end(struct jobs_entry *e, const struct images_reply *r, int *fd)
{
	if (e->has_end)
		return;
	e->has_end = true;
	e->end = *r;
	e->end_fd = take_fd(fd);
}

static void set_failed(struct jobs_entry *e, enum err_code code, const char *why)
{
	struct images_reply r = { .tag = e->tag, .code = code };
	int none = -1;

	snprintf(r.text, sizeof(r.text), "%s", why);
	set_end(e, &r, &none);
}

/* A job reads hostile texts: what it says is checked like any other. */
static bool note_ok(const struct job_note *n, size_t n_fds)
{
	bool well = n->last && n->code == ERR_NONE;

	return n->code < ERR_CODES && memchr(n->text, 0, sizeof(n->text)) &&
	       memchr(n->digest, 0, sizeof(n->digest)) && (n_fds == 1) == well &&
	       (well ? image_digest_ok(bytes_str(n->digest)) : !n->digest[0]);
}

static void pass_on(struct jobs_entry *e, const struct job_note *n, int *fd)
{
	struct images_reply r = { .tag = e->tag, .code = n->code, .more = !n->last };

	memcpy(r.digest, n->digest, sizeof(r.digest));
	memcpy(r.text, n->text, sizeof(r.text));
	for (char *c = r.text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	if (n->last)
		set_end(e, &r, fd);
	else if (!e->has_end)
		tell(e, &r, -1);
}

/* --- its end ---------------------------------------------------------------------------------- */

static void kill_job(const struct jobs_entry *e)
{
	(void)syscall(SYS_pidfd_send_signal, e->pidfd, SIGKILL, NULL, 0);
}

static void close_channel(struct jobs_entry *e)
{
	if (!e->channel_open)
		return;
	watch_close(&e->notes_come);
	close(e->channel);
	e->channel_open = false;
}

static void free_entry(struct jobs_entry *e)
{
	close_channel(e);
	timer_stop(&e->late);
	watch_close(&e->dead);
	close(e->pidfd);
	auto_close(&e->end_fd);
	e->of = NULL;
}

/* One word of a job. False: there is none now, or no more. */
static bool take_note(struct jobs_entry *e)
{
	AUTO(auto_close) int fd = -1;
	struct err err = { 0 };
	struct job_note n;
	size_t n_fds = 0;

	if (!e->channel_open)
		return false;
	if (fdmsg_recv(e->channel, &n, sizeof(n), &fd, 1, &n_fds, &err) < 0) {
		if (err.sys != EAGAIN)
			close_channel(e);
		return false;
	}
	if (!note_ok(&n, n_fds) || ++e->notes > JOBS_NOTES_MAX) {
		log_error("job %s says too much, or what makes no sense", e->id);
		close_channel(e);
		kill_job(e);
		return false;
	}
	pass_on(e, &n, &fd);
	return true;
}

static void on_note(struct watch *w, unsigned int events)
{
	struct jobs_entry *e = CONTAINER_OF(w, struct jobs_entry, notes_come);

	(void)events;
	for (int i = 0; i < JOBS_NOTES_BATCH && take_note(e); i++)
		;
}

/* What it said last may still be there to be read: no more than a socket holds. */
static void on_dead(struct watch *w, unsigned int events)
{
	struct jobs_entry *e = CONTAINER_OF(w, struct jobs_entry, dead);
	struct err err = { 0 };

	(void)events;
	while (take_note(e))
		;
	if (forkserver_clean(e->of->forkserver, e->id, e->pid, &err) < 0)
		log_error("job %s: %s", e->id, err.msg);
	set_failed(e, ERR_INTERNAL, "the job ended before its time");
	tell(e, &e->end, e->end_fd);
	free_entry(e);
}

static void on_late(struct timer *t)
{
	struct jobs_entry *e = CONTAINER_OF(t, struct jobs_entry, late);

	log_warn("job %s took too long", e->id);
	set_failed(e, ERR_TIMEOUT, "it took longer than job_s allows");
	kill_job(e);
}

/* --- its beginning ---------------------------------------------------------------------------- */

static struct jobs_entry *find_free(struct jobs *j, struct err *err)
{
	size_t used = 0;

	for (size_t i = 0; i < JOBS_MAX; i++)
		used += j->all[i].of != NULL;
	for (size_t i = 0; i < JOBS_MAX && used < j->max; i++)
		if (!j->all[i].of)
			return &j->all[i];
	err_set(err, ERR_EXHAUSTED, 0, "%zu images are fetched or unpacked already", used);
	return NULL;
}

static int fork_job(struct jobs *j, struct jobs_entry *e, const struct order *o, int theirs,
		    const int *fds, size_t n, struct err *err)
{
	int all[ORDER_FDS_MAX] = { theirs };

	assert(n < ORDER_FDS_MAX);
	for (size_t i = 0; i < n; i++)
		all[i + 1] = fds[i];
	e->pidfd = forkserver_job(j->forkserver, o, all, n + 1, &e->pid, err);
	return e->pidfd < 0 ? -1 : 0;
}

static int watch_job(struct jobs *j, struct jobs_entry *e, struct err *err)
{
	timer_init(&e->late, j->loop, on_late);
	if (watch_open(&e->dead, j->loop, e->pidfd, WATCH_READ, on_dead, err) < 0)
		return -1;
	if (watch_open(&e->notes_come, j->loop, e->channel, WATCH_READ, on_note, err) < 0) {
		watch_close(&e->dead);
		return -1;
	}
	timer_start(&e->late, j->most_ms);
	return 0;
}

int jobs_start(struct jobs *j, struct control_client *c, uint64_t tag, struct order *o,
	       const int *fds, size_t n, struct err *err)
{
	struct jobs_entry *e = find_free(j, err);
	AUTO(auto_close) int ours = -1, theirs = -1;
	int pair[2];

	if (!e)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "a channel for a job");
	ours = pair[0];
	theirs = pair[1];
	*e = (struct jobs_entry){ .client = c, .tag = tag, .end_fd = -1 };
	random_name(e->id, ORDER_ID_MAX);
	memcpy(o->id, e->id, sizeof(o->id));
	if (fork_job(j, e, o, theirs, fds, n, err) < 0)
		return -1;
	e->channel = ours;
	if (watch_job(j, e, err) < 0) {
		kill_job(e);
		close(e->pidfd);
		return -1;
	}
	ours = -1;
	e->channel_open = true;
	e->of = j;
	return 0;
}

/* --- from outside ----------------------------------------------------------------------------- */

void jobs_cancel(struct jobs *j, const struct control_client *c, uint64_t tag)
{
	for (size_t i = 0; i < JOBS_MAX; i++) {
		struct jobs_entry *e = &j->all[i];

		if (!e->of || e->client != c || e->tag != tag)
			continue;
		set_failed(e, ERR_UNAVAILABLE, "it was cancelled");
		kill_job(e);
		return;
	}
}

void jobs_forget(struct jobs *j, const struct control_client *c)
{
	for (size_t i = 0; i < JOBS_MAX; i++)
		if (j->all[i].of && j->all[i].client == c) {
			j->all[i].client = NULL;
			kill_job(&j->all[i]);
		}
}

void jobs_open(struct jobs *j, struct loop *l, struct forkserver *f, const struct config_value *set)
{
	*j = (struct jobs){ .loop = l,
			    .forkserver = f,
			    .max = (size_t)set[SET_JOBS_MAX].number,
			    .most_ms = set[SET_JOB_S].number * MS };
}

void jobs_close(struct jobs *j)
{
	for (size_t i = 0; i < JOBS_MAX; i++)
		if (j->all[i].of) {
			kill_job(&j->all[i]);
			free_entry(&j->all[i]);
		}
}
