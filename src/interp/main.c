/* main.c - hotcell-interp: the code interpreter inside a sandbox.
 *
 * Killed at any instant, its kernels go with it, and whoever supervises it starts it again.
 */
#include <getopt.h>
#include <libgen.h>
#include <limits.h>

#include "base/log.h"
#include "interp/interp.h"
#include "interp/partings.h"

enum {
	OPT_PORT = 1,
	OPT_LISTEN,
	OPT_RUN,
	OPT_CWD,
	OPT_AGENT,
	OPT_PARTINGS,
	OPT_EAGER,
	OPT_KERNELS,
	OPT_HELP
};

static const char help[] =
	"hotcell-interp - inside a sandbox: runs code in kernels, for the code interpreter's "
	"clients\n"
	"\n"
	"  --port N          49999; 0 takes any and prints `ready N`\n"
	"  --listen ADDRESS  0.0.0.0\n"
	"  --run DIR         connection files and sockets of kernels (/run/hotcell-interp)\n"
	"  --cwd DIR         where contexts begin that do not say it (/home/user)\n"
	"  --agent ADDRESS   who knows the sandbox's variables (127.0.0.1:49983); `none` for "
	"nobody\n"
	"  --partings FILE   how often connections ended because the machine was paused or copied "
	"(/run/hotcell/partings)\n"
	"  --eager LANGUAGE  has a kernel from the start; may be given several times\n"
	"  --kernels DIR     folders of kernel.json files; may be given several times, the first\n"
	"                    wins (/usr/lib/hotcell/interpreter/kernels, "
	"/usr/local/share/jupyter/kernels,\n"
	"                    /usr/share/jupyter/kernels)\n";

static const struct option table[] = {
	{ "port", required_argument, NULL, OPT_PORT },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "run", required_argument, NULL, OPT_RUN },
	{ "cwd", required_argument, NULL, OPT_CWD },
	{ "agent", required_argument, NULL, OPT_AGENT },
	{ "partings", required_argument, NULL, OPT_PARTINGS },
	{ "eager", required_argument, NULL, OPT_EAGER },
	{ "kernels", required_argument, NULL, OPT_KERNELS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static const struct kernel_dirs usual = {
	{ "/usr/lib/hotcell/interpreter/kernels", "/usr/local/share/jupyter/kernels",
	  "/usr/share/jupyter/kernels" },
	3,
};

static bool add(const char **list, size_t *n, size_t max, const char *value)
{
	if (*n == max)
		return false;
	list[(*n)++] = value;
	return true;
}

static bool take(int option, const char *value, struct interp_options *ret)
{
	uint64_t n;

	switch (option) {
	case OPT_PORT:
		ret->port = bytes_to_u64(bytes_str(value), &n) ? (uint16_t)n : 0;
		return bytes_to_u64(bytes_str(value), &n) && n <= UINT16_MAX;
	case OPT_LISTEN:
		ret->listen = value;
		return true;
	case OPT_RUN:
		ret->run = value;
		return true;
	case OPT_CWD:
		ret->cwd = value;
		return true;
	case OPT_AGENT:
		ret->agent = strcmp(value, "none") == 0 ? NULL : value;
		return true;
	case OPT_PARTINGS:
		ret->partings = value;
		return true;
	case OPT_EAGER:
		return add(ret->eager, &ret->n_eager, INTERP_EAGER_MAX, value);
	case OPT_KERNELS:
		return add(ret->dirs.at, &ret->dirs.n, KERNEL_DIRS_MAX, value);
	default:
		return false;
	}
}

/* Where this program is: what kernels need of ours is beside it. */
static const char *own_folder(char path[static PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);

	path[len < 0 ? 0 : len] = '\0';
	return dirname(path);
}

int main(int argc, char **argv)
{
	char path[PATH_MAX];
	struct interp_options o = {
		.listen = "0.0.0.0",
		.port = INTERP_PORT,
		.run = "/run/hotcell-interp",
		.cwd = "/home/user",
		.programs = own_folder(path),
		.agent = "127.0.0.1:49983",
		.partings = PARTINGS_FILE,
	};
	int option;

	log_init("interp", LOG_INFO);
	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (option == OPT_HELP) {
			fputs(help, stdout);
			return EXIT_SUCCESS;
		}
		if (!take(option, optarg, &o)) {
			log_error("see --help");
			return EXIT_FAILURE;
		}
	}
	if (o.dirs.n == 0)
		o.dirs = usual;
	return interp_serve(&o, (const char *const *)environ);
}
