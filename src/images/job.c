/* job.c - see job.h. */
#include "images/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/fdmsg.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/memory_file.h"
#include "images/fetch.h"
#include "images/import.h"
#include "images/unpack.h"
#include "jail/confine_files.h"
#include "images/program_filter.h"
#include "jail/sanitized.h"
#include "wire/sha256.h"

enum { AUTH_MAX = 64 * 1024, FAILED = 1 };

#define MIB        (1024ull * 1024)
#define MEMORY_MAX (256 * MIB)

/* --- what it says ----------------------------------------------------------------------------- */

int job_say(const struct job *j, struct err *err, const char *fmt, ...)
{
	struct job_note note = { 0 };
	va_list args;

	va_start(args, fmt);
	vsnprintf(note.text, sizeof(note.text), fmt, args);
	va_end(args);
	return fdmsg_send(j->channel, &note, sizeof(note), NULL, 0, err);
}

static void say_last(const struct job *j, const struct image *i, int config, const struct err *why)
{
	struct job_note note = { .last = 1, .code = why->code };
	struct err err;

	if (why->code == ERR_NONE)
		memcpy(note.digest, i->digest, sizeof(i->digest));
	else
		snprintf(note.text, sizeof(note.text), "%s", why->msg);
	if (fdmsg_send(j->channel, &note, sizeof(note), &config, config >= 0, &err) < 0)
		log_error("%s", err.msg);
}

/* --- before it reads anything ------------------------------------------------------------------
 */

static int end_with(pid_t parent, struct err *err)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_set(err, ERR_INTERNAL, errno, "end with its parent");
	if (getppid() != parent)
		return err_set(err, ERR_UNAVAILABLE, 0, "its parent is gone");
	/* it waits for its children, which are in its group */
	if (sigaction(SIGCHLD, &usual, NULL) < 0)
		return err_set(err, ERR_INTERNAL, errno, "wait for children");
	return 0;
}

static int write_auth(struct job *j, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(AUTH_MAX);
	AUTO(auto_close) int fd = -1;

	snprintf(j->auth_path, sizeof(j->auth_path), "%.480s/%s", j->places->auth, j->order.id);
	if (j->auth < 0)
		return 0;
	if (memory_file_read(j->auth, &text, err) < 0)
		return -1;
	fd = open(j->auth_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text.ptr, text.len) != (ssize_t)text.len)
		return err_set(err, ERR_INTERNAL, errno, "prepare credentials");
	return 0;
}

/* Which registry is spoken to, and by which name it is called. */
static void name_givers(struct job *j)
{
	const struct image_ref *r = &j->order.ref;

	j->store.registry = j->order.host;
	j->store.repository = j->repository;
	if (r->host[0])
		snprintf(j->repository, sizeof(j->repository), "%s %s/%s", j->order.host, r->host,
			 r->path);
}

static int open_places(struct job *j, struct err *err)
{
	AUTO(auto_close) int jobs = open(j->places->jobs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	snprintf(j->path, sizeof(j->path), "%.480s/%s", j->places->jobs, j->order.id);
	if (jobs < 0)
		return err_set(err, ERR_INTERNAL, errno, "open %s", j->places->jobs);
	j->dir = folder_make(jobs, j->order.id, 0700, err);
	if (j->dir < 0 || store_open(&j->store, j->places->store, err) < 0)
		return -1;
	name_givers(j);
	j->store.max_bytes = j->set[SET_STORE_MIB].number * MIB;
	j->store.spare_bytes = j->set[SET_RESERVE_MIB].number * MIB;
	return write_auth(j, err);
}

/* The credentials of others who fetch now are not its to read. */
static int give_up(const struct job *j, struct err *err)
{
	const struct rlimit memory = { MEMORY_MAX, RLIM_INFINITY };
	const struct confine_path paths[] = {
		{ "/usr", CONFINE_RUN },
		{ "/etc", CONFINE_READ },
		{ j->places->etc, CONFINE_READ },
		{ j->places->store, CONFINE_WRITE },
		{ j->set[SET_SKOPEO].text, CONFINE_RUN },
		{ j->set[SET_UNPACK].text, CONFINE_RUN },
		{ j->set[SET_AGENT].text, CONFINE_READ },
		{ j->auth_path, CONFINE_READ },
	};

	if (!SANITIZED && setrlimit(RLIMIT_DATA, &memory) < 0)
		return err_set(err, ERR_INTERNAL, errno, "bound its memory");
	if (confine_files(paths, COUNT(paths) - (j->auth < 0 ? 1 : 0), err) < 0)
		return -1;
	return program_filter_load(0, err);
}

/* --- the work --------------------------------------------------------------------------------- */

static int work(struct job *j, struct image *i, struct buf *config, struct err *err)
{
	bool disk = j->disk >= 0;

	if (j->archive >= 0 ? import_image(j, disk, i, err) < 0 : fetch_image(j, disk, i, err) < 0)
		return -1;
	if (oci_config(buf_view(&i->config), config, err) < 0)
		return -1;
	return disk ? unpack_image(j, i, err) : 0;
}

/* What node is told besides: whose permission was asked. */
static int add_repository(const struct job *j, struct buf *config, struct err *err)
{
	char hex[SHA256_HEX + 1];

	sha256_hex_of(bytes_str(j->repository), hex);
	config->len--; /* its last brace */
	return buf_printf(config, err, ",\"repository\":\"%s\"}", hex);
}

static int live(struct job *j, pid_t parent, struct image *i, struct err *err)
{
	AUTO(buf_done) struct buf config = BUF_MAX(IMAGES_CONFIG_MAX);

	image_ref_text(&j->order.ref, j->name);
	if (end_with(parent, err) < 0 || open_places(j, err) < 0 || give_up(j, err) < 0 ||
	    work(j, i, &config, err) < 0 || add_repository(j, &config, err) < 0)
		return -1;
	return memory_file_make("config", buf_view(&config), err);
}

_Noreturn void job_live(struct job *j, pid_t parent)
{
	struct image i = { .config = BUF_MAX(OCI_TEXT_MAX) };
	struct err err = { 0 };
	int config;

	for (size_t n = 0; n < OCI_LAYERS_MAX; n++)
		i.layers[n] = -1;
	log_init("images-job", LOG_INFO);
	config = live(j, parent, &i, &err);
	assert((config < 0) == (err.code != ERR_NONE));
	say_last(j, &i, config, &err);
	_exit(config < 0 ? FAILED : 0);
}
