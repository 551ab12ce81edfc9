/* tasks.c - see tasks.h. */
#include "warden/tasks.h"

#include "base/clock.h"
#include "base/log.h"
#include "warden/remove.h"

/* What every job may need, and what this one asked for. */
static size_t collect_keep(const struct warden *w, const int *extra, int *ret)
{
	size_t n = 0;

	ret[n++] = w->vms;
	ret[n++] = w->templates;
	for (size_t i = 0; i < w->cgroups.n; i++)
		ret[n++] = w->cgroups.parent[i];
	for (size_t i = 0; extra && i < TASK_FDS_MAX; i++)
		ret[n++] = extra[i];
	return n;
}

static struct task *find_place(struct warden *w, struct err *err)
{
	for (size_t i = 0; i < TASKS_MAX; i++)
		if (!w->tasks[i].done)
			return &w->tasks[i];
	err_set(err, ERR_EXHAUSTED, 0, "%d jobs already", TASKS_MAX);
	return NULL;
}

struct task *tasks_start(struct warden *w, job_fn *fn, const void *args, const int *extra,
			 task_done_fn *done, const struct waiting *who, struct err *err)
{
	int keep[2 + CGROUP_TREES + TASK_FDS_MAX + 1];
	size_t n_keep = collect_keep(w, extra, keep);
	struct task *t = find_place(w, err);

	if (!t)
		return NULL;
	*t = (struct task){ .who = *who, .slot = WARDEN_NO_SLOT };
	if (job_start(&t->job, fn, args, keep, n_keep, err) < 0)
		return NULL;
	if (warden_watch(w, t->job.result, EVENT_TASK, (uint32_t)(t - w->tasks), err) < 0) {
		struct job_result r;

		job_expire(&t->job);
		job_finish(&t->job, &r);
		job_result_close(&r);
		return NULL;
	}
	t->done = done;
	return t;
}

void tasks_readable(struct warden *w, uint32_t index)
{
	struct task t = w->tasks[index];
	struct job_result r;

	if (!t.done)
		return;
	warden_unwatch(w, t.job.result);
	job_finish(&t.job, &r);
	w->tasks[index].done = NULL; /* its place may be taken by what `done` starts */
	t.done(w, &t, &r);
}

int tasks_expire(struct warden *w)
{
	uint64_t now = clock_mono_ns(), first = UINT64_MAX;

	for (size_t i = 0; i < TASKS_MAX; i++) {
		struct task *t = &w->tasks[i];

		if (!t->done)
			continue;
		if (t->job.deadline_ns <= now)
			job_expire(&t->job);
		if (t->job.deadline_ns < first)
			first = t->job.deadline_ns;
	}
	if (w->removals_due > 0 && w->retry_ns < first)
		first = w->retry_ns;
	if (first == UINT64_MAX)
		return -1;
	return first <= now ? 0 : (int)((first - now) / NSEC_PER_MSEC) + 1;
}

static void sweep_done(struct warden *w, struct task *t, const struct job_result *r)
{
	(void)t;
	if (r->err.code != ERR_NONE)
		log_error("remove leftovers: %s", r->err.msg);
	w->serving = true;
	log_info("serving; %u vms adopted", w->cells.count);
}

void tasks_sweep(struct warden *w)
{
	const struct removal rest = {
		.cgroups = &w->cgroups, .vms = w->vms, .templates = w->templates, .keep = &w->cells
	};
	struct err err = { 0 };

	if (!tasks_start(w, remove_rest_job, &rest, NULL, sweep_done, &NOBODY_WAITS, &err)) {
		log_error("remove leftovers: %s", err.msg);
		w->serving = true;
	}
}
