/* zsock.c - see zsock.h. */
#include "interp/zsock.h"

#include <errno.h>
#include <zmq.h>

static int set_int(void *socket, int option, int value)
{
	return zmq_setsockopt(socket, option, &value, sizeof(value));
}

static int set_up(void *socket, int type)
{
	const int64_t largest = ZSOCK_MESSAGE_MAX;

	if (set_int(socket, ZMQ_LINGER, 0) < 0 ||
	    set_int(socket, ZMQ_RCVHWM, ZSOCK_WAITING_MAX) < 0 ||
	    set_int(socket, ZMQ_RECONNECT_IVL, ZSOCK_RETRY_MS) < 0 ||
	    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &largest, sizeof(largest)) < 0)
		return -1;
	return type == ZMQ_SUB ? zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) : 0;
}

static bool readable(struct zsock *z)
{
	size_t size = sizeof(int);
	int events = 0;

	return zmq_getsockopt(z->socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN);
}

/* All frames of the next message. Those that are too many are dropped, and *ret_n is 0. */
static void receive(struct zsock *z, zmq_msg_t frames[static ZSOCK_FRAMES_MAX], size_t *ret_n)
{
	size_t n = 0;
	bool more = true, fits = true;

	while (more) {
		zmq_msg_t *m = &frames[fits ? n : 0];

		zmq_msg_init(m);
		if (zmq_msg_recv(m, z->socket, ZMQ_DONTWAIT) < 0) {
			zmq_msg_close(m);
			break;
		}
		more = zmq_msg_more(m) != 0;
		n++;
		if (fits && n == ZSOCK_FRAMES_MAX && more) {
			fits = false;
			for (size_t i = 0; i < n; i++)
				zmq_msg_close(&frames[i]);
		} else if (!fits) {
			zmq_msg_close(m);
		}
	}
	*ret_n = fits ? n : 0;
}

/* How many bytes it had. */
static size_t deliver_one(struct zsock *z)
{
	zmq_msg_t frames[ZSOCK_FRAMES_MAX];
	struct bytes views[ZSOCK_FRAMES_MAX];
	size_t n, bytes = 0;

	receive(z, frames, &n);
	for (size_t i = 0; i < n; i++) {
		views[i] = (struct bytes){ zmq_msg_data(&frames[i]), zmq_msg_size(&frames[i]) };
		bytes += views[i].len;
	}
	if (n > 0 && bytes <= ZSOCK_MESSAGE_MAX)
		z->on_message(z, views, n);
	for (size_t i = 0; i < n; i++)
		zmq_msg_close(&frames[i]);
	return bytes;
}

static void look(struct zsock *z)
{
	bool gone = false, more = true;
	size_t bytes = 0;

	z->gone = &gone;
	for (int i = 0; i < ZSOCK_TURN_MESSAGES && bytes < ZSOCK_TURN_BYTES && more; i++) {
		more = !z->paused && readable(z);
		bytes += more ? deliver_one(z) : 0;
		if (gone)
			return;
	}
	z->gone = NULL;
	if (more)
		timer_start(&z->again, 0);
}

static void on_ready(struct watch *w, unsigned int events)
{
	(void)events;
	look(CONTAINER_OF(w, struct zsock, ready));
}

static void on_again(struct timer *t)
{
	look(CONTAINER_OF(t, struct zsock, again));
}

int zsock_open(struct zsock *z, struct loop *l, void *context, int type, const char *endpoint,
	       zsock_message_fn *on_message, struct err *err)
{
	size_t size = sizeof(int);
	int fd = -1;

	*z = (struct zsock){ .socket = zmq_socket(context, type), .on_message = on_message };
	timer_init(&z->again, l, on_again);
	if (!z->socket || set_up(z->socket, type) < 0 || zmq_connect(z->socket, endpoint) < 0 ||
	    zmq_getsockopt(z->socket, ZMQ_FD, &fd, &size) < 0) {
		err_set(err, ERR_INTERNAL, errno, "connect to %s", endpoint);
		zsock_close(z);
		return -1;
	}
	if (watch_open(&z->ready, l, fd, WATCH_READ, on_ready, err) < 0) {
		zsock_close(z);
		return -1;
	}
	timer_start(&z->again, 0);
	return 0;
}

int zsock_send(struct zsock *z, const struct bytes *frames, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		int flags = ZMQ_DONTWAIT | (i + 1 < n ? ZMQ_SNDMORE : 0);

		/* only the first can be refused: libzmq takes the rest of what it has begun */
		if (zmq_send(z->socket, frames[i].ptr, frames[i].len, flags) < 0)
			return err_set(err, ERR_EXHAUSTED, errno, "send to the kernel");
	}
	timer_start(&z->again, 0);
	return 0;
}

void zsock_pause(struct zsock *z, bool on)
{
	if (z->paused == on || !z->socket)
		return;
	z->paused = on;
	watch_set(&z->ready, on ? 0 : WATCH_READ);
	if (!on)
		timer_start(&z->again, 0);
}

void zsock_close(struct zsock *z)
{
	if (z->gone)
		*z->gone = true;
	timer_stop(&z->again);
	watch_close(&z->ready);
	if (z->socket)
		zmq_close(z->socket);
	*z = (struct zsock){ 0 };
}
