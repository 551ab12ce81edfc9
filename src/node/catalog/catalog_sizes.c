/* catalog_sizes.c - one look at a time, for all who ask meanwhile. */
/* #syscalls: fcntl close */
#include "node/catalog/catalog_sizes.h"

#include <errno.h>
#include <fcntl.h>

#include "base/list.h"
#include "base/log.h"
#include "node/files/disk_use.h"
#include "node/node.h"
#include "vm/work.h"

struct sizes_job {
	struct work work; /* first: the job is freed by it */
	struct node *node;
	int snapshots; /* its own */
	struct disk_uses found;
};

struct sizes_asked {
	struct door_asked *asked;
	struct node_request rq;
	verb_fn *then;
	struct sizes_asked *next, **prev;
};

static struct sizes_job *of(struct work *w)
{
	return CONTAINER_OF(w, struct sizes_job, work);
}

static int run(struct work *w, struct err *err)
{
	return disk_use_look(of(w)->snapshots, &of(w)->found, err);
}

static void free_job(struct work *w)
{
	struct sizes_job *j = of(w);

	disk_uses_done(&j->found);
	auto_close(&j->snapshots);
	free(j);
}

/* Whoever is answered may ask again at once: that one is not in the list any more. */
static void answer_all(struct node *n)
{
	struct sizes_asked *k;

	while ((k = n->catalog.sizes.asked)) {
		list_remove(k);
		k->then(n, k->asked, &k->rq, (struct bytes){ 0 });
		free(k);
	}
}

static void on_done(struct work *w, const struct err *err)
{
	const struct sizes_job *j = of(w);
	struct node *n = j->node;

	n->catalog.sizes.job = NULL;
	if (err)
		log_warn("what snapshots take of the disk is not known: %s", err->msg);
	for (size_t i = 0; !err && i < j->found.n; i++) {
		struct snapshot *p = snapshots_by_id(n, j->found.all[i].id);

		if (!p)
			continue;
		p->own_bytes = j->found.all[i].own;
		p->shared_bytes = j->found.all[i].shared;
	}
	n->catalog.sizes.known = !err;
	answer_all(n);
}

static int begin(struct node *n, struct err *err)
{
	struct sizes_job *j = calloc(1, sizeof(*j));

	if (!j)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "look at sizes");
	j->work = (struct work){ .run = run, .on_done = on_done, .free = free_job };
	j->node = n;
	j->snapshots = fcntl(files_snapshots(n->files), F_DUPFD_CLOEXEC, 0);
	if (j->snapshots < 0) {
		err_set(err, ERR_EXHAUSTED, errno, "a descriptor");
		free_job(&j->work);
		return -1;
	}
	if (work_start(&j->work, n->loop, err) < 0)
		return -1;
	n->catalog.sizes.job = j;
	return 0;
}

void sizes_ask(struct node *n, struct door_asked *a, const struct node_request *rq, verb_fn *then)
{
	struct sizes_asked *k = rq->after_ns ? NULL : calloc(1, sizeof(*k));
	struct err err;

	if (!k || (!n->catalog.sizes.job && begin(n, &err) < 0)) {
		free(k);
		then(n, a, rq, (struct bytes){ 0 }); /* with what was found before */
		return;
	}
	*k = (struct sizes_asked){ .asked = a, .rq = *rq, .then = then };
	list_add(&n->catalog.sizes.asked, k);
}

void sizes_close(struct node *n)
{
	struct sizes_job *j = TAKE(n->catalog.sizes.job);
	struct sizes_asked *k;

	if (j)
		work_cancel(&j->work);
	while ((k = n->catalog.sizes.asked)) {
		list_remove(k);
		free(k);
	}
}
