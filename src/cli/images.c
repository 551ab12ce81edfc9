/* images.c - what builds of images need on this host, as hotcell-images is configured.
 *
 * Registries are looked at only if the configuration names some: one connection each, as the
 * daemon's user and so under the kernel's rules for it, and not a byte is sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "base/read_all.h"
#include "cli/conf.h"
#include "cli/doctor.h"
#include "cli/program.h"

enum {
	REGISTRIES_MAX = 8, /* that are looked at */
	REGISTRY_S = 3,     /* all at once */
	HOST_MAX = 256,
	NO_NAME = 200, /* of exit statuses, of which others are errno */
	CHAIN_MAX = 2048,
};

/* False: images are not fetched on this host, which is said. */
static bool wanted(const struct told *t, struct finding *f, struct conf *c)
{
	conf_read(c, t->places.images_conf);
	if (!c->there)
		finding_set(f, VERDICT_OK, NULL, "not wanted: there is no %.128s",
			    t->places.images_conf);
	return c->there;
}

/* --- skopeo, the store ----------------------------------------------------------------------- */

static void look_skopeo(const struct told *t, struct finding *f)
{
	struct conf c;
	char program[CONF_VALUE_MAX], text[256];

	if (!wanted(t, f, &c))
		return;
	conf_text(&c, "skopeo", "/usr/bin/skopeo", program);
	const char *const argv[] = { program, "--version", NULL };

	if (!program_output(argv, text, sizeof(text))) {
		finding_set(f, VERDICT_FAIL, "install skopeo: tools/deps --run names the packages",
			    "%.128s %.128s: no image can be fetched", program, text);
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	finding_set(f, VERDICT_OK, NULL, "%.200s", text);
}

/* Room for one image more, which may push older layers out. */
static void look_store(const struct told *t, struct finding *f)
{
	static const char fix[] = "give data_dir of images.conf a larger disk, or lower its "
				  "store_mib, image_mib or reserve_mib";
	struct conf c;
	char folder[CONF_VALUE_MAX];
	struct statvfs v;
	uint64_t free_mib, need_mib;

	if (!wanted(t, f, &c))
		return;
	conf_text(&c, "data_dir", "/var/lib/hotcell-images", folder);
	if (statvfs(folder, &v) < 0) {
		finding_set(f, VERDICT_WARN, "start hotcell-images, which makes it", "%.128s: %s",
			    folder, strerror(errno));
		return;
	}
	free_mib = (uint64_t)v.f_bavail * v.f_frsize >> 20;
	need_mib = conf_number(&c, "reserve_mib", 1024) + conf_number(&c, "image_mib", 8192);
	finding_set(f, free_mib >= need_mib ? VERDICT_OK : VERDICT_WARN, fix,
		    "%llu MiB free for %.128s; the largest image may want %llu with the reserve",
		    (unsigned long long)free_mib, folder, (unsigned long long)need_mib);
}

/* --- its user, and the kernel's rules for it -------------------------------------------------- */

static void look_rules(const struct told *t, struct finding *f)
{
	static const char fix[] = "restart hotcell-images: its unit loads them (hotcell-images "
				  "--nft prints them)";
	static const char *const argv[] = { "/usr/sbin/nft",  "list", "chain", "inet",
					    "hotcell_images", "out",  NULL };
	struct conf c;
	char user[CONF_VALUE_MAX], text[CHAIN_MAX], rule[64];
	uid_t uid;
	gid_t gid;

	if (!wanted(t, f, &c))
		return;
	conf_value(&c, "user", user);
	if (!user[0] || !conf_user(user, &uid, &gid)) {
		finding_set(f, VERDICT_FAIL, "run deploy/install, which makes it",
			    user[0] ? "there is no user %.64s" : "no user is set%.0s", user);
		return;
	}
	snprintf(rule, sizeof(rule), "meta skuid %u goto locked", uid);
	if (geteuid() != 0)
		finding_set(f, VERDICT_WARN, "run it as root", "not known: only root sees rules");
	else if (!program_output(argv, text, sizeof(text)) || !strstr(text, rule))
		finding_set(f, VERDICT_FAIL, fix,
			    "the kernel has no rules for user %.64s: it reaches what it likes",
			    user);
	else
		finding_set(f, VERDICT_OK, NULL, "user %.64s is kept to registries and resolvers",
			    user);
}

/* --- registries ------------------------------------------------------------------------------- */

struct registry {
	char host[HOST_MAX], port[8];
	pid_t pid;
};

/* HOST[:PORT][/PATH]; [ADDRESS]:PORT, too. */
static bool split(struct bytes at, struct registry *ret)
{
	struct bytes host, port = BYTES_LIT("443");
	const uint8_t *colon;

	if (!bytes_next(&at, '/', &host))
		return false;
	colon = memrchr(host.ptr, ':', host.len);
	if (colon && (host.ptr[0] != '[' || colon[-1] == ']')) {
		port = bytes_tail(host, (size_t)(colon - host.ptr) + 1);
		host.len = (size_t)(colon - host.ptr);
	}
	if (host.len > 2 && host.ptr[0] == '[')
		host = (struct bytes){ host.ptr + 1, host.len - 2 };
	*ret = (struct registry){ 0 };
	return host.len > 0 && bytes_to_str(host, ret->host, sizeof(ret->host)) &&
	       bytes_to_str(port, ret->port, sizeof(ret->port));
}

static size_t add(struct registry all[static REGISTRIES_MAX], size_t n, struct bytes at)
{
	struct registry r;

	if (n == REGISTRIES_MAX || !split(at, &r))
		return n;
	for (size_t i = 0; i < n; i++)
		if (strcmp(all[i].host, r.host) == 0 && strcmp(all[i].port, r.port) == 0)
			return n;
	all[n] = r;
	return n + 1;
}

/* LEFT=RIGHT ...: those at the right. */
static size_t add_right(const struct conf *c, const char *name,
			struct registry all[static REGISTRIES_MAX], size_t n)
{
	char text[CONF_VALUE_MAX];
	struct bytes rest, word, left;

	conf_value(c, name, text);
	rest = bytes_str(text);
	while (bytes_next(&rest, ' ', &word))
		if (bytes_next(&word, '=', &left) && word.len > 0)
			n = add(all, n, word);
	return n;
}

/* With a proxy that one alone is asked. */
static size_t find_all(const struct conf *c, struct registry all[static REGISTRIES_MAX])
{
	char text[CONF_VALUE_MAX];
	size_t n;

	conf_value(c, "proxy", text);
	if (text[0])
		return add(all, 0, bytes_str(text));
	conf_value(c, "default_registry", text);
	n = add(all, 0, bytes_str(text));
	n = add_right(c, "map", all, n);
	return add_right(c, "mirrors", all, n);
}

/* The child: an exit status. */
static int connect_to(const struct registry *r)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	int failed = NO_NAME;

	if (getaddrinfo(r->host, r->port, &hints, &found) != 0)
		return NO_NAME;
	for (const struct addrinfo *a = found; a && failed != 0; a = a->ai_next) {
		int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);

		failed = fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
		if (fd >= 0)
			close(fd);
	}
	freeaddrinfo(found);
	return failed;
}

/* `user`: as whom; "" or unknown: as who we are. */
static pid_t begin(const struct registry *r, const char *user)
{
	uid_t uid = 0;
	gid_t gid = 0;
	bool known = user[0] && conf_user(user, &uid, &gid);
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	alarm(REGISTRY_S); /* whoever looks up names may not hear of it: it ends us */
	if (known && geteuid() == 0 && (setgid(gid) < 0 || setuid(uid) < 0))
		_exit(EPERM);
	_exit(connect_to(r));
}

/* NULL: it could be reached. */
static const char *outcome(const struct registry *r)
{
	int status = 0;

	if (r->pid < 0 || waitpid(r->pid, &status, 0) < 0)
		return "no process";
	if (WIFSIGNALED(status))
		return "no answer within 3 seconds";
	if (WEXITSTATUS(status) == NO_NAME)
		return "no such name";
	return WEXITSTATUS(status) == 0 ? NULL : strerror(WEXITSTATUS(status));
}

static size_t reach_all(struct registry *all, size_t n, const char *user, char *text, size_t size)
{
	size_t failed = 0, len = 0;

	for (size_t i = 0; i < n; i++)
		all[i].pid = begin(&all[i], user);
	for (size_t i = 0; i < n; i++) {
		const char *why = outcome(&all[i]);

		failed += why != NULL;
		if (why && len < size)
			len += (size_t)snprintf(text + len, size - len, "%s%.100s:%s: %s",
						len ? "; " : "", all[i].host, all[i].port, why);
	}
	return failed;
}

static void look_registries(const struct told *t, struct finding *f)
{
	static const char fix[] = "look at the name and the port, and at networks in images.conf: "
				  "private addresses are closed unless they are named there";
	struct registry all[REGISTRIES_MAX] = { 0 };
	char user[CONF_VALUE_MAX], text[768] = "";
	struct conf c;
	size_t n, failed;

	if (!wanted(t, f, &c))
		return;
	n = find_all(&c, all);
	conf_value(&c, "user", user);
	failed = reach_all(all, n, user, text, sizeof(text));
	if (n == 0)
		finding_set(f, VERDICT_OK, NULL, "none is configured: none was looked at");
	else if (failed == 0)
		finding_set(f, VERDICT_OK, NULL, "%zu can be reached", n);
	else
		finding_set(f, VERDICT_FAIL, fix, "%zu of %zu cannot be reached: %s", failed, n,
			    text);
}

static const struct check checks[] = {
	{ "skopeo", look_skopeo, CHECK_INSTALLED },
	{ "image-store", look_store, CHECK_INSTALLED },
	{ "image-rules", look_rules, CHECK_INSTALLED },
	{ "registries", look_registries, CHECK_INSTALLED },
};
const struct checks image_checks = { checks, COUNT(checks) };
