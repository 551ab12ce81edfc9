/* question.c - see question.h. */
/* #syscalls: socket_inet connect sendto recvfrom close getrandom */
#include "egress/question.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/random.h"

static void ask_again(struct question *q);

/* --- its end ------------------------------------------------------------------------------ */

static void hang_up(struct question *q)
{
	if (q->udp >= 0) {
		watch_close(&q->ready);
		close(take_fd(&q->udp));
	}
	dial_cancel(&q->dial);
	if (q->tcp)
		stream_abort(TAKE(q->tcp));
}

void question_cancel(struct question *q)
{
	if (!q->loop)
		return;
	hang_up(q);
	timer_stop(&q->late);
	buf_done(&q->query);
	buf_done(&q->answer);
	*q = (struct question){ .udp = -1 };
}

static void finish(struct question *q, enum dns_reading reading)
{
	__auto_type on_done = q->on_done;
	struct dns_addresses found = q->found;

	question_cancel(q);
	on_done(q, reading, &found);
}

/* --- over TCP ----------------------------------------------------------------------------- */

enum { LENGTH = 2 };

static void on_tcp_data(struct stream_user *u, struct bytes in)
{
	struct question *q = CONTAINER_OF(u, struct question, user);
	enum dns_reading reading;
	struct bytes got;
	struct err err;

	if (buf_add(&q->answer, in, &err) < 0) {
		ask_again(q);
		return;
	}
	got = buf_view(&q->answer);
	if (got.len < LENGTH || got.len - LENGTH < ((size_t)got.ptr[0] << 8 | got.ptr[1]))
		return;
	reading = dns_read_answer(bytes_tail(got, LENGTH), buf_view(&q->query), &q->found);
	if (reading == DNS_ANSWERED || reading == DNS_NO_NAME)
		finish(q, reading);
	else
		ask_again(q);
}

static void on_tcp_end(struct stream_user *u)
{
	ask_again(CONTAINER_OF(u, struct question, user));
}

static void on_tcp_fail(struct stream_user *u, const struct err *err)
{
	(void)err;
	ask_again(CONTAINER_OF(u, struct question, user));
}

static const struct stream_user_ops tcp_ops = { on_tcp_data, on_tcp_end, NULL, on_tcp_fail };

static void on_dialled(struct dial *d, struct stream *s, const struct err *failed)
{
	struct question *q = CONTAINER_OF(d, struct question, dial);
	uint8_t out[LENGTH + DNS_QUERY_MAX];
	struct err err;

	out[0] = (uint8_t)(q->query.len >> 8);
	out[1] = (uint8_t)q->query.len;
	memcpy(out + LENGTH, q->query.ptr, q->query.len);
	q->tcp = s;
	if (failed || stream_write(s, (struct bytes){ out, LENGTH + q->query.len }, &err) < 0) {
		ask_again(q);
		return;
	}
	q->user.ops = &tcp_ops;
	stream_set_user(s, &q->user);
	stream_read(s, true);
}

static void ask_over_tcp(struct question *q, const struct addr *server)
{
	struct err err;

	hang_up(q);
	buf_clear(&q->answer);
	timer_start(&q->late, QUESTION_TCP_MS);
	if (dial_start(&q->dial, q->loop, server, QUESTION_TCP_MS, on_dialled, &err) < 0)
		timer_start(&q->late, 0);
}

/* --- by datagram -------------------------------------------------------------------------- */

static const struct addr *server_asked(const struct question *q)
{
	return &q->servers->all[(q->server + q->servers->n - 1) % q->servers->n];
}

static void on_datagram(struct watch *w, unsigned int events)
{
	struct question *q = CONTAINER_OF(w, struct question, ready);
	uint8_t in[DNS_ANSWER_MAX + 1];
	ssize_t n = recvfrom(q->udp, in, sizeof(in), MSG_DONTWAIT, NULL, NULL);

	(void)events;
	if (n < 0) { /* nobody is there, perhaps: the next one is asked at once */
		if (errno != EAGAIN)
			ask_again(q);
		return;
	}
	switch (dns_read_answer((struct bytes){ in, (size_t)n }, buf_view(&q->query), &q->found)) {
	case DNS_ANSWERED:
		finish(q, DNS_ANSWERED);
		return;
	case DNS_NO_NAME:
		finish(q, DNS_NO_NAME);
		return;
	case DNS_CUT:
		ask_over_tcp(q, server_asked(q));
		return;
	case DNS_FAILED:
		ask_again(q);
		return;
	case DNS_NOT_OURS: /* somebody guesses: go on waiting for the true one */
		return;
	}
}

static int send_datagram(struct question *q, const struct addr *to, struct err *err)
{
	q->udp = socket(to->at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (q->udp < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "a socket for a resolver");
	/* SAFETY: sockaddr_storage is made to be seen as sockaddr */
	if (connect(q->udp, (const struct sockaddr *)&to->at, to->len) < 0 ||
	    sendto(q->udp, q->query.ptr, q->query.len, MSG_NOSIGNAL, NULL, 0) < 0 ||
	    watch_open(&q->ready, q->loop, q->udp, WATCH_READ, on_datagram, err) < 0) {
		close(take_fd(&q->udp));
		return err_set(err, ERR_UNAVAILABLE, errno, "ask a resolver");
	}
	return 0;
}

static void ask_again(struct question *q)
{
	const struct addr *to = &q->servers->all[q->server];
	struct err err;

	hang_up(q);
	if (q->tries == QUESTION_TRIES) {
		finish(q, DNS_FAILED);
		return;
	}
	q->tries++;
	q->server = (q->server + 1) % q->servers->n;
	timer_start(&q->late, send_datagram(q, to, &err) < 0 ? 0 : QUESTION_WAIT_MS);
}

static void on_late(struct timer *t)
{
	ask_again(CONTAINER_OF(t, struct question, late));
}

int question_start(struct question *q, struct loop *l, const struct question_servers *servers,
		   const char *name, question_done_fn *on_done, struct err *err)
{
	struct {
		uint64_t caps;
		uint16_t id;
	} secret;

	if (servers->n == 0)
		return err_set(err, ERR_UNAVAILABLE, 0, "no resolver is configured");
	random_fill(&secret, sizeof(secret));
	*q = (struct question){ .on_done = on_done,
				.loop = l,
				.servers = servers,
				.query = BUF_MAX(DNS_QUERY_MAX),
				.answer = BUF_MAX(DNS_ANSWER_MAX + LENGTH),
				.udp = -1 };
	timer_init(&q->late, l, on_late);
	if (dns_write_query(secret.id, name, secret.caps, &q->query, err) < 0) {
		question_cancel(q);
		return -1;
	}
	timer_start(&q->late, 0);
	return 0;
}
