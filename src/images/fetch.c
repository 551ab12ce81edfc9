/* fetch.c - see fetch.h. */
#include "images/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/folder.h"
#include "base/log.h"
#include "images/child.h"
#include "images/fetch_error.h"
#include "images/program_filter.h"
#include "wire/sha256.h"

enum { ARGS_MAX = 24, MIB = 1024 * 1024, NAME_SIZE = IMAGE_NAME_MAX + 16, VARIABLE = 160 };

#define MEMORY_MAX (2ull << 30) /* of skopeo: Go counts generously */
#define FILE_MIN   (8ull << 20) /* what it writes besides layers */

/* --- one call of skopeo ----------------------------------------------------------------------- */

struct call {
	const char *argv[ARGS_MAX + 1];
	size_t n;
	struct child_reader reader;
	uint64_t file_bytes;
	bool copies;
	const struct job *job;
};

static void add(struct call *c, const char *word)
{
	assert(c->n < ARGS_MAX);
	c->argv[c->n++] = word;
}

/* What both commands begin with. */
static void begin(struct call *c, const struct job *j, const char *etc_conf, const char *etc_d)
{
	c->job = j;
	add(c, j->set[SET_SKOPEO].text);
	add(c, "--insecure-policy"); /* signatures are not looked at; digests are, by us */
	add(c, "--registries-conf");
	add(c, etc_conf);
	add(c, "--registries.d");
	add(c, etc_d);
	add(c, "--tmpdir");
	add(c, j->path);
}

static void add_credentials(struct call *c, const struct job *j, const char *none)
{
	if (j->auth < 0) {
		add(c, none);
		return;
	}
	add(c, "--authfile");
	add(c, j->auth_path);
}

static int run(struct call *c, struct err *err)
{
	const struct job *j = c->job;
	AUTO(buf_done) struct buf errors = BUF_MAX(CHILD_ERROR_MAX);
	char home[PLACE_MAX + 8], secure[VARIABLE], plain[VARIABLE];
	const char *const with_proxy[] = { home,   "GOMAXPROCS=2", "GOMEMLIMIT=512MiB",
					   secure, plain,          NULL };
	const char *const without[] = { home, "GOMAXPROCS=2", "GOMEMLIMIT=512MiB", NULL };
	const struct confine_path paths[] = {
		{ "/usr", CONFINE_RUN },    { j->set[SET_SKOPEO].text, CONFINE_RUN },
		{ "/etc", CONFINE_READ },   { j->places->etc, CONFINE_READ },
		{ j->path, CONFINE_WRITE }, { j->auth_path, CONFINE_READ },
	};
	const char *proxy = j->set[SET_PROXY].text;
	const struct child child = {
		.argv = c->argv,
		.environment = proxy[0] ? with_proxy : without,
		.paths = paths,
		.n_paths = COUNT(paths) - (j->auth < 0 ? 1 : 0),
		.null = j->null,
		.reader_fd = 1,
		.reader = &c->reader,
		.errors = &errors,
		.denied = PROGRAM_NO_PROCESSES | PROGRAM_NO_SIGNALS,
		.file_bytes = c->file_bytes,
		.memory_bytes = MEMORY_MAX,
	};
	int status;

	snprintf(home, sizeof(home), "HOME=%s", j->path);
	snprintf(secure, sizeof(secure), "HTTPS_PROXY=http://%.120s", proxy);
	snprintf(plain, sizeof(plain), "HTTP_PROXY=http://%.120s", proxy);
	status = child_run(&child, err);
	if (status <= 0)
		return status;
	log_warn("skopeo ended with %d: %.*s", status, (int)errors.len, (const char *)errors.ptr);
	return fetch_error(buf_view(&errors), j->name, j->order.host, err);
}

/* --- texts ------------------------------------------------------------------------------------ */

/* docker://HOST/PATH with a tag, or a digest: it takes one of them. */
static void source_of(const struct job *j, const char *digest, char ret[static NAME_SIZE])
{
	const struct image_ref *r = &j->order.ref;

	if (digest[0])
		snprintf(ret, NAME_SIZE, "docker://%s/%s@%s", r->host, r->path, digest);
	else
		snprintf(ret, NAME_SIZE, "docker://%s/%s:%s", r->host, r->path, r->tag);
}

struct etc_names {
	char conf[PLACE_MAX + 24], d[PLACE_MAX + 24], certs[PLACE_MAX + 24];
};

static void names_of(const struct job *j, struct etc_names *ret)
{
	snprintf(ret->conf, sizeof(ret->conf), "%s/registries.conf", j->places->etc);
	snprintf(ret->d, sizeof(ret->d), "%s/registries.d", j->places->etc);
	snprintf(ret->certs, sizeof(ret->certs), "%s/certs", j->places->etc);
}

static int inspect(const struct job *j, const char *digest, bool config, struct buf *ret,
		   struct err *err)
{
	struct call c = { .reader = { .all = ret }, .file_bytes = FILE_MIN };
	char source[NAME_SIZE];
	struct etc_names etc;

	names_of(j, &etc);
	source_of(j, digest, source);
	begin(&c, j, etc.conf, etc.d);
	add(&c, "inspect");
	add(&c, "--raw");
	if (config)
		add(&c, "--config");
	add_credentials(&c, j, "--no-creds");
	add(&c, "--cert-dir");
	add(&c, etc.certs);
	add(&c, source);
	return run(&c, err);
}

static bool is_digest(struct bytes text, const char *digest)
{
	char hex[SHA256_HEX + 1];

	sha256_hex_of(text, hex);
	return strcmp(digest + IMAGE_DIGEST - IMAGE_HEX, hex) == 0;
}

/* A text with a digest that is known: of the store, or of the registry, and then kept. */
static int get_text(const struct job *j, const char *manifest, const char *digest, struct buf *ret,
		    struct err *err)
{
	bool config = strcmp(manifest, digest) != 0;
	char kept[IMAGE_DIGEST + 1];

	if (store_read(&j->store, digest, ret) && is_digest(buf_view(ret), digest))
		return 0;
	buf_clear(ret);
	if (inspect(j, manifest, config, ret, err) < 0)
		return -1;
	if (!is_digest(buf_view(ret), digest))
		return err_set(err, ERR_INVALID, 0,
			       "what came for %.120s is not what its digest says", j->name);
	return store_add(&j->store, j->dir, buf_view(ret), kept, err);
}

/* --- which image ------------------------------------------------------------------------------ */

/* What the name means now. */
static int resolve(const struct job *j, struct buf *text, char digest[static IMAGE_DIGEST + 1],
		   struct err *err)
{
	const char *wanted = j->order.ref.digest;

	if (job_say(j, err, "Resolving %s", j->name) < 0 ||
	    inspect(j, wanted, false, text, err) < 0)
		return -1;
	if (wanted[0] && !is_digest(buf_view(text), wanted))
		return err_set(err, ERR_INVALID, 0,
			       "what came for %.120s is not what its digest says", j->name);
	return store_add(&j->store, j->dir, buf_view(text), digest, err);
}

static int choose(const struct job *j, struct buf *text, char digest[static IMAGE_DIGEST + 1],
		  struct err *err)
{
	struct oci_blob chosen;
	enum oci_kind kind;

	if (oci_kind(buf_view(text), &kind, err) < 0)
		return -1;
	if (kind == OCI_MANIFEST)
		return 0;
	if (oci_choose(buf_view(text), &chosen, err) < 0)
		return -1;
	buf_clear(text);
	memcpy(digest, chosen.digest, sizeof(chosen.digest));
	return get_text(j, digest, digest, text, err);
}

static int check_size(const struct job *j, const struct oci_manifest *m, struct err *err)
{
	uint64_t most = j->set[SET_IMAGE_MIB].number;

	if (oci_total(m) > most * MIB)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "the image has %lu MiB, at most %lu are taken (image_mib)",
			       oci_total(m) / MIB, most);
	return 0;
}

static int find_manifest(const struct job *j, struct image *i, struct oci_manifest *m,
			 struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(OCI_TEXT_MAX);

	if (resolve(j, &text, i->digest, err) < 0 || choose(j, &text, i->digest, err) < 0 ||
	    oci_manifest(buf_view(&text), m, err) < 0 || check_size(j, m, err) < 0)
		return -1;
	return get_text(j, i->digest, m->config.digest, &i->config, err);
}

/* --- layers ----------------------------------------------------------------------------------- */

static void hold_layers(const struct job *j, const struct oci_manifest *m, struct image *i)
{
	for (size_t n = 0; n < m->n_layers; n++)
		if (i->layers[n] < 0)
			i->layers[n] =
				store_find(&j->store, m->layers[n].digest, m->layers[n].size);
}

/* Is it missing, and not the same as one before it? */
static bool is_wanted(const struct oci_manifest *m, const struct image *i, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (strcmp(m->layers[k].digest, m->layers[n].digest) == 0)
			return false;
	return i->layers[n] < 0;
}

struct missing {
	size_t n;
	uint64_t bytes, largest;
};

static struct missing count_missing(const struct oci_manifest *m, const struct image *i)
{
	struct missing all = { 0 };

	for (size_t n = 0; n < m->n_layers; n++) {
		if (!is_wanted(m, i, n))
			continue;
		all.n++;
		all.bytes += m->layers[n].size;
		if (m->layers[n].size > all.largest)
			all.largest = m->layers[n].size;
	}
	return all;
}

/* skopeo does not fetch what is there under its name: for what the store has an empty file of that
 * length stands there, and the store itself is out of its reach. */
static int stand_in(int blobs, const struct oci_blob *layer, struct err *err)
{
	AUTO(auto_close)
	int fd = openat(blobs, layer->digest + IMAGE_DIGEST - IMAGE_HEX,
			O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)layer->size) < 0)
		return err_set(err, ERR_INTERNAL, errno, "prepare a fetch");
	return 0;
}

static int prepare(const struct job *j, const struct oci_manifest *m, const struct image *i,
		   int *ret_blobs, struct err *err)
{
	AUTO(auto_close) int shared = folder_make(j->dir, "blobs", 0700, err);

	*ret_blobs = shared < 0 ? -1 : folder_make(shared, "sha256", 0700, err);
	if (*ret_blobs < 0)
		return -1;
	for (size_t n = 0; n < m->n_layers; n++)
		if (i->layers[n] >= 0 && stand_in(*ret_blobs, &m->layers[n], err) < 0)
			return -1;
	return 0;
}

static int on_copy_line(struct child_reader *r, struct bytes line, struct err *err)
{
	const struct call *c = CONTAINER_OF(r, struct call, reader);
	static const char blob[] = "Copying blob ";

	if (!bytes_starts(line, BYTES_LIT(blob)))
		return 0;
	line = bytes_head(bytes_tail(line, sizeof(blob) - 1), IMAGE_DIGEST);
	return image_digest_ok(line) ? job_say(c->job, err, "Layer %.19s", (const char *)line.ptr)
				     : 0;
}

static int copy(const struct job *j, const char *digest, uint64_t largest, struct err *err)
{
	struct call c = { .reader = { .on_line = on_copy_line },
			  .file_bytes = largest > FILE_MIN ? largest : FILE_MIN };
	char source[NAME_SIZE], to[PLACE_MAX + 16], shared[PLACE_MAX + 16];
	struct etc_names etc;

	names_of(j, &etc);
	source_of(j, digest, source);
	snprintf(to, sizeof(to), "oci:%s/layout:x", j->path);
	snprintf(shared, sizeof(shared), "%s/blobs", j->path);
	begin(&c, j, etc.conf, etc.d);
	add(&c, "copy");
	add_credentials(&c, j, "--src-no-creds");
	add(&c, "--src-cert-dir");
	add(&c, etc.certs);
	add(&c, "--dest-oci-accept-uncompressed-layers");
	add(&c, "--dest-shared-blob-dir");
	add(&c, shared);
	add(&c, source);
	add(&c, to);
	return run(&c, err);
}

static int keep_layers(const struct job *j, const struct oci_manifest *m, struct image *i,
		       int blobs, struct err *err)
{
	for (size_t n = 0; n < m->n_layers; n++) {
		if (!is_wanted(m, i, n))
			continue;
		i->layers[n] =
			store_keep(&j->store, blobs, m->layers[n].digest + IMAGE_DIGEST - IMAGE_HEX,
				   &m->layers[n], err);
		if (i->layers[n] < 0)
			return -1;
	}
	hold_layers(j, m, i); /* those that are there twice */
	return 0;
}

static int fetch_layers(const struct job *j, const struct oci_manifest *m, struct image *i,
			struct err *err)
{
	AUTO(auto_close) int blobs = -1;
	struct missing all;

	i->n_layers = m->n_layers;
	hold_layers(j, m, i);
	all = count_missing(m, i);
	if (job_say(j, err, "%s: %zu layers, %zu to fetch (%lu MiB)", i->digest, m->n_layers, all.n,
		    (all.bytes + MIB - 1) / MIB) < 0)
		return -1;
	if (all.n == 0)
		return 0;
	if (store_make_room(&j->store, all.bytes, err) < 0 || prepare(j, m, i, &blobs, err) < 0 ||
	    copy(j, i->digest, all.largest, err) < 0)
		return -1;
	return keep_layers(j, m, i, blobs, err);
}

int fetch_image(struct job *j, bool layers, struct image *ret, struct err *err)
{
	AUTO(auto_free) struct oci_manifest *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "read a manifest");
	if (find_manifest(j, ret, m, err) < 0)
		return -1;
	return layers ? fetch_layers(j, m, ret, err) : 0;
}
