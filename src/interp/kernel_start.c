/* kernel_start.c - see kernel_start.h. */
#include "interp/kernel_start.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/log.h"
#include "base/random.h"

enum {
	PORTS = 5,
	ENV_MAX = 256,
	FILE_MODE = 0600,
	FOLDER_MODE = 0700,
	NAME_LEN = 12,
	FOLDER_SIZE = 8192,
	TEXT_MAX = 64 * 1024
};

#define CONNECTION_FILE "connection.json"

/* Kernels have no idea when their server dies. The kernel of the machine has. */
static const char *const leash[] = { "/usr/bin/setpriv", "--pdeathsig", "KILL", "--" };

enum { WORDS = 3, ARGS_MAX = KERNEL_ARGS_MAX + COUNT(leash) };
struct word {
	struct bytes word, means;
};

struct ports {
	char ip[KERNEL_FOLDER_SIZE]; /* of "ipc" the beginning of a path */
	unsigned int at[PORTS];      /* shell, iopub, control, stdin, hb */
};

/* Free ones. Somebody may take one before the kernel does: then that fails, and says so. */
static int find_ports(struct ports *ret, struct err *err)
{
	int fd[PORTS] = { -1, -1, -1, -1, -1 };
	int rc = 0;

	for (int i = 0; i < PORTS && rc == 0; i++) {
		struct sockaddr_in at = { .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		socklen_t len = sizeof(at);

		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd[i] < 0 || bind(fd[i], (struct sockaddr *)&at, len) < 0 ||
		    getsockname(fd[i], (struct sockaddr *)&at, &len) < 0)
			rc = err_set(err, ERR_EXHAUSTED, errno, "find a port");
		ret->at[i] = ntohs(at.sin_port);
	}
	for (int i = 0; i < PORTS; i++)
		auto_close(&fd[i]);
	snprintf(ret->ip, sizeof(ret->ip), "127.0.0.1");
	return rc;
}

static int choose_ends(const struct kernel *k, bool ipc, struct ports *ret, struct err *err)
{
	if (!ipc)
		return find_ports(ret, err);
	snprintf(ret->ip, sizeof(ret->ip), "%.70s/k", k->folder);
	for (unsigned int i = 0; i < PORTS; i++)
		ret->at[i] = i + 1;
	return 0;
}

static int write_file(const struct kernel *k, int dir, bool ipc, const struct ports *p,
		      struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(4096);
	AUTO(json_decrefp)
	json_t *v = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "transport",
			      ipc ? "ipc" : "tcp", "ip", p->ip, "key", k->key, "signature_scheme",
			      "hmac-sha256", "shell_port", (int)p->at[0], "iopub_port",
			      (int)p->at[1], "control_port", (int)p->at[2], "stdin_port",
			      (int)p->at[3], "hb_port", (int)p->at[4]);
	AUTO(auto_close) int fd = -1;

	if (json_encode(v, &text, err) < 0)
		return -1;
	fd = folder_open(dir, CONNECTION_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE,
			 err);
	if (fd < 0)
		return -1;
	if (write(fd, text.ptr, text.len) != (ssize_t)text.len)
		return err_set(err, ERR_NO_SPACE, errno, "write %s", CONNECTION_FILE);
	return 0;
}

static int settle(struct kernel *k, bool ipc, struct kernel_ends *ret, struct err *err)
{
	AUTO(auto_close) int run = folder_ensure(k->place->run, FOLDER_MODE, err);
	AUTO(auto_close) int dir = -1;
	char name[NAME_LEN + 1];
	struct ports p;

	if (run < 0)
		return -1;
	random_name(name, NAME_LEN);
	if (snprintf(k->folder, sizeof(k->folder), "%s/%s", k->place->run, name) >=
	    (int)sizeof(k->folder) - 2)
		return err_set(err, ERR_INVALID, ENAMETOOLONG, "%s", k->place->run);
	dir = folder_make(run, name, FOLDER_MODE, err);
	if (dir < 0 || choose_ends(k, ipc, &p, err) < 0 || write_file(k, dir, ipc, &p, err) < 0)
		return -1;
	for (int i = 0; i < KERNEL_CHANNELS; i++)
		snprintf(ret->at[i], KERNEL_END_SIZE, ipc ? "ipc://%s-%u" : "tcp://%s:%u", p.ip,
			 p.at[i]);
	return 0;
}

void kernel_folder_remove(struct kernel *k)
{
	AUTO(auto_close) int run = -1;
	struct err err;

	if (!k->folder[0])
		return;
	run = folder_ensure(k->place->run, FOLDER_MODE, &err);
	if (run < 0 || folder_remove(run, strrchr(k->folder, '/') + 1, &err) < 0)
		log_warn("%s", err.msg);
}

/* Append an argument and a NUL, with the words that stand for something replaced. */
static int expand(struct bytes arg, const struct word words[static WORDS], struct buf *out,
		  struct err *err)
{
	while (arg.len > 0) {
		struct bytes put = bytes_head(arg, 1);
		size_t skip = 1;

		for (int i = 0; i < WORDS; i++)
			if (bytes_starts(arg, words[i].word)) {
				put = words[i].means;
				skip = words[i].word.len;
			}
		if (buf_add(out, put, err) < 0)
			return -1;
		arg = bytes_tail(arg, skip);
	}
	return buf_add(out, BYTES_LIT("\0"), err);
}

/* The strings in `text`, each with its NUL, from `from` on. */
static size_t point_at(const struct buf *text, const char **ret, size_t n, size_t max)
{
	for (size_t at = 0; at < text->len && n < max; at += strlen(ret[n - 1]) + 1)
		ret[n++] = (const char *)text->ptr + at;
	ret[n] = NULL;
	return n;
}

static int list_args(const struct kernel *k, const struct kernel_spec *spec, const char *file,
		     struct buf *text, const char *ret[static ARGS_MAX + 1], struct err *err)
{
	const struct word words[WORDS] = {
		{ BYTES_LIT("{connection_file}"), bytes_str(file) },
		{ BYTES_LIT("{resource_dir}"), bytes_str(spec->dir) },
		{ BYTES_LIT("{program_dir}"), bytes_str(k->place->programs) },
	};
	json_t *arg;
	size_t i;

	for (i = 0; i < COUNT(leash); i++)
		ret[i] = leash[i];
	json_array_foreach(spec->argv, i, arg)
	{
		if (expand(json_bytes(arg), words, text, err) < 0)
			return -1;
	}
	(void)point_at(text, ret, COUNT(leash), ARGS_MAX);
	return 0;
}

/* Is this NAME=VALUE replaced by the spec? */
static bool is_replaced(const struct kernel_spec *spec, const char *pair)
{
	const char *end = strchr(pair, '=');

	return end && spec->env && json_object_getn(spec->env, pair, (size_t)(end - pair));
}

static int list_env(const struct kernel *k, const struct kernel_spec *spec, struct buf *text,
		    const char *ret[static ENV_MAX + 1], struct err *err)
{
	size_t n = 0;
	const char *name;
	json_t *value;

	for (const char *const *e = k->place->env; *e && n < ENV_MAX; e++)
		if (!is_replaced(spec, *e))
			ret[n++] = *e;
	json_object_foreach((json_t *)(uintptr_t)spec->env, name, value)
	{
		if (buf_printf(text, err, "%s=%s", name, json_string_value(value)) < 0 ||
		    buf_add(text, BYTES_LIT("\0"), err) < 0)
			return -1;
	}
	(void)point_at(text, ret, n, ENV_MAX);
	return 0;
}

/* E2B's kernels go to their folder after they have started, and stay if it is not there. */
static void choose_folder(const struct kernel_place *p, const char *cwd,
			  char ret[static FOLDER_SIZE])
{
	AUTO(auto_close) int fd = -1;

	if (snprintf(ret, FOLDER_SIZE, "%s%s%s", cwd[0] == '/' ? "" : p->cwd,
		     cwd[0] == '/' ? "" : "/", cwd) < FOLDER_SIZE)
		fd = open(ret, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return;
	log_warn("there is no folder %.200s: the kernel starts in %s", cwd, p->cwd);
	snprintf(ret, FOLDER_SIZE, "%s", p->cwd);
}

static int spawn(struct kernel *k, const char *cwd, const char **argv, const char **env,
		 struct err *err)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t all, none;
	int rc;

	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_init(&how);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
					       POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigdefault(&how, &all);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, 2, 1);
	posix_spawn_file_actions_addchdir_np(&files, cwd);
	/* what is in the arrays is only read */
	rc = posix_spawn(&k->pid, argv[0], &files, &how, (char **)(uintptr_t)argv,
			 (char **)(uintptr_t)env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	if (rc == 0)
		return 0;
	k->pid = 0;
	return err_set(err, ERR_INVALID, rc, "start in %s", cwd);
}

int kernel_start(struct kernel *k, const struct kernel_spec *spec, const char *cwd,
		 struct kernel_ends *ret, struct err *err)
{
	const char *argv[ARGS_MAX + 1], *env[ENV_MAX + 1];
	AUTO(buf_done) struct buf args = BUF_MAX(TEXT_MAX);
	AUTO(buf_done) struct buf vars = BUF_MAX(TEXT_MAX);
	char file[KERNEL_END_SIZE], folder[FOLDER_SIZE];

	if (settle(k, spec->ipc, ret, err) < 0)
		return -1;
	snprintf(file, sizeof(file), "%s/%s", k->folder, CONNECTION_FILE);
	if (list_args(k, spec, file, &args, argv, err) < 0 ||
	    list_env(k, spec, &vars, env, err) < 0)
		return -1;
	choose_folder(k->place, cwd, folder);
	return spawn(k, folder, argv, env, err);
}
