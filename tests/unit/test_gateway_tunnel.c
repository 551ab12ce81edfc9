/* test_gateway_tunnel.c - ports that are closed from outside are tried through the agent. */
#include "tests/unit/gateway_world.h"

#define SWITCHED    "HTTP/1.1 101 Yes\r\nconnection: upgrade\r\nupgrade: hotcell-tunnel\r\n\r\n"
#define PORT_CLOSED "The sandbox is running but port is not open\""

/* The world's guest is the agent. */
static void world_with_agent(struct world *w, const struct script *agent)
{
	world_open(w);
	w->g.guests->agent_port = w->port;
	w->script = agent;
}

/* One where nobody listens: it belongs to us, and does not. */
static uint16_t closed_port(int *ret_fd)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);

	*ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(*ret_fd >= 0);
	assert_int_equal(bind(*ret_fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(*ret_fd, (struct sockaddr *)&at, &len), 0);
	return ntohs(at.sin_port);
}

static void ask_port(struct world *w, uint16_t port, const char *method, const char *fields)
{
	char text[1024];

	world_client(w);
	(void)snprintf(text, sizeof(text), "%s /hello HTTP/1.1\r\nhost: %u-abc.test\r\n%s\r\n",
		       method, (unsigned int)port, fields);
	say(w, text);
}

static void peer_says(struct world *w, const char *text)
{
	struct err err = { 0 };

	if (stream_write(w->peers->ear.s, bytes_str(text), &err) < 0)
		fail_msg("%s", err.msg);
}

static void a_service_on_loopback_is_reached(void **state)
{
	static const struct script agent = { BYTES_LIT(SWITCHED) };
	struct world w;
	char want[64];
	int fd;
	uint16_t port = closed_port(&fd);

	(void)state;
	world_with_agent(&w, &agent);
	ask_port(&w, port, "POST", "content-length: 3\r\n");
	say(&w, "abc");
	RUN_UNTIL(w.l, w.peers && heard(&w.peers->ear, "\r\n\r\nabc"));
	(void)snprintf(want, sizeof(want), "hotcell-tunnel-port: %u\r\n", (unsigned int)port);
	assert_true(heard(&w.peers->ear, "GET /tunnel HTTP/1.1\r\n"));
	assert_true(heard(&w.peers->ear, want));
	assert_true(heard(&w.peers->ear, "Upgrade: hotcell-tunnel\r\n"));
	assert_true(heard(&w.peers->ear, "POST /hello HTTP/1.1\r\n"));
	peer_says(&w, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nok"));
	assert_int_equal(w.n_accepted, 1);
	world_close(&w);
	close(fd);
}

static void a_service_may_speak_first(void **state)
{
	static const struct script agent = { BYTES_LIT(
		SWITCHED "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok") };
	struct world w;
	int fd;
	uint16_t port = closed_port(&fd);

	(void)state;
	world_with_agent(&w, &agent);
	ask_port(&w, port, "GET", "");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nok"));
	world_close(&w);
	close(fd);
}

static void switches_go_through(void **state)
{
	static const struct script agent = { BYTES_LIT(SWITCHED) };
	struct world w;
	int fd;
	uint16_t port = closed_port(&fd);

	(void)state;
	world_with_agent(&w, &agent);
	ask_port(&w, port, "GET", "connection: upgrade\r\nupgrade: websocket\r\n");
	RUN_UNTIL(w.l, w.peers && heard(&w.peers->ear, "Upgrade: websocket\r\n"));
	peer_says(&w, "HTTP/1.1 101 Yes\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nping");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nping"));
	say(&w, "pong");
	RUN_UNTIL(w.l, heard(&w.peers->ear, "pong"));
	world_close(&w);
	close(fd);
}

static void no_tunnel_no_port(void **state)
{
	static const struct {
		const char *name;
		struct script agent;
	} rows[] = {
		{ "nobody listens",
		  { BYTES_LIT("HTTP/1.1 502 No\r\ncontent-length: 2\r\n\r\nno") } },
		{ "too many", { BYTES_LIT("HTTP/1.1 429 No\r\ncontent-length: 0\r\n\r\n") } },
		{ "an endless refusal",
		  { BYTES_LIT("HTTP/1.1 502 No\r\n\r\nno no no"), .repeat = 100000 } },
		{ "it says yes to all", { BYTES_LIT("HTTP/1.1 200 OK\r\n\r\n") } },
		{ "another protocol",
		  { BYTES_LIT("HTTP/1.1 101 Yes\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n") } },
		{ "no protocol", { BYTES_LIT("HTTP/1.1 101 Yes\r\n\r\n") } },
		{ "no HTTP", { BYTES_LIT("what?\r\n\r\n") } },
		{ "closed", { BYTES_LIT(""), .then = THEN_CLOSE, .at_once = true } },
		{ "reset", { BYTES_LIT(""), .then = THEN_RESET } },
	};
	int fd;
	uint16_t port = closed_port(&fd);

	(void)state;
	FOR_ROWS(row, rows) {
		struct world w;

		world_with_agent(&w, &row->agent);
		ask_port(&w, port, "GET", "");
		RUN_UNTIL(w.l, heard(&w.client, PORT_CLOSED));
		assert_true(heard(&w.client, "HTTP/1.1 502 "));
		assert_int_equal(w.n_accepted, RELAY_TRIES);
		world_close(&w);
	}
	close(fd);
}

static void what_ends_while_it_waits_for_the_agent(void **state)
{
	static const struct script silent = { BYTES_LIT("") };
	struct world w;
	int fd;
	uint16_t port = closed_port(&fd);

	(void)state;
	world_with_agent(&w, &silent);
	ask_port(&w, port, "GET", "");
	RUN_UNTIL(w.l, w.peers && heard(&w.peers->ear, "GET /tunnel"));
	ear_done(&w.client); /* the client goes */
	RUN_UNTIL(w.l, parted(&w.peers->ear));
	peers_done(&w);
	ask_port(&w, port, "GET", "");
	RUN_UNTIL(w.l, w.peers && heard(&w.peers->ear, "GET /tunnel"));
	w.node.mood = NODE_REFUSES;
	guest_cache_gone(w.g.guests, "abc", 1); /* the sandbox goes */
	RUN_UNTIL(w.l, heard(&w.client, "The sandbox was not found\""));
	w.node.mood = NODE_GIVES;
	peers_done(&w);
	ask_port(&w, port, "GET", "");
	RUN_UNTIL(w.l, w.peers && heard(&w.peers->ear, "GET /tunnel"));
	w.node.paused = true; /* nothing was sent to it: it is resumed for that */
	guest_cache_gone(w.g.guests, "abc", 1);
	RUN_UNTIL(w.l, w.node.n_resumes == 1);
	RUN_UNTIL(w.l, w.peers->next && heard(&w.peers->ear, "GET /tunnel"));
	assert_false(parted(&w.client));
	world_close(&w);
	close(fd);
}

static void the_agents_own_port_has_no_tunnel(void **state)
{
	struct world w;
	int fd;

	(void)state;
	world_open(&w);
	w.g.guests->agent_port = closed_port(&fd);
	ask_port(&w, w.g.guests->agent_port, "GET", "");
	RUN_UNTIL(w.l, heard(&w.client, PORT_CLOSED));
	assert_int_equal(w.n_accepted, 0);
	/* nor may anybody outside ask the agent for one */
	world_client(&w);
	w.g.guests->agent_port = w.port;
	ask(&w, "GET", "/tunnel", "connection: upgrade\r\nupgrade: hotcell-tunnel\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "\"code\":404"));
	assert_int_equal(w.n_accepted, 0);
	world_close(&w);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_service_on_loopback_is_reached),
		cmocka_unit_test(a_service_may_speak_first),
		cmocka_unit_test(switches_go_through),
		cmocka_unit_test(no_tunnel_no_port),
		cmocka_unit_test(what_ends_while_it_waits_for_the_agent),
		cmocka_unit_test(the_agents_own_port_has_no_tunnel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
