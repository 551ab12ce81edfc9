/* workers.c - see workers.h. */
/* #syscalls: memfd_create pwrite64 socketpair pidfd_send_signal close */
#include "injector/workers.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/memory_file.h"
#include "injector/rules.h"
#include "injector/worker/worker.h"

/* --- what a worker is told ------------------------------------------------------------------ */

static int make_branch(const struct keys *k, const char *id, const json_t *rules,
		       struct authority **ret, struct err *err)
{
	const char *hosts[RULES_HOSTS_MAX];
	size_t n = json_array_size(rules);

	for (size_t i = 0; i < n; i++)
		hosts[i] = json_string_value(json_object_get(json_array_get(rules, i), "host"));
	return authority_branch(k->root, id, hosts, n, ret, err);
}

static json_t *string_of(const struct buf *text)
{
	return json_stringn((const char *)text->ptr, text->len);
}

/* Its certificates and its key, under these names. Takes the branch. */
static int put_branch(json_t *into, struct authority *branch, const char *cert_name,
		      const char *key_name, struct err *err)
{
	AUTO(buf_done) struct buf key = BUF_SECRET(AUTHORITY_TEXT_MAX);
	AUTO(buf_done) struct buf cert = BUF_MAX(AUTHORITY_TEXT_MAX);
	int rc = authority_key_text(branch, &key, err);

	if (rc == 0)
		rc = authority_cert_text(branch, &cert, err);
	authority_free(branch);
	if (rc < 0)
		return -1;
	if (json_object_set_new(into, cert_name, string_of(&cert)) < 0 ||
	    json_object_set_new(into, key_name, string_of(&key)) < 0)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "what a worker is told");
	return 0;
}

static int put_branches(struct workers *w, const char *id, json_t *told, struct err *err)
{
	const json_t *rules = json_object_get(told, "rules");
	struct authority *branch = NULL;

	if (json_array_size(rules) > 0 && (make_branch(w->keys, id, rules, &branch, err) < 0 ||
					   put_branch(told, branch, "cert", "key", err) < 0))
		return -1;
	if (!json_is_true(json_object_get(told, "refusalPages")))
		return 0;
	return authority_branch_any(w->keys->root, id, &branch, err) < 0
		       ? -1
		       : put_branch(told, branch, "pagesCert", "pagesKey", err);
}

/* A file in memory. */
static int make_text(struct workers *w, const struct injector_request *rq, struct bytes text,
		     struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_SECRET(WORKER_TEXT_MAX);
	AUTO(json_decrefp) json_t *told = NULL;

	if (rules_fill(text, rq->team, w->keys->seal, &told, err) < 0 ||
	    put_branches(w, rq->id, told, err) < 0 || json_encode(told, &out, err) < 0)
		return -1;
	return memory_file_make("worker", buf_view(&out), err);
}

/* --- slots ---------------------------------------------------------------------------------- */

static uint32_t number_of(const struct worker_slot *s)
{
	uint32_t i = 0;

	while (s->of->all[i] != s)
		i++;
	return i;
}

static void let_go(struct workers *w, uint32_t slot)
{
	struct worker_slot *s = TAKE(w->all[slot]);

	watch_close(&s->ended);
	close(s->pidfd);
	free(s);
}

static void on_ended(struct watch *ended, unsigned int events)
{
	struct worker_slot *s = CONTAINER_OF(ended, struct worker_slot, ended);
	struct workers *w = s->of;
	uint32_t slot = number_of(s);

	(void)events;
	let_go(w, slot);
	w->ops->on_gone(w, slot);
}

static int keep(struct workers *w, uint32_t slot, int pidfd, struct err *err)
{
	AUTO(auto_close) int own = pidfd;
	AUTO(auto_free) struct worker_slot *s = calloc(1, sizeof(*s));

	if (!s || watch_open(&s->ended, w->loop, pidfd, WATCH_READ, on_ended, err) < 0) {
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
		return s ? -1 : err_set(err, ERR_EXHAUSTED, ENOMEM, "a worker");
	}
	s->of = w;
	s->pidfd = take_fd(&own);
	w->all[slot] = TAKE(s);
	return 0;
}

int workers_start(struct workers *w, const struct injector_request *rq, struct bytes text,
		  struct err *err)
{
	AUTO(auto_close) int told = -1;
	AUTO(auto_close) int ours = -1;
	AUTO(auto_close) int theirs = -1;
	int pidfd, pair[2];

	workers_stop(w, rq->slot);
	told = make_text(w, rq, text, err);
	if (told < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "the channel of a worker");
	ours = pair[0];
	theirs = pair[1];
	pidfd = forkserver_raise(w->forkserver, theirs, told, err);
	if (pidfd < 0 || keep(w, rq->slot, pidfd, err) < 0)
		return -1;
	return take_fd(&ours);
}

void workers_stop(struct workers *w, uint32_t slot)
{
	if (!w->all[slot])
		return;
	(void)syscall(SYS_pidfd_send_signal, w->all[slot]->pidfd, SIGKILL, NULL, 0);
	let_go(w, slot);
}

void workers_stop_all(struct workers *w)
{
	for (uint32_t i = 0; i < INJECTOR_SLOTS_MAX; i++)
		workers_stop(w, i);
}
