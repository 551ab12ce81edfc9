/* processes.c - a list: entries come and go by themselves. */
#include "agent/processes.h"

void processes_init(struct processes *t, struct loop *l)
{
	*t = (struct processes){ .loop = l };
}

static void forget(struct process *p)
{
	*p->prev = p->next;
	if (p->next)
		p->next->prev = p->prev;
	process_free(p);
}

static void on_over(struct process *p)
{
	p->table->n--;
	forget(p);
}

int processes_start(struct processes *t, const struct process_spec *spec, struct process **ret,
		    struct err *err)
{
	struct process *p;

	if (t->n >= PROCESSES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%d processes are running already",
			       PROCESSES_MAX);
	if (process_start(t->loop, spec, on_over, &p, err) < 0)
		return -1;
	p->table = t;
	p->next = t->first;
	p->prev = &t->first;
	if (p->next)
		p->next->prev = &p->next;
	t->first = p;
	t->n++;
	*ret = p;
	return 0;
}

void processes_done(struct processes *t)
{
	while (t->first)
		forget(t->first);
	t->n = 0;
}
