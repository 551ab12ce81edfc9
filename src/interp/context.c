/* context.c - see context.h. */
#include "interp/context.h"

#include <errno.h>
#include <fcntl.h>

#include "base/list.h"
#include "base/log.h"
#include "base/read_all.h"
#include "base/uuid.h"
#include "interp/answer.h"
#include "interp/context_steps.h"

#define AVAILABLE "MemAvailable:"

enum { MEMINFO_MAX = 4096 }; /* that is its third line */

json_t *context_json(const struct context *c)
{
	return json_pack("{s:s, s:s, s:o}", "id", c->id, "language", c->language, "cwd",
			 json_text(bytes_str(c->cwd)));
}

/* --- clients that wait for a kernel --------------------------------------------------------- */

static void on_waiter_gone(struct http_handler *h, const struct err *err)
{
	struct context_waiter *w = CONTAINER_OF(h, struct context_waiter, handler);

	(void)err;
	list_remove(w);
	free(w);
}

static void add_waiter(struct context *c, struct http_request *rq, bool created)
{
	static const struct http_handler_ops ops = { .on_gone = on_waiter_gone };
	struct context_waiter *w = calloc(1, sizeof(*w));

	if (!w) {
		answer_text(rq, 500, "out of memory");
		return;
	}
	*w = (struct context_waiter){ .handler = { &ops }, .rq = rq, .created = created };
	http_request_take(rq, NULL); /* from who read the body */
	http_request_take(rq, &w->handler);
	http_request_rests(rq);
	list_add(&c->waiters, w);
}

/* `why` NULL: it is ready. */
static void tell_waiters(struct context *c, const char *why)
{
	list_each(struct context_waiter, w, c->waiters) {
		list_remove(w);
		if (why)
			answer_text(w->rq, 500, why);
		else
			answer_json(w->rq, 200, w->created ? context_json(c) : json_null());
		free(w);
	}
}

/* --- the kernel ------------------------------------------------------------------------------ */

static void fail(struct context *c, const char *why);

void context_ready(struct context *c)
{
	c->ready = true;
	c->cold = false;
	c->starts = 0;
	tell_waiters(c, NULL);
	context_advance(c);
}

static void on_ready(struct kernel *k)
{
	struct context *c = CONTAINER_OF(k, struct context, kernel);

	if (!c->cold || !context_step_warm(c))
		context_ready(c);
}

static void on_death(struct kernel *k, const struct err *why)
{
	struct context *c = CONTAINER_OF(k, struct context, kernel);
	char text[sizeof(why->msg) + 64];
	bool was_ready = c->ready;

	log_warn("the %s kernel of context %s ended: %s", c->language, c->id, why->msg);
	snprintf(text, sizeof(text), "The kernel died (%s) and was started again", why->msg);
	context_stop(c, "ContextRestarting", CONTEXT_RESTARTED, text);
	if (!was_ready && ++c->starts >= CONTEXT_STARTS_MAX) {
		snprintf(text, sizeof(text), "Failed to create context: the kernel ended: %s",
			 why->msg);
		fail(c, text);
		return;
	}
	context_start(c);
}

static void on_message(struct kernel *k, enum kernel_channel from, const struct kernel_message *m)
{
	context_hear(CONTAINER_OF(k, struct context, kernel), from, m);
}

static int start_kernel(struct context *c, struct err *err)
{
	static const struct kernel_ops ops = { on_ready, on_message, on_death };
	struct kernel_spec spec;
	int rc;

	if (kernel_spec_find(&c->all->dirs, language_kernel(c->language), &spec, err) < 0)
		return -1;
	rc = kernel_open(&c->kernel, &c->all->place, &ops, &spec, c->cwd, err);
	kernel_spec_done(&spec);
	return rc;
}

void context_start(struct context *c)
{
	struct err err;

	if (start_kernel(c, &err) < 0)
		fail(c, err.msg);
}

/* There is no kernel to be had. Whoever waits is told, and the context goes. */
static void fail(struct context *c, const char *why)
{
	struct execution *x;

	log_error("context %s, %s: %s", c->id, c->language, why);
	tell_waiters(c, why);
	while ((x = queue_take(&c->waiting)))
		execution_refuse(x, 500, why);
	context_delete(c);
}

/* --- from birth to death --------------------------------------------------------------------- */

void contexts_init(struct contexts *all)
{
	queue_init(&all->list);
}

static void free_context(struct context *c)
{
	queue_remove(&c->all->list, c);
	c->all->n--;
	kernel_close(&c->kernel);
	json_decref(c->envs);
	free(c->cwd);
	free(c);
}

static bool is_path(struct bytes path)
{
	for (size_t i = 0; i < path.len; i++)
		if (path.ptr[i] < ' ')
			return false;
	return path.len > 0 && path.len < CONTEXT_CWD_MAX;
}

/* A guest without memory hangs, with all that its contexts have: it is refused before. */
static int check_memory(struct err *err)
{
	char text[MEMINFO_MAX];
	const char *at = NULL;
	unsigned long mib;

	if (read_text(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) > 0)
		at = strstr(text, AVAILABLE);
	mib = at ? strtoul(at + strlen(AVAILABLE), NULL, 10) / 1024 : CONTEXT_MEMORY_MIB;
	if (mib >= CONTEXT_MEMORY_MIB)
		return 0;
	return err_set(err, ERR_EXHAUSTED, 0,
		       "the sandbox has %lu MiB of memory left, and a kernel needs %d: remove a "
		       "context, or use a template with more memory",
		       mib, CONTEXT_MEMORY_MIB);
}

int context_new(struct contexts *all, const char *language, struct bytes cwd, struct context **ret,
		struct err *err)
{
	struct context *c;

	if (all->n >= CONTEXTS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "there are %d contexts already",
			       CONTEXTS_MAX);
	if (check_memory(err) < 0)
		return -1;
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a context");
	c->all = all;
	uuid_make(c->id);
	snprintf(c->language, sizeof(c->language), "%s", language);
	queue_init(&c->waiting);
	context_steps_init(c);
	queue_add(&all->list, c);
	all->n++;
	c->cwd = is_path(cwd) ? strndup((const char *)cwd.ptr, cwd.len) : NULL;
	if (!c->cwd)
		err_set(err, ERR_INVALID, 0, "cwd is too long, or is no path");
	if (!c->cwd || start_kernel(c, err) < 0) {
		free_context(c);
		return -1;
	}
	*ret = c;
	return 0;
}

void context_warm(struct context *c)
{
	c->cold = !c->ready;
}

void context_delete(struct context *c)
{
	struct execution *x;

	context_stop(c, "UnexpectedEndOfExecution", CONTEXT_CLOSED, "");
	tell_waiters(c, "The context was removed");
	while ((x = queue_take(&c->waiting)))
		execution_refuse(x, 404, "The context was removed");
	free_context(c);
}

void contexts_done(struct contexts *all)
{
	while (all->list.first)
		context_delete(all->list.first);
}

struct context *context_find(struct contexts *all, struct bytes id)
{
	list_each(struct context, c, all->list.first)
		if (bytes_eq(bytes_str(c->id), id))
			return c;
	return NULL;
}

struct context *context_default(struct contexts *all, const char *language)
{
	list_each(struct context, c, all->list.first)
		if (c->is_default && strcmp(c->language, language) == 0)
			return c;
	return NULL;
}

void context_wait(struct context *c, struct http_request *rq)
{
	if (c->ready)
		answer_json(rq, 200, context_json(c));
	else
		add_waiter(c, rq, true);
}

void context_restart(struct context *c, struct http_request *rq)
{
	context_stop(c, "UnexpectedEndOfExecution", CONTEXT_CLOSED, "");
	add_waiter(c, rq, false);
	context_start(c);
}
