/* main.c - hotcell-copier: reads what changed in one VM's memory, or writes it back.
 *
 * Warden starts it under the VM's uid, without capabilities, in its control group, with all it
 * needs open; see protocol.h. It gives up everything else before it reads any of that, and does
 * what node says until node hangs up or its time is over.
 */
/* #syscalls: poll */
#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/log.h"
#include "copier/apply.h"
#include "copier/save.h"
#include "copier/syscalls.h"
#include "copier/work.h"
#include "jail/confine.h"
#include "base/fdmsg.h"
#include "jail/sanitized.h"

enum { LIFE_SECONDS = 5 * 60 };

typedef int work_fn(struct work *w, struct copier_reply *ret, struct err *err);

static work_fn *const save_verbs[COPIER_VERBS] = {
	[COPIER_FIRST] = work_first,
	[COPIER_COPY] = work_copy,
	[COPIER_STATE] = work_state,
	[COPIER_SYNC] = work_sync,
};
static work_fn *const apply_verbs[COPIER_VERBS] = { [COPIER_APPLY] = work_apply };

static int prepare(struct work *w, struct err *err)
{
	const struct confine all = { .user = "", .syscalls = syscalls };
	const int given = COPIER_AT;

	*w = (struct work){ .control = given + COPIER_FD_CONTROL,
			    .pages = given + COPIER_FD_PAGES,
			    .memory = given + COPIER_FD_MEMORY,
			    .state = given + COPIER_FD_STATE,
			    .mem = COPIER_AT_MEM,
			    .maps = COPIER_AT_MAPS,
			    .pagemap = COPIER_AT_PAGEMAP,
			    .saved = COPIER_AT_SAVED,
			    .piece = malloc(WORK_PIECE),
			    .other = malloc(WORK_PIECE) };
	if (!w->piece || !w->other)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "prepare");
	alarm(LIFE_SECONDS); /* ends the process, whatever it does then */
	/* the VM has the same uid: it may not look into this process */
	if (!SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_set(err, ERR_INTERNAL, errno, "hide from the VM");
	if (mapping_identify(w->memory, &w->file, err) < 0)
		return -1;
	if (confine(&all, err) < 0)
		return -1;
	w->crew = crew_start();
	return 0;
}

/* A socket that does not block is fine, too. */
static int next_request(const struct work *w, struct copier_request *ret, struct err *err)
{
	struct pollfd p = { .fd = w->control, .events = POLLIN };
	size_t n;

	while (poll(&p, 1, -1) < 0)
		if (errno != EINTR)
			return err_set(err, ERR_INTERNAL, errno, "wait");
	return fdmsg_recv(w->control, ret, sizeof(*ret), NULL, 0, &n, err);
}

static void answer(struct work *w, work_fn *const *verbs, const struct copier_request *rq,
		   struct copier_reply *ret)
{
	uint64_t begun = clock_mono_ns();
	struct err err = { 0 };

	w->base_crc = rq->base_crc;
	if (rq->version != COPIER_VERSION || rq->verb >= COPIER_VERBS || !verbs[rq->verb])
		err_set(&err, ERR_INVALID, 0, "unknown version or verb");
	else if (verbs[rq->verb](w, ret, &err) < 0)
		*ret = (struct copier_reply){ 0 };
	ret->code = err.code;
	ret->sys = err.sys;
	snprintf(ret->msg, sizeof(ret->msg), "%s", err.msg);
	ret->took_us = (clock_mono_ns() - begun) / 1000;
}

/* What it could not do at its start is the answer to the first request. */
static void refuse(const struct work *w, const struct err *why)
{
	struct copier_reply r = { .code = why->code, .sys = why->sys };
	struct copier_request rq;
	struct err err = { 0 };

	snprintf(r.msg, sizeof(r.msg), "%s", why->msg);
	if (next_request(w, &rq, &err) == 0)
		(void)!fdmsg_send(w->control, &r, sizeof(r), NULL, 0, &err);
}

int main(int argc, char **argv)
{
	work_fn *const *verbs =
		argc == 2 && strcmp(argv[1], "apply") == 0 ? apply_verbs : save_verbs;
	struct copier_request rq;
	struct err err = { 0 };
	struct work w;

	log_init("copier", LOG_WARN);
	if (argc != 2 || (verbs == save_verbs && strcmp(argv[1], "save") != 0)) {
		fputs("hotcell-copier is started by hotcell-warden\n", stderr);
		return 2;
	}
	if (prepare(&w, &err) < 0) {
		refuse(&w, &err);
		return 1;
	}
	while (next_request(&w, &rq, &err) == 0) {
		struct copier_reply r = { 0 };

		answer(&w, verbs, &rq, &r);
		if (fdmsg_send(w.control, &r, sizeof(r), NULL, 0, &err) < 0)
			return 1;
	}
	return 0;
}
