/* warden_client.c - connect, say hello, and do it again when warden is gone. */
#include "node/links/warden_client.h"

#include <assert.h>
#include <errno.h>

#include "base/log.h"

/* As warden_link_call(), in the name of the installation. */
static int call(struct warden_client *k, struct warden_call *c, const struct warden_request *rq,
		const int *fds, size_t n_fds, uint64_t deadline_ms,
		void (*on_done)(struct warden_call *c, const struct warden_reply *reply, int *fds,
				size_t n_fds, const struct err *err),
		struct err *err)
{
	struct warden_request ours = *rq;

	snprintf(ours.installation, sizeof(ours.installation), "%s", k->installation ?: "");
	return warden_link_call(k->link, c, &ours, fds, n_fds, deadline_ms, on_done, err);
}

static void connect_now(struct warden_client *k);
static void send_waiting(struct warden_client *k);

static void went_down(struct warden_client *k)
{
	if (!k->up)
		return;
	k->up = false;
	k->down_since_ms = loop_now_ms(k->loop);
	k->ops->on_down(k);
}

static void on_gone(struct warden_link_user *u, const struct err *err)
{
	struct warden_client *k = CONTAINER_OF(u, struct warden_client, user);

	log_warn("%s", err->msg);
	warden_link_close(TAKE(k->link));
	timer_start(&k->retry, WARDEN_RETRY_MS);
	went_down(k);
}

static void hello(struct warden_client *k);

static void on_hello(struct warden_call *c, const struct warden_reply *reply, int *fds,
		     size_t n_fds, const struct err *err)
{
	struct warden_client *k = CONTAINER_OF(c, struct warden_client, hello);

	(void)fds, (void)n_fds;
	if (err && err->sys == EAGAIN) {
		timer_start(&k->retry, WARDEN_BUSY_MS);
	} else if (err) {
		log_warn("warden: %s", err->msg);
		warden_link_hang_up(k->link); /* on_gone follows */
	} else {
		k->facts_number += memcmp(&k->facts, &reply->facts, sizeof(k->facts)) != 0;
		k->facts = reply->facts;
		k->up = true;
		k->told = false;
		log_info("warden is up: %s, %s", k->facts.accel, k->facts.vmm_version);
		k->ops->on_up(k);
		send_waiting(k);
	}
}

static void hello(struct warden_client *k)
{
	const struct warden_request rq = { .verb = WARDEN_FACTS, .sizes = k->sizes };
	struct err err;

	if (call(k, &k->hello, &rq, NULL, 0, WARDEN_CALL_MS, on_hello, &err) < 0)
		warden_link_hang_up(k->link);
}

static void connect_now(struct warden_client *k)
{
	static const struct warden_link_ops ops = { on_gone };
	struct err err;

	k->user.ops = &ops;
	if (warden_link_open(k->loop, k->path, &k->user, &k->link, &err) == 0) {
		hello(k);
		return;
	}
	if (!k->told)
		log_warn("%s; tried again every %d ms", err.msg, WARDEN_RETRY_MS);
	k->told = true;
	timer_start(&k->retry, WARDEN_RETRY_MS);
}

static void on_retry(struct timer *t)
{
	struct warden_client *k = CONTAINER_OF(t, struct warden_client, retry);

	if (!k->link)
		connect_now(k);
	else if (!k->up)
		hello(k);
	else
		send_waiting(k);
}

void warden_client_open(struct warden_client *k, struct loop *l, const char *path,
			const struct warden_sizes *sizes, const struct warden_client_ops *ops)
{
	*k = (struct warden_client){ .ops = ops, .loop = l, .path = path, .sizes = *sizes };
	k->last = &k->waiting;
	k->down_since_ms = loop_now_ms(l);
	timer_init(&k->retry, l, on_retry);
	timer_start(&k->retry, 0);
}

void warden_client_close(struct warden_client *k)
{
	while (k->waiting)
		warden_ask_cancel(k->waiting);
	timer_stop(&k->retry);
	warden_link_close(TAKE(k->link));
	k->up = false;
}

int warden_once_fds(struct warden_client *k, struct warden_call *c, const struct warden_request *rq,
		    const int *fds, size_t n_fds, uint64_t deadline_ms,
		    void (*on_done)(struct warden_call *c, const struct warden_reply *reply,
				    int *fds, size_t n_fds, const struct err *err),
		    struct err *err)
{
	if (k->up)
		return call(k, c, rq, fds, n_fds, deadline_ms, on_done, err);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	return err_set(err, ERR_UNAVAILABLE, 0, "warden is gone");
}

int warden_once(struct warden_client *k, struct warden_call *c, const struct warden_request *rq,
		void (*on_done)(struct warden_call *c, const struct warden_reply *reply, int *fds,
				size_t n_fds, const struct err *err),
		struct err *err)
{
	return warden_once_fds(k, c, rq, NULL, 0, WARDEN_CALL_MS, on_done, err);
}

/* --- asked until answered ----------------------------------------------------------------- */

static void wait_for_warden(struct warden_ask *a)
{
	struct warden_client *k = a->keep;

	a->next = NULL;
	a->prev = k->last;
	*k->last = a;
	k->last = &a->next;
}

static void wait_no_more(struct warden_ask *a)
{
	if (!a->prev)
		return;
	*a->prev = a->next;
	if (a->next)
		a->next->prev = a->prev;
	else
		a->keep->last = a->prev;
	a->prev = NULL;
}

void warden_ask_cancel(struct warden_ask *a)
{
	if (!a->keep)
		return;
	wait_no_more(a);
	timer_stop(&a->late);
	warden_call_cancel(&a->call);
	a->keep = NULL;
}

static void on_answer(struct warden_call *c, const struct warden_reply *reply, int *fds,
		      size_t n_fds, const struct err *err)
{
	struct warden_ask *a = CONTAINER_OF(c, struct warden_ask, call);
	struct warden_client *k = a->keep;

	if (err && err->code == ERR_UNAVAILABLE) {
		wait_for_warden(a);
		if (k->up)
			timer_start(&k->retry, WARDEN_BUSY_MS);
		return;
	}
	warden_ask_cancel(a);
	a->on_done(a, reply, fds, n_fds, err);
}

static void on_late(struct timer *t)
{
	struct warden_ask *a = CONTAINER_OF(t, struct warden_ask, late);
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, 0, "warden is gone");
	warden_ask_cancel(a);
	a->on_done(a, NULL, NULL, 0, &err);
}

static void send_ask(struct warden_ask *a)
{
	struct warden_client *k = a->keep;
	struct err err;

	if (k->up && call(k, &a->call, &a->request, NULL, 0, WARDEN_CALL_MS, on_answer, &err) == 0)
		return;
	wait_for_warden(a);
	if (k->up) /* too many questions at once */
		timer_start(&k->retry, WARDEN_BUSY_MS);
}

static void send_waiting(struct warden_client *k)
{
	struct warden_ask *a = k->waiting, *next;

	/* taken as a whole: what still cannot be sent waits again */
	k->waiting = NULL;
	k->last = &k->waiting;
	for (; a; a = next) {
		next = a->next;
		a->prev = NULL;
		send_ask(a);
	}
}

void warden_again(struct warden_client *k, struct warden_ask *a, const struct warden_request *rq,
		  uint64_t wait_ms,
		  void (*on_done)(struct warden_ask *a, const struct warden_reply *reply, int *fds,
				  size_t n_fds, const struct err *err))
{
	assert(!a->keep);
	*a = (struct warden_ask){ .on_done = on_done, .keep = k, .request = *rq };
	timer_init(&a->late, k->loop, on_late);
	if (wait_ms > 0)
		timer_start(&a->late, wait_ms);
	send_ask(a);
}
