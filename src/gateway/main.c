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
#include "gateway/arrivals/https_only.h"
#include "gateway/dispatch.h"
#include "gateway/drain.h"
#include "gateway/gateway.h"
#include "gateway/metrics_door.h"
#include "gateway/peers.h"
#include "gateway/proxies.h"
#include "gateway/relay/crowd.h"
#include "gateway/relay/guest_cache.h"
#include "gateway/relay/relay.h"
#include "gateway/settings.h"
#include "gateway/syscalls.h"
#include "jail/confine.h"
#include "net/signals.h"
#include "net/supervisor.h"
#include "net/watchdog.h"
#include "tls/tls_stream.h"

enum { STREAMS_PER_CONNECTION = 2, FILES_MORE = 1024 }; /* descriptors besides connections */

struct program {
	struct config_value set[SETTINGS];
	struct supervisor supervisor;
	struct watchdog watchdog;
	struct peers peers;
	struct drain drain;
	struct gateway g;
	struct node_link_user node_user;
	struct http_server http;
	struct listener listener;
	struct crowd crowd;
	struct proxies proxies;
	struct arrivals arrivals;
	struct arrivals_terms arrivals_terms;
	struct admin_door admin;
	struct metrics_door metrics;
	struct store *store;
	struct signal_watch term, intr;
};

static void on_request(struct http_server *http, struct http_request *rq)
{
	struct program *p = CONTAINER_OF(http, struct program, http);
	struct dispatch to;

	figures_begin(rq, CLASS_OTHER);
	if (!proxies_admit(&p->proxies, rq) || https_only(&p->arrivals, rq))
		return;
	dispatch_find(http_request_head(rq), p->g.domain, &to);
	if (to.plane != PLANE_API)
		figures_begin(rq, CLASS_TRAFFIC);
	if (drain_refuses(&p->drain, rq, to.plane == PLANE_API))
		return;
	if (to.plane == PLANE_API)
		api_request(&p->g, rq);
	else
		relay_request(&p->g, rq, &to);
}

static void on_over(struct http_server *http, struct http_request *rq, unsigned int status)
{
	figures_over(&CONTAINER_OF(http, struct program, http)->g.figures, rq, status);
}

static struct program *of_listener(struct listener *ln)
{
	return CONTAINER_OF(ln, struct program, listener);
}

static void on_introduced(struct listener *ln, struct stream *s, const struct net_peer *peer)
{
	struct program *p = of_listener(ln);
	struct err err;

	crowd_look(&p->crowd);
	if (crowd_is_full(&p->crowd))
		stream_abort(s);
	else if (http_server_add_as(&p->http, s, peer, HTTP_1_1, &err) < 0)
		log_warn("a connection: %s", err.msg);
}

static void on_accept(struct listener *ln, struct stream *s, const struct addr *peer)
{
	on_introduced(ln, s, &(struct net_peer){ .at = *peer });
}

static void on_surplus(struct listener *ln, struct stream *s, const struct addr *peer)
{
	(void)peer;
	crowd_refuse(&of_listener(ln)->crowd, s);
}

static enum listener_peer kind_of(struct listener *ln, const struct addr *peer)
{
	return proxies_kind_of(&of_listener(ln)->proxies, peer);
}

static int read_introduction(struct listener *ln, struct bytes so_far, struct net_peer *who,
			     size_t *ret_more, struct err *err)
{
	(void)ln;
	return proxies_read_introduction(so_far, who, ret_more, err);
}

static void on_unknown(struct listener *ln, const struct addr *proxy, const struct err *why)
{
	struct program *p = of_listener(ln);

	proxies_refused(&p->proxies, proxy, why, loop_now_ms(p->g.loop));
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
	drain_begin(&CONTAINER_OF(w, struct program, term)->drain);
}

static void on_intr(struct signal_watch *w)
{
	loop_stop(CONTAINER_OF(w, struct program, intr)->g.loop);
}

static int check_plain(const struct program *p, const struct addr *at, const char *what,
		       struct err *err)
{
	char text[ADDR_TEXT_MAX];

	if (addr_is_local(at) || p->set[SET_PLAIN].number)
		return 0;
	addr_text(at, text);
	return err_set(err, ERR_DENIED, 0,
		       "%s is %s, plain HTTP for others than this host: have TLS at that address "
		       "(listen_tls) and plain HTTP at 127.0.0.1, or set plain = yes",
		       what, text);
}

/* The socket `http` of the service manager, or one of our own at `listen`. */
static int listen_public(struct program *p, struct err *err)
{
	static const struct listener_ops ops = { on_accept,         on_surplus,    kind_of,
						 read_introduction, on_introduced, on_unknown };
	size_t limit = p->set[SET_CONNECTIONS_MAX].number;
	int fd = supervisor_take(&p->supervisor, "http");
	struct addr at;

	if (fd < 0) {
		if (addr_parse(bytes_str(p->set[SET_LISTEN].text), &at, err) < 0 ||
		    check_plain(p, &at, "listen", err) < 0)
			return -1;
		return listener_open(&p->listener, p->g.loop, &ops, &at, 0666, limit, err);
	}
	if (p->set[SET_LISTEN].set)
		log_info("listen is not used: the service manager has a socket for it");
	if (listener_open_fd(&p->listener, p->g.loop, &ops, fd, limit, err) < 0)
		return -1;
	listener_addr(&p->listener, &at);
	return check_plain(p, &at, "the service manager's socket `http`", err);
}

static int open_admin(struct program *p, struct err *err)
{
	uid_t uid = (uid_t)p->set[SET_ADMIN_UID].number;
	int fd = supervisor_take(&p->supervisor, "admin");

	if (fd >= 0)
		return admin_door_open_fd(&p->admin, &p->g, fd, uid, err);
	return admin_door_open(&p->admin, &p->g, p->set[SET_ADMIN_SOCKET].text, uid, err);
}

static int open_arrivals(struct program *p, struct err *err)
{
	p->arrivals_terms = (struct arrivals_terms){
		.listen = p->set[SET_LISTEN_TLS].text,
		.given = supervisor_take(&p->supervisor, "https"),
		.proxies = &p->proxies,
		.tls_dir = p->set[SET_TLS_DIR].text,
		.signer_socket = p->set[SET_SIGNER_SOCKET].text,
		.domain = p->g.domain,
		.ticket_ms = p->set[SET_TICKET_SECONDS].number * 1000,
		.connections_max = p->set[SET_CONNECTIONS_MAX].number,
		.address_connections_max = p->set[SET_ADDRESS_CONNECTIONS_MAX].number,
	};
	return arrivals_open(&p->arrivals, &p->g, &p->http, &p->crowd, &p->arrivals_terms, err);
}

static int open_doors(struct program *p, struct err *err)
{
	static const struct http_server_ops server_ops = { on_request, on_over };
	const char *name;

	http_server_init(&p->http, p->g.loop, &server_ops, &HTTP_LIMITS);
	http_server_speak_h2(&p->http);
	p->proxies.introduce = p->set[SET_PROXY_PROTOCOL].number;
	p->proxies.requests_max = p->set[SET_ADDRESS_CONNECTIONS_MAX].number;
	if (proxies_parse(&p->proxies, p->set[SET_PROXIES].text, err) < 0)
		return -1;
	if (listen_public(p, err) < 0 ||
	    listener_limit_address(&p->listener, p->set[SET_ADDRESS_CONNECTIONS_MAX].number, true,
				   err) < 0)
		return err_wrap(err, "listen");
	p->crowd.connections_max = p->set[SET_CONNECTIONS_MAX].number;
	p->g.relays.address_max = p->set[SET_ADDRESS_CONNECTIONS_MAX].number;
	crowd_open(&p->crowd, &p->g, &p->listener, &p->http);
	listener_pause(&p->listener, true); /* until there is somebody to answer */
	if (open_arrivals(p, err) < 0 || open_admin(p, err) < 0 ||
	    metrics_door_open(&p->metrics, &p->g, p->set[SET_METRICS_LISTEN].text, err) < 0)
		return -1;
	while ((name = supervisor_drop(&p->supervisor)))
		log_warn("the service manager's socket `%s` is not used", name);
	return 0;
}

/* Everything after this is done as `user`. */
static int lock_in(struct program *p, struct err *err)
{
	const struct confine_path paths[] = {
		{ p->set[SET_DATA_DIR].text, CONFINE_WRITE },
		{ "/dev/urandom", CONFINE_READ },
		{ p->set[SET_TLS_DIR].text, CONFINE_READ },
	};
	size_t n = COUNT(paths) - !arrivals_on(&p->arrivals);
	const struct confine c = { p->set[SET_USER].text, paths, n, syscalls };
	uint32_t seed;

	if (confine_folder(p->set[SET_DATA_DIR].text, p->set[SET_USER].text, err) < 0)
		return -1;
	random_fill(&seed, sizeof(seed));
	json_object_seed(seed);
	json_wipe_freed(); /* values of secrets pass through it */
	return confine(&c, err);
}

static void begin(struct program *p)
{
	struct drain *d = &p->drain;

	*d = (struct drain){ .g = &p->g,
			     .http = &p->http,
			     .admin = &p->admin,
			     .supervisor = &p->supervisor,
			     .peers = &p->peers,
			     .max_ms = p->set[SET_DRAIN_SECONDS].number * 1000 };
	drain_add(d, &p->listener);
	for (size_t i = 0; i < arrivals_doors(&p->arrivals); i++)
		drain_add(d, arrivals_door(&p->arrivals, i));
	if (p->metrics.g)
		drain_add(d, &p->metrics.listener);
	listener_pause(&p->listener, false);
	arrivals_begin(&p->arrivals);
	drain_open(d);
	watchdog_start(&p->watchdog, p->g.loop, &p->supervisor.notify);
}

static int set_up(struct program *p, struct err *err)
{
	static const struct node_link_ops node_ops = { on_gone, on_down, on_up };
	uint64_t files = p->set[SET_CONNECTIONS_MAX].number * STREAMS_PER_CONNECTION +
			 GATEWAY_HELD_MAX + FILES_MORE;

	process_use_open(&p->g.figures.process);
	if (sandbox_domain_setting(p->set[SET_DOMAIN].text, p->g.domain, err) < 0)
		return -1;
	if (supervisor_open(&p->supervisor, err) < 0 || confine_begin(files, err) < 0 ||
	    loop_open(&p->g.loop, err) < 0 ||
	    tls_client_open(&(struct tls_trust){ .unverified = true }, &p->g.guest_tls, err) < 0 ||
	    open_doors(p, err) < 0 || lock_in(p, err) < 0 ||
	    peers_open(&p->peers, p->set[SET_DATA_DIR].text, err) < 0 ||
	    store_open(p->g.loop, p->set[SET_DATA_DIR].text, &p->store, err) < 0)
		return -1;
	p->g.peers = &p->peers;
	if (api_open(&p->g, p->store, err) < 0)
		return -1;
	p->g.api->public = &p->http;
	p->g.api->connections_max = p->set[SET_CONNECTIONS_MAX].number;
	p->g.figures.logs = p->set[SET_ACCESS_LOG].number;
	p->node_user.ops = &node_ops;
	if (node_link_open(p->g.loop, p->set[SET_NODE_SOCKET].text, &p->node_user, &p->g.node,
			   err) < 0 ||
	    guest_cache_open(&p->g, err) < 0 ||
	    signal_open(&p->term, p->g.loop, SIGTERM, on_term, err) < 0 ||
	    signal_open(&p->intr, p->g.loop, SIGINT, on_intr, err) < 0)
		return -1;
	p->g.guests->agent_ms = p->set[SET_AGENT_SECONDS].number * 1000;
	p->g.guests->users_max = p->set[SET_SANDBOX_CONNECTIONS_MAX].number;
	begin(p);
	return 0;
}

static void tear_down(struct program *p)
{
	watchdog_stop(&p->watchdog);
	drain_close(&p->drain);
	crowd_close(&p->crowd);
	arrivals_close(&p->arrivals);
	listener_close(&p->listener);
	http_server_done(&p->http);
	admin_door_close(&p->admin);
	metrics_door_close(&p->metrics);
	guest_cache_close(p->g.guests);
	api_close(p->g.api);
	store_close(p->store);
	node_link_close(p->g.node);
	signal_close(&p->term);
	signal_close(&p->intr);
	loop_free(p->g.loop);
	tls_context_free(p->g.guest_tls);
	peers_close(&p->peers);
	process_use_close(&p->g.figures.process);
	supervisor_close(&p->supervisor);
}

static int run(struct program *p)
{
	char where[ADDR_TEXT_MAX];
	struct addr at;

	listener_addr(&p->listener, &at);
	addr_text(&at, where);
	log_info("listening on %s", where);
	if (!p->g.domain[0])
		log_warn("domain is not set: host names of sandboxes end in what each client calls "
			 "this gateway by; set domain in its configuration file, see docs/tls.md");
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
	if (argc == 2 && strcmp(argv[1], "--metrics") == 0) {
		figures_print();
		return 0;
	}
	printf("usage: hotcell-gateway CONFIG\n"
	       "       hotcell-gateway --routes   METHOD PATH AUTH of each, one per line\n"
	       "       hotcell-gateway --metrics  NAME, KIND, LABELS and HELP of each, the same\n\n"
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
		log_error("%s; fix: `hotcell doctor` says what this host lacks", err.msg);
		return 1;
	}
	run(p);
	free(p);
	return 0;
}
