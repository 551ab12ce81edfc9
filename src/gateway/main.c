/* main.c - hotcell-gateway: the public door of Hotcell.
 *
 * It parses what the internet sends, and so it may do nothing: no files but its database, no
 * program to start, no way to a sandbox but the sockets that node gives it. It may be killed at any
 * instant; clients connect again.
 */
#include <signal.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/random.h"
#include "gateway/api/admin_door.h"
#include "gateway/api/api.h"
#include "gateway/dispatch.h"
#include "gateway/gateway.h"
#include "gateway/relay/crowd.h"
#include "gateway/relay/guest_cache.h"
#include "gateway/relay/relay.h"
#include "gateway/settings.h"
#include "gateway/syscalls.h"
#include "jail/confine.h"
#include "net/signals.h"
#include "tls/tls_stream.h"

enum { STREAMS_PER_CONNECTION = 2, FILES_MORE = 1024 }; /* descriptors besides connections */

struct program {
	struct config_value set[SETTINGS];
	struct gateway g;
	struct node_link_user node_user;
	struct http_server http;
	struct listener listener;
	struct crowd crowd;
	struct admin_door admin;
	struct store *store;
	struct signal_watch term, intr;
};

static void on_request(struct http_server *http, struct http_request *rq)
{
	struct program *p = CONTAINER_OF(http, struct program, http);
	struct dispatch to;

	dispatch_find(http_request_head(rq), p->g.domain, &to);
	if (to.plane == PLANE_API)
		api_request(&p->g, rq);
	else
		relay_request(&p->g, rq, &to);
}

static void on_accept(struct listener *ln, struct stream *s, const struct addr *peer)
{
	struct program *p = CONTAINER_OF(ln, struct program, listener);
	struct err err;

	crowd_look(&p->crowd);
	if (http_server_add(&p->http, s, peer, &err) < 0)
		log_warn("a connection: %s", err.msg);
}

static void on_surplus(struct listener *ln, struct stream *s, const struct addr *peer)
{
	(void)peer;
	crowd_refuse(&CONTAINER_OF(ln, struct program, listener)->crowd, s);
}

static void on_gone(struct node_link_user *u, const char *id, uint32_t generation)
{
	guest_cache_gone(CONTAINER_OF(u, struct program, node_user)->g.guests, id, generation);
}

static void on_down(struct node_link_user *u)
{
	guest_cache_forget(CONTAINER_OF(u, struct program, node_user)->g.guests);
}

static void on_up(struct node_link_user *u)
{
	(void)u;
}

static void on_term(struct signal_watch *w)
{
	loop_stop(CONTAINER_OF(w, struct program, term)->g.loop);
}

static void on_intr(struct signal_watch *w)
{
	loop_stop(CONTAINER_OF(w, struct program, intr)->g.loop);
}

static int open_doors(struct program *p, struct err *err)
{
	static const struct http_server_ops server_ops = { on_request };
	static const struct listener_ops listener_ops = { on_accept, on_surplus };
	struct addr at;

	http_server_init(&p->http, p->g.loop, &server_ops, &HTTP_LIMITS);
	if (addr_parse(bytes_str(p->set[SET_LISTEN].text), &at, err) < 0 ||
	    listener_open(&p->listener, p->g.loop, &listener_ops, &at, 0666,
			  p->set[SET_CONNECTIONS_MAX].number, err) < 0 ||
	    listener_limit_address(&p->listener, p->set[SET_ADDRESS_CONNECTIONS_MAX].number, true,
				   err) < 0)
		return err_wrap(err, "listen");
	p->crowd.connections_max = p->set[SET_CONNECTIONS_MAX].number;
	crowd_open(&p->crowd, &p->g, &p->listener, &p->http);
	listener_pause(&p->listener, true); /* until there is somebody to answer */
	return admin_door_open(&p->admin, &p->g, p->set[SET_ADMIN_SOCKET].text,
			       (uid_t)p->set[SET_ADMIN_UID].number, err);
}

/* Everything after this is done as `user`. */
static int lock_in(struct program *p, struct err *err)
{
	const struct confine_path paths[] = {
		{ p->set[SET_DATA_DIR].text, CONFINE_WRITE },
		{ "/dev/urandom", CONFINE_READ },
	};
	const struct confine c = { p->set[SET_USER].text, paths, COUNT(paths), syscalls };
	uint32_t seed;

	if (confine_folder(p->set[SET_DATA_DIR].text, p->set[SET_USER].text, err) < 0)
		return -1;
	random_fill(&seed, sizeof(seed));
	json_object_seed(seed);
	json_wipe_freed(); /* values of secrets pass through it */
	return confine(&c, err);
}

static int set_up(struct program *p, struct err *err)
{
	static const struct node_link_ops node_ops = { on_gone, on_down, on_up };
	uint64_t files = p->set[SET_CONNECTIONS_MAX].number * STREAMS_PER_CONNECTION +
			 GATEWAY_HELD_MAX + FILES_MORE;

	if (!bytes_to_str(bytes_str(p->set[SET_DOMAIN].text), p->g.domain, sizeof(p->g.domain)))
		return err_set(err, ERR_INVALID, 0, "domain is too long");
	if (confine_begin(files, err) < 0 || loop_open(&p->g.loop, err) < 0 ||
	    tls_client_open(&(struct tls_trust){ .unverified = true }, &p->g.guest_tls, err) < 0 ||
	    open_doors(p, err) < 0 || lock_in(p, err) < 0 ||
	    store_open(p->g.loop, p->set[SET_DATA_DIR].text, &p->store, err) < 0 ||
	    api_open(&p->g, p->store, err) < 0)
		return -1;
	p->g.api->public = &p->http;
	p->node_user.ops = &node_ops;
	if (node_link_open(p->g.loop, p->set[SET_NODE_SOCKET].text, &p->node_user, &p->g.node,
			   err) < 0 ||
	    guest_cache_open(&p->g, err) < 0 ||
	    signal_open(&p->term, p->g.loop, SIGTERM, on_term, err) < 0 ||
	    signal_open(&p->intr, p->g.loop, SIGINT, on_intr, err) < 0)
		return -1;
	p->g.guests->agent_ms = p->set[SET_AGENT_SECONDS].number * 1000;
	p->g.guests->users_max = p->set[SET_SANDBOX_CONNECTIONS_MAX].number;
	listener_pause(&p->listener, false);
	return 0;
}

static void tear_down(struct program *p)
{
	crowd_close(&p->crowd);
	listener_close(&p->listener);
	http_server_done(&p->http);
	admin_door_close(&p->admin);
	guest_cache_close(p->g.guests);
	api_close(p->g.api);
	store_close(p->store);
	node_link_close(p->g.node);
	signal_close(&p->term);
	signal_close(&p->intr);
	loop_free(p->g.loop);
	tls_context_free(p->g.guest_tls);
}

static int run(struct program *p)
{
	char where[ADDR_TEXT_MAX];
	struct addr at;

	listener_addr(&p->listener, &at);
	addr_text(&at, where);
	log_info("listening on %s", where);
	loop_run(p->g.loop);
	log_info("ends");
	tear_down(p);
	return 0;
}

static int usage(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--routes") == 0) {
		routes_print(stdout);
		return 0;
	}
	printf("usage: hotcell-gateway CONFIG\n"
	       "       hotcell-gateway --routes   METHOD PATH AUTH of each, one per line\n\n"
	       "The configuration file, with its defaults:\n\n");
	config_print(settings_table, SETTINGS, stdout);
	return argc == 2 ? 0 : 2;
}

int main(int argc, char **argv)
{
	struct program *p;
	struct err err = { 0 };

	log_init("gateway", LOG_INFO);
	if (argc != 2 || argv[1][0] == '-')
		return usage(argc, argv);
	umask(077);
	p = calloc(1, sizeof(*p));
	if (!p || config_load(settings_table, SETTINGS, argv[1], p->set, &err) < 0) {
		log_error("%s", p ? err.msg : "no memory");
		return 2;
	}
	if (set_up(p, &err) < 0) {
		log_error("%s", err.msg);
		return 1;
	}
	run(p);
	free(p);
	return 0;
}
