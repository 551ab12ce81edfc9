/* ways.c - how clients come in and sandboxes get out: ports, names, proxies, certificates. One
 * function each. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "base/read_all.h"
#include "cli/ask.h"
#include "cli/doctor.h"
#include "net/addr.h"
#include "tls/cert_dir.h"
#include "tls/pair.h"

enum {
	SOCKETS_MAX = 1024 * 1024, /* of /proc/net/tcp; what is behind is not seen */
	LINK_MAX = 64,
	SERVERS_MAX = 4, /* as egress asks */
	DNS_PORT = 53,
	DNS_WAIT_MS = 2000,
	DNS_TRIES = 2,  /* a datagram may be lost */
	HOSTS_MAX = 16, /* package hosts that are asked for */
	DAY_S = 24 * 3600,
	EXPIRES_WARN_S = 14 * DAY_S,
};

/* --- ports ---------------------------------------------------------------------------------- */

/* A line of /proc/net/tcp: `0: ADDRESS:PORT ADDRESS:PORT STATE ... INODE ...`. The inode of one
 * that listens on that port; 0: it is another. */
static unsigned long long listener_of(struct bytes line, unsigned int port)
{
	enum { LOCAL = 1, STATE = 3, INODE = 9, WORDS };
	char words[WORDS][LINK_MAX];
	struct bytes word;
	const char *colon;
	size_t n = 0;

	while (n < WORDS && bytes_next(&line, ' ', &word))
		if (word.len > 0 && !bytes_to_str(word, words[n++], LINK_MAX))
			return 0;
	colon = n == WORDS ? strchr(words[LOCAL], ':') : NULL;
	if (!colon || strtoul(colon + 1, NULL, 16) != port || strcmp(words[STATE], "0A") != 0)
		return 0;
	return strtoull(words[INODE], NULL, 10);
}

/* In a file such as /proc/net/tcp; 0: nobody. */
static unsigned long long listener_in(const char *path, unsigned int port)
{
	AUTO(buf_done) struct buf all = BUF_MAX(SOCKETS_MAX);
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct bytes rest, line;
	unsigned long long inode = 0;
	struct err err;

	if (fd < 0 || read_all(fd, &all, &err) < 0)
		return 0;
	rest = buf_view(&all);
	while (inode == 0 && bytes_next(&rest, '\n', &line))
		inode = listener_of(line, port);
	return inode;
}

static bool has_socket(const char *pid, unsigned long long inode)
{
	char path[64], want[LINK_MAX], link[LINK_MAX];
	const struct dirent *e;
	bool found = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	snprintf(want, sizeof(want), "socket:[%llu]", inode);
	d = opendir(path);
	while (d && !found && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		link[n > 0 ? n : 0] = '\0';
		found = strcmp(link, want) == 0;
	}
	if (d)
		closedir(d);
	return found;
}

/* "pid 12, nginx"; only root sees everybody's. */
static void name_owner(unsigned long long inode, char *ret, size_t size)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;

	snprintf(ret, size, "somebody (root sees who)");
	while (d && (e = readdir(d))) {
		char path[64], name[64] = "?";

		if (!isdigit((unsigned char)e->d_name[0]) || !has_socket(e->d_name, inode))
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/comm", e->d_name);
		if (read_text(AT_FDCWD, path, name, sizeof(name)) > 0)
			name[strcspn(name, "\n")] = '\0';
		snprintf(ret, size, "pid %.20s, %.60s", e->d_name, name);
		break;
	}
	if (d)
		closedir(d);
}

static void look_port(const char *setting, struct bytes address, struct finding *f)
{
	char text[128], owner[128];
	const char *colon;
	unsigned long long inode;
	unsigned int port;

	if (!bytes_to_str(bytes_trim(address), text, sizeof(text)) ||
	    strncmp(text, "unix:", 5) == 0)
		return;
	colon = strrchr(text, ':');
	port = colon ? (unsigned int)strtoul(colon + 1, NULL, 10) : 0;
	inode = port ? listener_in("/proc/net/tcp", port) ?: listener_in("/proc/net/tcp6", port)
		     : 0;
	if (!inode)
		return;
	name_owner(inode, owner, sizeof(owner));
	if (strstr(owner, ", systemd") || strstr(owner, ", hotcell-gateway"))
		return; /* its own */
	finding_add(f, VERDICT_FAIL, "", "port %u (%s of gateway.conf) is taken by %s", port,
		    setting, owner);
	finding_fix(f,
		    "end it, or choose another: systemctl edit hotcell-http.socket, or %s in "
		    "gateway.conf",
		    setting);
}

static void look_ports(const struct told *t, struct finding *f)
{
	char listen[CONF_VALUE_MAX], tls[CONF_VALUE_MAX];
	struct bytes rest, one;
	struct conf conf;

	if (t->gateway) {
		finding_set(f, VERDICT_OK, NULL, "the gateway has its own");
		return;
	}
	conf_read_daemon(&conf, t->cli->conf_dir, "gateway");
	conf_text(&conf, "listen", "127.0.0.1:3000", listen);
	conf_value(&conf, "listen_tls", tls);
	look_port("listen", bytes_str(listen), f);
	rest = bytes_str(tls);
	while (bytes_next(&rest, ',', &one))
		look_port("listen_tls", one, f);
	if (f->verdict == VERDICT_OK)
		finding_set(f, VERDICT_OK, NULL, "%.64s is free%s%.64s", listen,
			    tls[0] ? ", and so is " : "", tls);
}

/* --- names: without a server, whether a resolver answers at all ------------------------------ */

static size_t add_server(struct addr all[static SERVERS_MAX], size_t n, struct bytes at)
{
	char text[ADDR_TEXT_MAX];
	struct err err;

	if (n == SERVERS_MAX || !bytes_to_str(at, text, sizeof(text)))
		return n;
	return addr_ip(text, DNS_PORT, &all[n], &err) == 0 || addr_parse(at, &all[n], &err) == 0
		       ? n + 1
		       : n;
}

/* As egress finds them: its setting, or the host's file. */
static size_t find_servers(const struct told *t, struct addr all[static SERVERS_MAX],
			   const char **ret_where)
{
	char text[CONF_TEXT_MAX], set[CONF_VALUE_MAX];
	struct bytes rest, line, word;
	struct conf conf;
	size_t n = 0;

	conf_read_daemon(&conf, t->cli->conf_dir, "egress");
	conf_value(&conf, "resolvers", set);
	*ret_where = set[0] ? "resolvers of egress.conf" : "/etc/resolv.conf";
	rest = bytes_str(set);
	while (bytes_next(&rest, ' ', &word))
		n = word.len ? add_server(all, n, word) : n;
	if (set[0] || read_text(AT_FDCWD, "/etc/resolv.conf", text, sizeof(text)) < 0)
		return n;
	rest = bytes_str(text);
	while (bytes_next(&rest, '\n', &line))
		if (bytes_next(&line, ' ', &word) && bytes_eq(word, BYTES_LIT("nameserver")))
			n = add_server(all, n, bytes_trim(line));
	return n;
}

/* Any answer at all to the one question that every resolver knows: who has the root? */
static bool answers_once(const struct addr *to)
{
	static const uint8_t root_ns[] = {
		0x48, 0x43, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1
	};
	AUTO(auto_close) int fd = socket(to->at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint8_t in[512];

	return fd >= 0 && connect(fd, (const struct sockaddr *)&to->at, to->len) == 0 &&
	       send(fd, root_ns, sizeof(root_ns), MSG_NOSIGNAL) == (ssize_t)sizeof(root_ns) &&
	       poll(&p, 1, DNS_WAIT_MS) == 1 && recv(fd, in, sizeof(in), 0) >= 2 &&
	       in[0] == root_ns[0] && in[1] == root_ns[1];
}

static bool answers(const struct addr *to)
{
	for (int i = 0; i < DNS_TRIES; i++)
		if (answers_once(to))
			return true;
	return false;
}

static void look_resolvers(const struct told *t, struct finding *f)
{
	static const char fix[] = "name one that answers with `resolvers` of egress.conf, or in "
				  "/etc/resolv.conf";
	struct addr all[SERVERS_MAX];
	char text[ADDR_TEXT_MAX];
	const char *where;
	size_t n = find_servers(t, all, &where), fine = 0;

	if (n == 0)
		finding_set(f, VERDICT_FAIL, fix, "%s names no resolver", where);
	for (size_t i = 0; i < n; i++) {
		bool ok = answers(&all[i]);

		fine += ok;
		addr_text(&all[i], text);
		finding_add(f, ok ? VERDICT_OK : VERDICT_WARN, fix, "%s (%s) %s", text, where,
			    ok ? "answers" : "does not answer");
	}
	if (n > 0 && fine == 0)
		f->verdict = VERDICT_FAIL;
}

/* --- names: with a server, its own judgement -------------------------------------------------- */

/* False: asking for more makes no sense. */
static bool judge_host(const struct told *t, const char *host, struct finding *f)
{
	static const char fix[] =
		"let the resolver give a public address (or name another with `resolvers` of "
		"egress.conf); for a mirror in the own network set `services` of egress.conf: see "
		"docs/network.md";
	AUTO(json_decrefp) json_t *said = NULL;
	const json_t *answer;
	const char *why;
	struct err err = { 0 };

	if (cli_ask(t->cli,
		    &(struct cli_request){
			    .path = "/admin/explain?to=", .id = host, .ms = ASK_LOOK_MS },
		    &said, &err) < 0) {
		finding_add(f, VERDICT_WARN, "see egress's log", "%.64s: %.200s", host, err.msg);
		return false;
	}
	answer = json_object_get(said, "answer");
	why = json_string_value(json_object_get(answer, "why"));
	if (json_is_true(json_object_get(answer, "allowed")))
		return true;
	finding_add(f, VERDICT_WARN, fix, "%.64s: %.160s", host, why ? why : "?");
	return !why || !strstr(why, "no resolver answers");
}

static void look_dns(const struct told *t, struct finding *f)
{
	AUTO(json_decrefp) json_t *said = NULL;
	const json_t *packages, *host;
	struct err err = { 0 };
	size_t i;

	if (!t->node) {
		look_resolvers(t, f);
		return;
	}
	if (cli_ask(t->cli, &(struct cli_request){ .path = "/admin/explain", .ms = ASK_LOOK_MS },
		    &said, &err) < 0) {
		finding_set(f, VERDICT_WARN, "see what is said of `server`", "not known: %.200s",
			    err.msg);
		return;
	}
	packages = json_object_get(said, "packages");
	json_array_foreach(packages, i,
			   host) if (i == HOSTS_MAX ||
				     !judge_host(t, json_string_value(host) ?: "", f)) break;
	if (f->verdict == VERDICT_OK && json_array_size(packages) == 0)
		finding_set(f, VERDICT_OK, NULL, "no template names package hosts");
	else if (f->verdict == VERDICT_OK)
		finding_set(f, VERDICT_OK, NULL, "sandboxes reach their %zu package hosts",
			    json_array_size(packages));
}

/* --- proxies -------------------------------------------------------------------------------- */

/* Which variable of this process names one; "": none. */
static void proxy_variable(char ret[static LINK_MAX])
{
	static const char *const names[] = { "https_proxy=", "HTTPS_PROXY=", "http_proxy=",
					     "HTTP_PROXY=",  "all_proxy=",   "ALL_PROXY=" };

	ret[0] = '\0';
	for (char **e = environ; *e; e++)
		for (size_t i = 0; i < COUNT(names); i++)
			if (!strncmp(*e, names[i], strlen(names[i])) && (*e)[strlen(names[i])])
				snprintf(ret, LINK_MAX, "%.*s", (int)strlen(names[i]) - 1, *e);
}

/* A proxy may hold a password: what it is is not said. */
static void look_proxy(const struct told *t, struct finding *f)
{
	char name[LINK_MAX];
	char egress[CONF_VALUE_MAX], images[CONF_VALUE_MAX];
	struct conf conf;

	conf_read_daemon(&conf, t->cli->conf_dir, "egress");
	conf_value(&conf, "proxy", egress);
	conf_read(&conf, t->places.images_conf);
	conf_value(&conf, "proxy", images);
	proxy_variable(name);
	if (name[0] && !egress[0])
		finding_set(f, VERDICT_WARN,
			    "set `proxy = ADDRESS:PORT` in egress.conf (sandboxes) and in "
			    "images.conf (registries): see docs/network.md",
			    "%s is set here: daemons do not look at it, and egress.conf names no "
			    "proxy",
			    name);
	else if (egress[0] || images[0])
		finding_set(f, VERDICT_OK, NULL, "configured for %s%s%s",
			    egress[0] ? "sandboxes" : "", egress[0] && images[0] ? " and " : "",
			    images[0] ? "registries" : "");
	else
		finding_set(f, VERDICT_OK, NULL, "none");
}

/* --- certificates, as they are in their files ------------------------------------------------ */

static void look_pair(int dir, const char *name, struct finding *f)
{
	AUTO(buf_done) struct buf chain = BUF_MAX(PAIR_TEXT_MAX), out = BUF_MAX(2 * PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf key = BUF_SECRET(PAIR_TEXT_MAX);
	AUTO(buf_done) struct buf key_out = BUF_SECRET(2 * PAIR_TEXT_MAX);
	struct pair_facts facts;
	struct err err = { 0 };
	long long left;

	if (cert_dir_read(dir, name, CERT_CHAIN_FILE, &chain, &err) < 0 ||
	    pair_read(buf_view(&chain), &facts, &err) < 0) {
		finding_add(f, VERDICT_FAIL, "put another in its place: hotcell tls install",
			    "%.64s: %.200s", name, err.msg);
		return;
	}
	left = (long long)facts.ends_s - (long long)time(NULL);
	if (left <= 0)
		finding_add(f, VERDICT_FAIL,
			    "renew it: hotcell tls renew for those of `tls init`, else hotcell tls "
			    "install NAME FULLCHAIN PRIVKEY",
			    "%.64s expired %lld days ago", name, -left / DAY_S);
	else if (cert_dir_read(dir, name, CERT_KEY_FILE, &key, &err) < 0)
		finding_add(f, geteuid() == 0 ? VERDICT_FAIL : VERDICT_OK,
			    "put its key there: hotcell tls install", "%.64s: %.200s", name,
			    err.msg);
	else if (pair_check(buf_view(&chain), buf_view(&key), &out, &key_out, &err) < 0)
		finding_add(f, VERDICT_FAIL,
			    "put the pair right: hotcell tls install NAME FULLCHAIN PRIVKEY",
			    "%.64s: %.200s", name, err.msg);
	else if (left < EXPIRES_WARN_S)
		finding_add(f, VERDICT_WARN, "renew it: hotcell tls renew, or hotcell tls install",
			    "%.64s ends in %lld days", name, left / DAY_S);
}

static void look_certificates(const struct told *t, struct finding *f)
{
	static struct cert_files files; /* large */
	char path[CONF_VALUE_MAX];
	struct conf conf;
	struct err err = { 0 };

	conf_read_daemon(&conf, t->cli->conf_dir, "gateway");
	conf_text(&conf, "tls_dir", "/etc/hotcell/tls", path);
	AUTO(auto_close) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0 || cert_dir_look(dir, CERT_CHAIN_FILE, &files, &err) < 0 || files.n == 0) {
		finding_set(f, VERDICT_OK, NULL, "none in %.128s: see docs/tls.md", path);
		return;
	}
	for (size_t i = 0; i < files.n; i++)
		look_pair(dir, files.file[i].name, f);
	if (f->verdict == VERDICT_OK)
		finding_set(f, VERDICT_OK, NULL,
			    "%zu in %.128s: keys fit, names and dates are good", files.n, path);
}

static const struct check checks[] = {
	{ "ports", look_ports, CHECK_ALWAYS },
	{ "dns", look_dns, CHECK_ALWAYS },
	{ "proxy", look_proxy, CHECK_ALWAYS },
	{ "certificates", look_certificates, CHECK_INSTALLED },
};
const struct checks way_checks = { checks, COUNT(checks) };
