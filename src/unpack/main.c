/* main.c - hotcell-unpack: the layers of an image become a disk that a guest can boot from.
 *
 * All it needs is open when it starts; see the README. It gives up everything else before it reads
 * a byte of a layer.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/log.h"
#include "jail/confine.h"
#include "jail/descriptors.h"
#include "jail/sanitized.h"
#include "unpack/layer.h"
#include "unpack/limits.h"
#include "unpack/result.h"
#include "unpack/syscalls.h"

enum { FD_DISK = 3, FD_RESULT = 4, FD_AGENT = 5, FD_LAYERS = 10, CPU_GRACE = 10 };

struct options {
	uint64_t layers, disk_mib;
};

static bool number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	return bytes_to_u64(bytes_str(text), ret) && *ret >= min && *ret <= max;
}

static bool read_options(int argc, char **argv, struct options *ret)
{
	static const struct option known[] = { { "layers", required_argument, NULL, 'l' },
					       { "disk-mib", required_argument, NULL, 'd' },
					       { 0 } };
	int c;

	*ret = (struct options){ 0 };
	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		bool fine = false;

		if (c == 'l')
			fine = number(optarg, 1, UNPACK_LAYERS_MAX, &ret->layers);
		else if (c == 'd')
			fine = number(optarg, UNPACK_DISK_MIB_MIN, UNPACK_DISK_MIB_MAX,
				      &ret->disk_mib);
		if (!fine)
			return false;
	}
	return optind == argc && ret->layers > 0 && ret->disk_mib > 0;
}

static int check_given(const struct options *o, struct err *err)
{
	struct stat st;

	if (descriptors_check(FD_DISK, S_IFREG, O_RDWR, "the disk", err) < 0 ||
	    descriptors_check(FD_AGENT, S_IFREG, O_RDONLY, "the agent", err) < 0)
		return -1;
	if (fstat(FD_DISK, &st) < 0 || st.st_size != 0)
		return err_set(err, ERR_INVALID, 0, "the disk is not an empty file");
	for (uint64_t i = 0; i < o->layers; i++)
		if (descriptors_check(FD_LAYERS + (int)i, S_IFREG, O_RDONLY, "a layer", err) < 0)
			return -1;
	return 0;
}

static int limit(int what, uint64_t most, struct err *err)
{
	const struct rlimit l = { most, most };

	if (setrlimit((__rlimit_resource_t)what, &l) < 0)
		return err_set(err, ERR_INTERNAL, errno, "set a limit");
	return 0;
}

/* The kernel's word on what layer.c counts by itself, and on what nobody counts. */
static int set_limits(const struct options *o, struct err *err)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	uint64_t files = FD_LAYERS + o->layers, size = o->disk_mib << 20;
	uint64_t seconds = UNPACK_CPU_SECONDS + CPU_GRACE;

	/* a write beyond the limit, or to nobody, fails and does not end the program */
	if (sigaction(SIGXFSZ, &ignore, NULL) < 0 || sigaction(SIGPIPE, &ignore, NULL) < 0)
		return err_set(err, ERR_INTERNAL, errno, "ignore signals");
	if (limit(RLIMIT_CPU, seconds, err) < 0 || limit(RLIMIT_FSIZE, size, err) < 0)
		return -1;
	if (SANITIZED) /* which has shadow memory, and a thread that looks for leaks */
		return 0;
	if (limit(RLIMIT_AS, UNPACK_MEMORY_MAX, err) < 0 || limit(RLIMIT_NPROC, 0, err) < 0)
		return -1;
	return limit(RLIMIT_NOFILE, files, err);
}

static int give_up_all(const struct options *o, struct err *err)
{
	const struct confine all = { .user = "", .syscalls = syscalls };

	/* names in layers are UTF-8, and libarchive asks the locale what it may keep */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return err_set(err, ERR_INTERNAL, 0, "there is no locale C.UTF-8");
	if (confine_begin(FD_LAYERS + o->layers, err) < 0 || set_limits(o, err) < 0)
		return -1;
	return confine(&all, err);
}

static int unpack(struct image *im, const struct options *o, struct err *err)
{
	struct furnished f;

	if (image_begin(im, FD_DISK, o->disk_mib, err) < 0)
		return -1;
	im->tell = FD_RESULT;
	im->n_layers = (uint16_t)o->layers;
	for (im->tree.layer = 1; im->tree.layer <= im->n_layers; im->tree.layer++)
		if (layer_apply(im, FD_LAYERS + im->tree.layer - 1, err) < 0 ||
		    result_layer_done(im, err) < 0)
			return -1;
	if (furnish(im, FD_AGENT, &f, err) < 0 || image_finish(im, err) < 0)
		return -1;
	return result_ok(FD_RESULT, im, &f, err);
}

int main(int argc, char **argv)
{
	struct image im = { .disk = { .fd = -1 } };
	struct err err = { 0 };
	struct options o;
	int rc;

	log_init("unpack", LOG_WARN);
	if (!read_options(argc, argv, &o)) {
		fputs("usage: hotcell-unpack --layers N --disk-mib M, with descriptors open\n",
		      stderr);
		return 2;
	}
	rc = check_given(&o, &err);
	if (rc == 0)
		rc = give_up_all(&o, &err);
	if (rc == 0)
		rc = unpack(&im, &o, &err);
	if (rc < 0)
		result_error(FD_RESULT, &err, im.tree.layer <= o.layers ? im.tree.layer : 0,
			     im.path);
	image_done(&im);
	_exit(rc < 0 ? 1 : 0); /* what a sanitizer does at an end needs more than is left here */
}
