/* base_find.c - which of the templates in warden's folder is the one to use. */
/* #syscalls: openat openat2 getdents64 fcntl fstat newfstatat lseek close */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/log.h"
#include "base/random.h"
#include "node/template/base_find.h"
#include "node/node.h"
#include "node/template/base_trust.h"
#include "vm/package_hosts.h"
#include "vm/trust_ca.h"

/* --- its name ----------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, struct bytes b) /* FNV-1a */
{
	for (size_t i = 0; i < b.len; i++)
		h = (h ^ b.ptr[i]) * 1099511628211ull;
	return (h ^ 0xff) * 1099511628211ull; /* so that "ab","c" differs from "a","bc" */
}

static int mix_file(uint64_t *h, int *fd, const char *path, struct err *err)
{
	char text[128];
	struct stat st;

	if (*fd < 0)
		*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0 || fstat(*fd, &st) < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open '%s'", path);
	snprintf(text, sizeof(text), "%jd %jd.%09ld", (intmax_t)st.st_size,
		 (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	*h = mix(mix(*h, bytes_str(path)), bytes_str(text));
	return 0;
}

int base_name_inputs(struct node *n, struct err *err)
{
	struct base_template *b = &n->base;
	const struct manifest_facts *f = &b->facts;
	uint64_t h = 14695981039346656037ull;
	struct bytes ca;

	base_facts_here(n, &b->facts);
	if (base_trust_text(n, &ca, err) < 0 ||
	    mix_file(&h, &b->kernel, n->set[SET_KERNEL].text, err) < 0 ||
	    mix_file(&h, &b->disk, n->set[SET_DISK].text, err) < 0)
		return -1;
	h = mix(mix(h, bytes_str(f->vmm_version)), bytes_str(f->cpu_model));
	h = mix(mix(h, bytes_str(f->accel)), bytes_str(f->arguments));
	h = mix(mix(h, BYTES_LIT(BASE_FIRST_COMMAND)), package_hosts_script());
	if (ca.len > 0)
		h = mix(mix(h, ca), trust_ca_script());
	snprintf(b->inputs, sizeof(b->inputs), "%s-%012" PRIx64, BASE_ALIAS, h >> 16);
	return 0;
}

int ground_name_inputs(struct node *n, const char *source, char ret[static GROUND_INPUTS_SIZE],
		       struct err *err)
{
	struct base_template *b = &n->base;
	uint64_t h = 14695981039346656037ull;
	struct manifest_facts f;
	struct bytes ca;

	base_facts_here(n, &f);
	if (base_trust_text(n, &ca, err) < 0 ||
	    mix_file(&h, &b->kernel, n->set[SET_KERNEL].text, err) < 0)
		return -1;
	h = mix(mix(h, bytes_str(f.vmm_version)), bytes_str(f.cpu_model));
	h = mix(mix(h, bytes_str(f.accel)), bytes_str(f.arguments));
	h = mix(mix(h, bytes_str(source)), ca);
	if (ca.len > 0)
		h = mix(h, trust_ca_script());
	snprintf(ret, GROUND_INPUTS_SIZE, GROUND_PREFIX "%012" PRIx64, h >> 16);
	return 0;
}

bool template_of_inputs(const char *id, const char *inputs)
{
	size_t n = strlen(inputs);

	return n > 0 && strncmp(id, inputs, n) == 0 && (id[n] == '\0' || id[n] == '-');
}

bool base_same_inputs(const struct node *n, const char *id)
{
	return template_of_inputs(id, n->base.inputs);
}

/* --- which one ---------------------------------------------------------------------------- */

int base_open_folder(const struct node *n, const char *id, struct err *err)
{
	char path[TEMPLATE_PATH_MAX];
	int k = snprintf(path, sizeof(path), "%s/" WARDEN_TEMPLATE_PATH, n->set[SET_STATE_DIR].text,
			 id);
	int fd;

	if (k < 0 || (size_t)k >= sizeof(path))
		return err_set(err, ERR_INVALID, 0, "path too long");
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, errno,
			       "open the folder of templates");
	return fd;
}

struct search {
	struct node *node;
	const char *inputs;
	struct manifest *newest; /* template_id "": none yet */
	struct err why;          /* why the last that does not fit does not */
};

/* 1: it fits; 0: it does not, or is damaged, and *ret_why says so; -1: nobody knows. */
static int look_at(struct node *n, int dir, const char *id, struct manifest *ret,
		   struct err *ret_why)
{
	AUTO(auto_close) int folder = folder_open(dir, id, O_RDONLY | O_DIRECTORY, 0, ret_why);
	enum manifest_reason reason;
	int rc;

	if (folder < 0)
		return ret_why->sys == ENOENT ? 0 : -1; /* it goes just now */
	rc = template_manifest_read(folder, ret, ret_why);
	if (rc < 0 && ret_why->code != ERR_MISMATCH && ret_why->code != ERR_NOT_FOUND)
		return -1;
	if (rc == 0 && strcmp(ret->template_id, id) != 0)
		rc = err_set(ret_why, ERR_MISMATCH, 0, "its manifest is of template %s",
			     ret->template_id);
	if (rc < 0) {
		(void)base_learn_unfit(n, id, ret_why);
		return 0;
	}
	return manifest_check(ret, &n->base.facts, &reason, ret_why) == 0;
}

static bool is_newer(const struct manifest *a, const struct manifest *b)
{
	int by_time = strcmp(a->created, b->created);

	return by_time != 0 ? by_time > 0 : strcmp(a->template_id, b->template_id) > 0;
}

static int consider(int dir, const char *name, void *context, struct err *err)
{
	struct search *s = context;
	struct manifest m;
	int fits;

	if (!template_of_inputs(name, s->inputs) || base_is_unfit(s->node, name))
		return 0;
	fits = look_at(s->node, dir, name, &m, &s->why);
	if (fits < 0) {
		*err = s->why;
		return err_wrap(err, "template %s", name);
	}
	if (fits && is_newer(&m, s->newest))
		*s->newest = m;
	return 0;
}

int base_find(struct node *n, struct manifest *ret, struct err *err)
{
	return template_find(n, n->base.inputs, ret, err);
}

int template_find(struct node *n, const char *inputs, struct manifest *ret, struct err *err)
{
	AUTO(auto_close) int dir = base_open_folder(n, ".", err);
	struct search s = { .node = n, .inputs = inputs, .newest = ret };

	*ret = (struct manifest){ 0 };
	if (dir < 0 || folder_each(dir, consider, &s, err) < 0)
		return -1;
	if (ret->template_id[0])
		return 0;
	if (s.why.code != ERR_NONE)
		return err_set(err, ERR_MISMATCH, 0, "%s", s.why.msg);
	return err_set(err, ERR_NOT_FOUND, 0, "there is none of this kernel, disk and QEMU");
}

/* --- a new one ---------------------------------------------------------------------------- */

struct draw {
	const struct node *node;
	const char *inputs;
	char *id;
};

/* A build that did not end: its id may be used again, for nobody ever had it. */
static int take_unfinished(int dir, const char *name, void *context, struct err *err)
{
	const char *id = name + strlen(WARDEN_OPEN_PREFIX);
	struct draw *d = context;
	struct stat st;

	(void)err;
	if (strncmp(name, WARDEN_OPEN_PREFIX, strlen(WARDEN_OPEN_PREFIX)) != 0 ||
	    !template_of_inputs(id, d->inputs) || strlen(id) <= strlen(d->inputs) ||
	    strlen(id) > NODE_ID_MAX)
		return 0;
	if (fstatat(dir, id, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT ||
	    base_in_use(d->node, id))
		return 0;
	snprintf(d->id, NODE_ID_MAX + 1, "%s", id);
	return -1;
}

void template_draw_id(const struct node *n, const char *inputs, char ret[static NODE_ID_MAX + 1])
{
	struct draw d = { n, inputs, ret };
	struct err err;
	AUTO(auto_close) int dir = base_open_folder(n, ".", &err);
	char build[BASE_BUILD_LENGTH + 1];

	random_name(build, BASE_BUILD_LENGTH);
	snprintf(ret, NODE_ID_MAX + 1, "%.40s-%s", inputs, build);
	if (dir >= 0)
		(void)!folder_each(dir, take_unfinished, &d, &err);
}

void base_draw_id(struct node *n)
{
	template_draw_id(n, n->base.inputs, n->base.id);
}

/* --- rows of before ----------------------------------------------------------------------- */

static uint64_t sums_of(const char *id, bool snapshot, void *context)
{
	const struct node *n = context;
	AUTO(auto_close) int folder = -1;
	char path[TEMPLATE_PATH_MAX];
	struct manifest m;
	struct err err;
	int k = snprintf(path, sizeof(path), "%s/%s/%s",
			 n->set[snapshot ? SET_DATA_DIR : SET_STATE_DIR].text,
			 snapshot ? "snapshots" : "templates", id);

	if (k < 0 || (size_t)k >= sizeof(path) || !folder_name_ok(id, strlen(id) + 1))
		return 0;
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder >= 0 && template_manifest_read(folder, &m, &err) == 0)
		return manifest_sums(&m);
	log_warn("what was made of %s is not bound to its sums: it cannot be read", id);
	return 0;
}

void base_bind_rows(struct node *n)
{
	struct err err;

	if (journal_bind(n->journal, sums_of, n, &err) < 0) /* they are at their next load */
		log_error("bind what was saved to its templates: %s", err.msg);
}
