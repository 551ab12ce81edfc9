/* copier_link.c - see copier_link.h. */
/* #syscalls: sendto recvfrom close */
#include "vm/copier_link.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/bytes.h"

enum {
	REPLY_ERRNO_MAX = 4095,
	REPLY_PAGES_MAX = 1 << 28, /* of a machine with a terabyte */
};

void copier_link_close(struct copier_link *l)
{
	if (!l->on_answer)
		return;
	l->on_answer = NULL;
	timer_stop(&l->deadline);
	watch_close(&l->ready);
	close(take_fd(&l->fd));
}

static void broken(struct copier_link *l, const struct err *err)
{
	timer_stop(&l->deadline);
	watch_close(&l->ready);
	l->n_asked = 0;
	l->on_answer(l, COPIER_VERBS, NULL, err);
}

static void on_deadline(struct timer *t)
{
	struct copier_link *l = CONTAINER_OF(t, struct copier_link, deadline);
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "the copier did not answer in %ju ms",
		(uintmax_t)l->deadline_ms);
	broken(l, &err);
}

/* Its own words, cut and without anything that a log could stumble over. */
static int refused(const struct copier_reply *r, struct err *err)
{
	bool known = r->code < ERR_CODES && r->sys >= 0 && r->sys <= REPLY_ERRNO_MAX;
	char words[sizeof(r->msg)];
	size_t n = strnlen(r->msg, sizeof(r->msg) - 1);

	for (size_t i = 0; i < n; i++)
		words[i] = r->msg[i] >= ' ' && r->msg[i] <= '~' ? r->msg[i] : '?';
	words[n] = '\0';
	err_set(err, known ? (enum err_code)r->code : ERR_INTERNAL, 0, "copier: %s", words);
	err->sys = known ? r->sys : 0; /* named among its words already */
	return -1;
}

/* Nothing is done with these numbers but to remember them: they need to be possible, no more. */
static bool is_possible(const struct copier_reply *r, enum copier_verb asked)
{
	const uint64_t most = (uint64_t)REPLY_PAGES_MAX * 3 * COPIER_PAGE; /* and their table */
	bool file = asked != COPIER_FIRST, state = asked == COPIER_STATE || asked == COPIER_SYNC;

	return r->pages <= REPLY_PAGES_MAX && r->zero_pages <= REPLY_PAGES_MAX &&
	       r->pages_bytes <= most && r->state_bytes <= COPIER_STATE_MAX &&
	       (r->pages_bytes > 0 || !file) && (r->state_bytes > 0 || !state);
}

static int check(struct copier_link *l, struct copier_reply *r, enum copier_verb *ret_asked,
		 struct err *err)
{
	timer_stop(&l->deadline);
	if (l->n_asked == 0)
		return err_set(err, ERR_INVALID, 0, "the copier answers what nobody asked");
	if (r->code != ERR_NONE)
		return refused(r, err);
	*ret_asked = l->asked[0];
	l->asked[0] = l->asked[1];
	if (--l->n_asked > 0)
		timer_start(&l->deadline, l->deadline_ms);
	if (!is_possible(r, *ret_asked))
		return err_set(err, ERR_INVALID, 0, "the copier answers what cannot be");
	memset(r->msg, 0, sizeof(r->msg));
	return 0;
}

/* A message of exactly the right length. Descriptors that come with it the kernel drops. */
static int receive(int fd, struct copier_reply *ret, struct err *err)
{
	ssize_t n = recv(fd, ret, sizeof(*ret), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "hear the copier");
	if (n == 0)
		return err_set(err, ERR_UNAVAILABLE, 0, "the copier ended");
	if ((size_t)n != sizeof(*ret))
		return err_set(err, ERR_INVALID, 0, "a message of %zd bytes from the copier", n);
	return 1;
}

static void on_ready(struct watch *w, unsigned int events)
{
	struct copier_link *l = CONTAINER_OF(w, struct copier_link, ready);
	enum copier_verb asked = COPIER_VERBS;
	struct copier_reply reply;
	struct err err;
	int rc;

	(void)events;
	rc = receive(l->fd, &reply, &err);
	if (rc > 0)
		rc = check(l, &reply, &asked, &err) < 0 ? -1 : 1;
	if (rc < 0)
		broken(l, &err);
	else if (rc > 0)
		l->on_answer(l, asked, &reply, NULL);
}

int copier_link_open(struct copier_link *l, struct loop *loop, int fd,
		     copier_link_answer_fn *on_answer, struct err *err)
{
	*l = (struct copier_link){ .on_answer = on_answer, .fd = fd };
	timer_init(&l->deadline, loop, on_deadline);
	if (watch_open(&l->ready, loop, fd, WATCH_READ | WATCH_HUP, on_ready, err) < 0) {
		copier_link_close(l);
		return -1;
	}
	return 0;
}

int copier_link_ask(struct copier_link *l, enum copier_verb verb, uint32_t base_crc,
		    uint64_t deadline_ms, struct err *err)
{
	const struct copier_request rq = { .version = COPIER_VERSION,
					   .verb = verb,
					   .base_crc = base_crc };

	assert(l->on_answer && l->n_asked < COPIER_LINK_ASKED_MAX);
	if (send(l->fd, &rq, sizeof(rq), MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof(rq))
		return err_set(err, ERR_UNAVAILABLE, errno, "the copier cannot be asked");
	l->asked[l->n_asked++] = verb;
	l->deadline_ms = deadline_ms;
	if (l->n_asked == 1)
		timer_start(&l->deadline, deadline_ms);
	return 0;
}
