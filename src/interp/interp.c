/* interp.c - the server: one loop, one door, kernels. */
#include "interp/interp.h"

#include <signal.h>
#include <zmq.h>

#include "base/log.h"
#include "interp/json_bound.h"

static void on_accept(struct listener *ln, struct stream *s, const struct addr *peer)
{
	struct interp *in = CONTAINER_OF(ln, struct interp, door);
	struct err err;

	if (http_server_add(&in->http, s, peer, &err) < 0)
		log_warn("%s", err.msg);
}

static void on_child(struct signal_watch *w)
{
	(void)w;
	kernels_reap();
}

static void start_eager(struct interp *in)
{
	const struct interp_options *o = in->options;
	struct context *c;
	struct err err;

	for (size_t i = 0; i < o->n_eager; i++)
		if (context_new(&in->contexts, o->eager[i], bytes_str(o->cwd), &c, &err) < 0)
			log_error("%s: %s", o->eager[i], err.msg);
		else {
			c->is_default = true;
			context_warm(c);
		}
}

static int open_door(struct interp *in, struct err *err)
{
	static const struct listener_ops ops = { .on_accept = on_accept };
	struct addr at;

	if (addr_ip(in->options->listen, in->options->port, &at, err) < 0 ||
	    listener_open(&in->door, in->loop, &ops, &at, 0, INTERP_CONNECTIONS_MAX, err) < 0)
		return -1;
	listener_addr(&in->door, &at);
	if (in->options->port == 0) {
		printf("ready %u\n", addr_port(&at));
		fflush(stdout);
	}
	return 0;
}

static int set_up(struct interp *in, const char *const *env, struct err *err)
{
	static const struct http_server_ops ops = { interp_route };
	static const struct http_limits limits = HTTP_LIMITS;
	const struct interp_options *o = in->options;

	json_bound_init();
	json_object_seed(0);
	contexts_init(&in->contexts);
	if (o->agent && addr_parse(bytes_str(o->agent), &in->agent, err) < 0)
		return -1;
	if (loop_open(&in->loop, err) < 0)
		return -1;
	http_server_init(&in->http, in->loop, &ops, &limits);
	in->contexts.agent = o->agent ? &in->agent : NULL;
	in->contexts.partings = o->partings;
	in->contexts.dirs = o->dirs;
	in->contexts.place =
		(struct kernel_place){ in->loop, zmq_ctx_new(), o->run, env, o->cwd, o->programs };
	if (!in->contexts.place.zmq)
		return err_set(err, ERR_EXHAUSTED, 0, "ZeroMQ");
	if (signal_end_open(&in->end, in->loop, err) < 0 ||
	    signal_open(&in->child, in->loop, SIGCHLD, on_child, err) < 0 || open_door(in, err) < 0)
		return -1;
	start_eager(in);
	return 0;
}

static void tear_down(struct interp *in)
{
	if (!in->loop)
		return;
	listener_close(&in->door);
	http_server_done(&in->http);
	contexts_done(&in->contexts);
	signal_close(&in->child);
	signal_end_close(&in->end);
	if (in->contexts.place.zmq)
		zmq_ctx_term(in->contexts.place.zmq);
	loop_free(in->loop);
}

int interp_serve(const struct interp_options *o, const char *const *env)
{
	struct interp in = { .options = o };
	struct err err;
	int rc = EXIT_FAILURE;

	if (set_up(&in, env, &err) < 0) {
		log_error("%s", err.msg);
	} else {
		loop_run(in.loop);
		rc = EXIT_SUCCESS;
	}
	tear_down(&in);
	return rc;
}
