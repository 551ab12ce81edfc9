/* bare.c - the floor to compare a restore with: the same QEMU in the same jail, and nothing else.
 *
 *	bare CONFIG TEMPLATE
 *
 * Reads warden's configuration file. For each line on standard input it makes a network slot, then
 * takes the time of one restore, straight through with blocking calls, from the first system call
 * to the agent's first answer after its identity; prints the steps in microseconds as one line of
 * JSON; and ends and removes the VM. No daemon, no verbs, no event loop.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/folder.h"
#include "base/kvm_probe.h"
#include "base/random.h"
#include "warden/launch.h"
#include "warden/remove.h"
#include "warden/settings.h"

enum { AGENT_PORT = 49983, TEXT_MAX = 16384, STEPS_MAX = 16 };

struct bare {
	struct config_value set[SETTINGS];
	struct vmm vmm;
	struct view view;
	struct cgroups cgroups;
	char view_at[512];
	int vms, templates;
};

struct steps {
	size_t n;
	struct {
		const char *name;
		uint64_t at;
	} all[STEPS_MAX];
};

static void mark(struct steps *s, const char *name)
{
	if (s->n == STEPS_MAX)
		abort();
	s->all[s->n].name = name;
	s->all[s->n++].at = clock_mono_ns();
}

static _Noreturn void die(const char *what, const struct err *err)
{
	fprintf(stderr, "bare: %s: %s\n", what, err ? err->msg : strerrordesc_np(errno));
	exit(1);
}

static int open_below(const struct bare *b, const char *name, struct err *err)
{
	char path[512];

	snprintf(path, sizeof(path), "%.400s/%s", b->set[SET_STATE_DIR].text, name);
	return folder_ensure(path, 0755, err);
}

static void set_up(struct bare *b, const char *config)
{
	struct err err = { 0 };

	if (config_load(settings_table, SETTINGS, config, b->set, &err) < 0)
		die("configuration", &err);
	b->vmm =
		(struct vmm){ .path = b->set[SET_QEMU].text,
			      .cpu_model = b->set[SET_CPU_MODEL].text,
			      .accel = b->set[SET_ACCEL].number != ACCEL_TCG && kvm_probe(&err) == 0
					       ? VMM_KVM
					       : VMM_TCG };
	snprintf(b->vmm.cmdline, sizeof(b->vmm.cmdline), "%.511s", b->set[SET_CMDLINE].text);
	snprintf(b->view_at, sizeof(b->view_at), "%.256s/view-bare", b->set[SET_RUN_DIR].text);
	if (view_list(&b->view, b->vmm.path, b->set[SET_FIRMWARE_DIRS].text, &err) < 0 ||
	    view_build(&b->view, b->view_at, &err) < 0 ||
	    cgroups_open(&b->cgroups, b->set[SET_CGROUP].text, &err) < 0 ||
	    (b->vms = open_below(b, "vms", &err)) < 0 ||
	    (b->templates = open_below(b, "templates", &err)) < 0)
		die("set up", &err);
}

/* --- QMP, one line at a time ----------------------------------------------------------------- */

struct lines {
	int fd;
	size_t len;
	char text[TEXT_MAX];
};

/* The next line that contains `word`; others are thrown away. */
static void expect(struct lines *l, const char *word)
{
	for (;;) {
		char *end = memchr(l->text, '\n', l->len);
		ssize_t got;

		if (end) {
			size_t used = (size_t)(end - l->text) + 1;
			bool found;

			*end = '\0';
			if (strstr(l->text, "\"error\""))
				die(l->text, NULL);
			found = strstr(l->text, word) != NULL;
			l->len -= used;
			memmove(l->text, l->text + used, l->len);
			if (found)
				return;
			continue;
		}
		got = read(l->fd, l->text + l->len, sizeof(l->text) - l->len);
		if (got <= 0)
			die("QMP closed", NULL);
		l->len += (size_t)got;
	}
}

static void say(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die("write", NULL);
}

static int connect_qmp(const struct bare *b, const char *id)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	int n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/vms/%s/qmp.sock",
			 b->set[SET_STATE_DIR].text, id);

	if (n < 0 || (size_t)n >= sizeof(a.sun_path) || fd < 0 ||
	    connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		die("connect to QMP", NULL);
	return fd;
}

static void load(const struct bare *b, const char *id, struct steps *s)
{
	struct lines l = { .fd = connect_qmp(b, id) };

	say(l.fd, "{\"execute\":\"qmp_capabilities\"}\n"
		  "{\"execute\":\"migrate-set-capabilities\",\"arguments\":{\"capabilities\":["
		  "{\"capability\":\"events\",\"state\":true}]}}\n"
		  "{\"execute\":\"migrate-incoming\",\"arguments\":{\"uri\":\"" WARDEN_STATE_URI
		  "\"}}\n");
	expect(&l, "\"QMP\"");
	mark(s, "greeting");
	expect(&l, "\"completed\"");
	say(l.fd, "{\"execute\":\"query-status\"}\n");
	expect(&l, "\"paused\"");
	mark(s, "loaded");
	say(l.fd, "{\"execute\":\"cont\"}\n");
	expect(&l, "\"return\"");
	mark(s, "running");
}

/* --- HTTP, blocking --------------------------------------------------------------------------- */

/* One exchange; the answer's body, if any, is left in `answer`. */
static void exchange(int fd, const char *ask, const char *status, char *answer)
{
	size_t len = 0, body;
	char *end, *length;

	say(fd, ask);
	do {
		ssize_t got = read(fd, answer + len, TEXT_MAX - 1 - len);

		if (got <= 0)
			die("the agent closed", NULL);
		len += (size_t)got;
		answer[len] = '\0';
		end = strstr(answer, "\r\n\r\n");
	} while (!end);
	if (!strstr(answer, status))
		die(answer, NULL);
	length = strcasestr(answer, "content-length: ");
	body = length ? strtoul(length + 16, NULL, 10) : 0;
	while (len < (size_t)(end + 4 - answer) + body) {
		ssize_t got = read(fd, answer + len, TEXT_MAX - 1 - len);

		if (got <= 0)
			die("the agent closed in the middle", NULL);
		len += (size_t)got;
	}
	answer[len] = '\0';
}

static int connect_agent(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(AGENT_PORT) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, WARDEN_GUEST_ADDR, &a.sin_addr);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		die("connect to the agent", NULL);
	return fd;
}

static void give_identity(struct steps *s)
{
	char answer[TEXT_MAX], body[1024], ask[2048], machine[33], token[33];
	int fd = connect_agent();
	uint64_t before = clock_wall_ns(), after, guest;
	const char *at;

	exchange(fd, "GET /control/clock HTTP/1.1\r\nHost: agent\r\n\r\n", " 200 ", answer);
	after = clock_wall_ns();
	mark(s, "clock");
	at = strstr(answer, "\"monotonicNs\":\"");
	guest = at ? strtoull(at + 15, NULL, 10) : 0;
	random_hex(machine, 16);
	random_hex(token, 16);
	snprintf(body, sizeof(body),
		 "{\"clockOffsetNs\":\"%lu\",\"entropy\":\"%s%s%s\",\"hostname\":\"bare\","
		 "\"machineId\":\"%s\",\"bootId\":\"%.8s-%.4s-4%.3s-8%.3s-%.12s\","
		 "\"sandboxId\":\"bare\",\"templateId\":\"bare\",\"env\":{},\"accessToken\":\"%s\","
		 "\"controlToken\":\"%s\"}",
		 before / 2 + after / 2 - guest, machine, token,
		 "AAAAAAAAAAAAAAAAAAAAAA==", machine, machine, machine + 8, machine + 12,
		 machine + 16, machine + 20, token, token);
	snprintf(ask, sizeof(ask),
		 "POST /control/identity HTTP/1.1\r\nHost: agent\r\n"
		 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		 strlen(body), body);
	exchange(fd, ask, " 200 ", answer);
	mark(s, "identity");
	exchange(fd, "GET /health HTTP/1.1\r\nHost: agent\r\n\r\n", " 204 ", answer);
	mark(s, "answer");
}

/* --- one restore, in a process of its own ------------------------------------------------------
 */

static void print(const struct steps *s)
{
	printf("{");
	for (size_t i = 1; i < s->n; i++)
		printf("\"%s\":%lu,", s->all[i].name, (s->all[i].at - s->all[i - 1].at) / 1000);
	printf("\"total\":%lu}\n", (s->all[s->n - 1].at - s->all[0].at) / 1000);
	fflush(stdout);
}

static void end(const struct bare *b, const char *id, int pidfd)
{
	struct removal gone = { .cgroups = &b->cgroups, .vms = b->vms, .templates = b->templates };
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	struct job_result r = { 0 };
	struct err err = { 0 };

	syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	poll(&ended, 1, 5000);
	snprintf(gone.id, sizeof(gone.id), "%s", id);
	if (remove_job(&gone, &r, &err) < 0)
		die("remove", &err);
}

/* A copy of the template's empty one, without a name. */
static int make_overlay(const struct bare *b, const char *template_id)
{
	AUTO(auto_close) int from = -1;
	char path[WARDEN_ID_MAX + 16];
	struct err err = { 0 };
	int fd = open(P_tmpdir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	snprintf(path, sizeof(path), "%s/overlay", template_id);
	from = folder_open(b->templates, path, O_RDONLY, 0, &err);
	if (fd < 0 || from < 0 || folder_copy(from, fd, &err) < 0)
		die("overlay", &err);
	return fd;
}

static void restore(const struct bare *b, const char *template_id)
{
	struct launch l = { .record = { .version = RECORD_VERSION,
					.uid = (uint32_t)(b->set[SET_UID_BASE].number +
							  b->set[SET_VMS_MAX].number) },
			    .sizes = { 1, 512, 256, 0, 64 },
			    .vmm = &b->vmm,
			    .cgroups = &b->cgroups,
			    .view_at = b->view_at,
			    .vms = b->vms,
			    .templates = b->templates };
	struct job_result r = { 0 };
	struct steps s = { 0 };
	struct err err = { 0 };

	snprintf(l.record.id, sizeof(l.record.id), "bare%d", getpid());
	snprintf(l.record.template_id, sizeof(l.record.template_id), "%s", template_id);
	if (slot_make(b->set[SET_NFT].text, &l.slot, &err) < 0)
		die("slot", &err);
	mark(&s, "begin");
	l.fds[WARDEN_FD_OVERLAY] = make_overlay(b, template_id);
	l.n_fds = 1;
	if (launch_job(&l, &r, &err) < 0)
		die("launch", &err);
	mark(&s, "launched");
	load(b, l.record.id, &s);
	give_identity(&s);
	print(&s);
	end(b, l.record.id, r.fds[0]);
	exit(0);
}

int main(int argc, char **argv)
{
	static struct bare b;
	char line[16];

	if (argc != 3) {
		fprintf(stderr, "usage: bare CONFIG TEMPLATE\n");
		return 2;
	}
	umask(0);
	set_up(&b, argv[1]);
	while (fgets(line, sizeof(line), stdin)) {
		pid_t pid = fork();
		int status = 0;

		if (pid == 0)
			restore(&b, argv[2]);
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
			return 1;
		while (waitpid(-1, NULL, 0) > 0) /* the VM was made our child */
			;
	}
	return 0;
}
