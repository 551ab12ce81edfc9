/* import.c - see import.h. */
#include "images/import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "tls/digest.h"
#include "wire/tar.h"

enum { PIECE = 256 * 1024, MIB = 1024 * 1024, LINKS_MAX = 4, MAGIC = 4 };

struct member {
	char name[OCI_PATH_MAX + 1];
	char link[OCI_PATH_MAX + 1]; /* to another; "": none */
	uint64_t at, size;
};

struct archive {
	int fd;
	uint64_t bytes;
	size_t n;
	struct member *all;
};

static void archive_close(struct archive *a)
{
	free(a->all);
}

/* --- what is in it ---------------------------------------------------------------------------- */

static int read_at(const struct archive *a, uint64_t at, uint8_t *to, size_t n, struct err *err)
{
	if (at > a->bytes || n > a->bytes - at || pread(a->fd, to, n, (off_t)at) != (ssize_t)n)
		return err_set(err, ERR_INVALID, 0, "the archive ends too early");
	return 0;
}

static int read_text(const struct archive *a, struct tar *t, uint64_t at, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(TAR_TEXT_MAX);
	uint8_t *to;

	if (buf_reserve(&text, (size_t)t->size, &to, err) < 0 ||
	    read_at(a, at, to, (size_t)t->size, err) < 0)
		return -1;
	return tar_text(t, (struct bytes){ to, (size_t)t->size }, err);
}

/* Names are compared and never opened; ./ before one says nothing. */
static struct bytes plain_name(const char *name)
{
	struct bytes b = bytes_str(name);

	while (bytes_starts(b, BYTES_LIT("./")))
		b = bytes_tail(b, 2);
	return b;
}

/* A symbolic link is told from where it is; all that `docker save` makes lead one folder up. */
static void resolve_link(const struct tar *t, struct member *m)
{
	struct bytes link = bytes_str(t->link);

	if (t->symbolic && bytes_starts(link, BYTES_LIT("../")))
		link = bytes_tail(link, 3);
	(void)bytes_to_str(link, m->link, sizeof(m->link));
}

static int add_member(struct archive *a, const struct tar *t, uint64_t at, struct err *err)
{
	struct member *m = &a->all[a->n];

	if (a->n == IMPORT_FILES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "the archive has more than %d files",
			       IMPORT_FILES_MAX);
	*m = (struct member){ .at = at, .size = t->size };
	if (!bytes_to_str(plain_name(t->name), m->name, sizeof(m->name)))
		return 0; /* none that an image could be made of */
	resolve_link(t, m);
	a->n++;
	return 0;
}

static int take_step(struct archive *a, struct tar *t, enum tar_step step, uint64_t at,
		     struct err *err)
{
	if (t->size > a->bytes || at > a->bytes - t->size)
		return err_set(err, ERR_INVALID, 0, "the archive ends too early");
	if (step == TAR_TEXT)
		return read_text(a, t, at, err);
	return step == TAR_FILE ? add_member(a, t, at, err) : 0;
}

static int check_kind(const struct archive *a, struct err *err)
{
	static const uint8_t gzip[] = { 0x1f, 0x8b }, zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };
	uint8_t magic[MAGIC];

	if (read_at(a, 0, magic, sizeof(magic), err) < 0)
		return -1;
	if (memcmp(magic, gzip, sizeof(gzip)) == 0 || memcmp(magic, zstd, sizeof(zstd)) == 0)
		return err_set(err, ERR_INVALID, 0, "the archive is compressed: unpack it first");
	return 0;
}

/* Some leave out the end. */
static int list(struct archive *a, struct err *err)
{
	AUTO(auto_free) struct tar *t = calloc(1, sizeof(*t));
	enum tar_step step = TAR_SKIP;
	uint8_t block[TAR_BLOCK];
	uint64_t at = 0;

	a->all = calloc(IMPORT_FILES_MAX, sizeof(*a->all));
	if (!t || !a->all)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "read an archive");
	while (step != TAR_END && at < a->bytes) {
		if (read_at(a, at, block, sizeof(block), err) < 0 ||
		    tar_block(t, block, &step, err) < 0)
			return -1;
		at += TAR_BLOCK;
		if (take_step(a, t, step, at, err) < 0)
			return -1;
		at += tar_padded(t->size);
	}
	return 0;
}

/* The last of a name counts. NULL: there is none. */
static const struct member *find(const struct archive *a, struct bytes name)
{
	for (size_t links = 0; links < LINKS_MAX; links++) {
		const struct member *m = NULL;

		for (size_t i = a->n; i > 0 && !m; i--)
			if (bytes_eq(bytes_str(a->all[i - 1].name), name))
				m = &a->all[i - 1];
		if (!m || !m->link[0])
			return m;
		name = bytes_str(m->link);
	}
	return NULL;
}

static int want(const struct archive *a, const char *name, const struct member **ret,
		struct err *err)
{
	*ret = find(a, plain_name(name));
	if (!*ret)
		return err_set(err, ERR_INVALID, 0, "the archive has no file %.120s", name);
	return 0;
}

static int want_text(const struct archive *a, const char *name, struct buf *ret, struct err *err)
{
	const struct member *m;
	uint8_t *to;

	if (want(a, name, &m, err) < 0)
		return -1;
	if (m->size > OCI_TEXT_MAX)
		return err_set(err, ERR_INVALID, 0, "%.120s is too large", name);
	if (buf_reserve(ret, (size_t)m->size, &to, err) < 0 ||
	    read_at(a, m->at, to, (size_t)m->size, err) < 0)
		return -1;
	buf_claim(ret, (size_t)m->size);
	return 0;
}

/* --- into the store --------------------------------------------------------------------------- */

static int copy_bytes(const struct archive *a, const struct member *m, int to, struct err *err)
{
	AUTO(auto_free) uint8_t *piece = malloc(PIECE);

	if (!piece)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "copy a layer");
	for (uint64_t done = 0; done < m->size;) {
		size_t n = m->size - done < PIECE ? (size_t)(m->size - done) : PIECE;

		if (read_at(a, m->at + done, piece, n, err) < 0)
			return -1;
		if (write(to, piece, n) != (ssize_t)n)
			return err_set(err, ERR_NO_SPACE, errno, "copy a layer");
		done += n;
	}
	return 0;
}

static int keep_member(const struct job *j, const struct archive *a, const struct member *m,
		       struct oci_blob *blob, struct err *err)
{
	AUTO(auto_close) int fd = -1;
	uint64_t size;

	if (store_make_room(&j->store, m->size, err) < 0 || folder_remove(j->dir, "layer", err) < 0)
		return -1;
	fd = folder_open(j->dir, "layer", O_RDWR | O_CREAT | O_EXCL, 0600, err);
	if (fd < 0 || copy_bytes(a, m, fd, err) < 0)
		return -1;
	if (!blob->digest[0] && store_digest(fd, blob->digest, &size, err) < 0)
		return -1;
	return store_keep(&j->store, j->dir, "layer", blob, err);
}

static int add_layer(const struct job *j, const struct archive *a, const struct member *m,
		     struct oci_blob *blob, struct image *i, struct err *err)
{
	int fd =
		keep_member(j, a, m, blob, err); /* nothing is taken from the store: it is hashed */

	if (fd < 0)
		return -1;
	i->layers[i->n_layers++] = fd;
	return job_say(j, err, "Layer %.19s", blob->digest);
}

static int check_total(const struct job *j, uint64_t total, struct err *err)
{
	uint64_t most = j->set[SET_IMAGE_MIB].number;

	if (total > most * MIB)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "the image has %lu MiB, at most %lu are taken (image_mib)",
			       total / MIB, most);
	return 0;
}

/* --- what docker save writes ------------------------------------------------------------------ */

static int is_packed(const struct archive *a, const struct member *m, bool *ret, struct err *err)
{
	uint8_t magic[2] = { 0 };

	if (m->size >= sizeof(magic) && read_at(a, m->at, magic, sizeof(magic), err) < 0)
		return -1;
	*ret = (magic[0] == 0x1f && magic[1] == 0x8b) || (magic[0] == 0x28 && magic[1] == 0xb5);
	return 0;
}

static int add_member_to(struct digest *sum, const struct archive *a, const struct member *m,
			 struct err *err)
{
	AUTO(auto_free) uint8_t *piece = malloc(PIECE);
	char size[32];

	if (!piece)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "hash a layer");
	snprintf(size, sizeof(size), "\n%" PRIu64 "\n", m->size);
	if (digest_add(sum, bytes_str(size), err) < 0)
		return -1;
	for (uint64_t done = 0; done < m->size;) {
		size_t n = m->size - done < PIECE ? (size_t)(m->size - done) : PIECE;

		if (read_at(a, m->at + done, piece, n, err) < 0 ||
		    digest_add(sum, (struct bytes){ piece, n }, err) < 0)
			return -1;
		done += n;
	}
	return 0;
}

/* The configuration has the digests of layers as they are: it names an image, unless layers are
 * compressed. Nothing says what these are, so they are a part of its name: two images of one
 * configuration are not taken for each other. */
static int docker_name(const struct archive *a, const struct oci_archive *o, struct image *i,
		       struct err *err)
{
	AUTO(digest_freep) struct digest *sum = NULL;
	uint8_t hash[DIGEST_SIZE];

	for (size_t n = 0; n < o->n_layers; n++) {
		const struct member *m;
		bool packed;

		if (want(a, o->layers[n], &m, err) < 0 || is_packed(a, m, &packed, err) < 0)
			return -1;
		if (!packed)
			continue;
		if (!sum &&
		    (digest_new(&sum, err) < 0 || digest_add(sum, bytes_str(i->digest), err) < 0))
			return -1;
		if (add_member_to(sum, a, m, err) < 0)
			return -1;
	}
	if (!sum)
		return 0;
	if (digest_end(sum, hash, err) < 0)
		return -1;
	store_digest_text(hash, i->digest);
	return 0;
}

/* A layer as it is has the digest that the configuration says; one that is compressed has its own,
 * and the other is not looked at. */
static int docker_layers(const struct job *j, const struct archive *a, const struct oci_archive *o,
			 struct image *i, struct err *err)
{
	AUTO(auto_free) struct oci_blob *said = calloc(OCI_LAYERS_MAX, sizeof(*said));
	uint64_t total = 0;

	if (!said)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "read an archive");
	if (oci_diff_ids(buf_view(&i->config), o->n_layers, said, err) < 0)
		return -1;
	for (size_t n = 0; n < o->n_layers; n++) {
		const struct member *m;
		bool packed;

		if (want(a, o->layers[n], &m, err) < 0 || is_packed(a, m, &packed, err) < 0)
			return -1;
		total += m->size;
		said[n].size = m->size;
		if (packed)
			said[n].digest[0] = '\0';
		if (check_total(j, total, err) < 0 || add_layer(j, a, m, &said[n], i, err) < 0)
			return -1;
	}
	return 0;
}

static int import_docker(const struct job *j, const struct archive *a, bool layers, struct image *i,
			 struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(OCI_TEXT_MAX);
	AUTO(auto_free) struct oci_archive *o = calloc(1, sizeof(*o));

	if (!o)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "read an archive");
	if (want_text(a, "manifest.json", &text, err) < 0 ||
	    oci_archive(buf_view(&text), o, err) < 0 ||
	    want_text(a, o->config, &i->config, err) < 0 ||
	    store_add(&j->store, j->dir, buf_view(&i->config), i->digest, err) < 0 ||
	    docker_name(a, o, i, err) < 0)
		return -1;
	return layers ? docker_layers(j, a, o, i, err) : 0;
}

/* --- an OCI layout ---------------------------------------------------------------------------- */

static void blob_name(const struct oci_blob *b, char ret[static OCI_PATH_MAX + 1])
{
	snprintf(ret, OCI_PATH_MAX + 1, "blobs/sha256/%s", b->digest + IMAGE_DIGEST - IMAGE_HEX);
}

/* Kept, so that its digest is known to be right. */
static int blob_text(const struct job *j, const struct archive *a, const struct oci_blob *b,
		     struct buf *ret, struct err *err)
{
	char name[OCI_PATH_MAX + 1], digest[IMAGE_DIGEST + 1];

	blob_name(b, name);
	buf_clear(ret);
	if (want_text(a, name, ret, err) < 0 ||
	    store_add(&j->store, j->dir, buf_view(ret), digest, err) < 0)
		return -1;
	if (strcmp(digest, b->digest) != 0)
		return err_set(err, ERR_INVALID, 0, "%.120s is not what its digest says", name);
	return 0;
}

/* An index may name an index: once. */
static int layout_manifest(const struct job *j, const struct archive *a, struct image *i,
			   struct oci_manifest *m, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(OCI_TEXT_MAX);
	struct oci_blob chosen;
	enum oci_kind kind;

	if (want_text(a, "index.json", &text, err) < 0 ||
	    oci_choose(buf_view(&text), &chosen, err) < 0 ||
	    blob_text(j, a, &chosen, &text, err) < 0 || oci_kind(buf_view(&text), &kind, err) < 0)
		return -1;
	if (kind == OCI_INDEX && (oci_choose(buf_view(&text), &chosen, err) < 0 ||
				  blob_text(j, a, &chosen, &text, err) < 0))
		return -1;
	memcpy(i->digest, chosen.digest, sizeof(chosen.digest));
	return oci_manifest(buf_view(&text), m, err);
}

static int layout_layers(const struct job *j, const struct archive *a, struct oci_manifest *m,
			 struct image *i, struct err *err)
{
	if (check_total(j, oci_total(m), err) < 0)
		return -1;
	for (size_t n = 0; n < m->n_layers; n++) {
		char name[OCI_PATH_MAX + 1];
		const struct member *file;

		blob_name(&m->layers[n], name);
		if (want(a, name, &file, err) < 0)
			return -1;
		if (file->size != m->layers[n].size)
			return err_set(err, ERR_INVALID, 0, "%.120s is not what its digest says",
				       name);
		if (add_layer(j, a, file, &m->layers[n], i, err) < 0)
			return -1;
	}
	return 0;
}

static int import_layout(const struct job *j, const struct archive *a, bool layers, struct image *i,
			 struct err *err)
{
	AUTO(auto_free) struct oci_manifest *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "read a manifest");
	if (layout_manifest(j, a, i, m, err) < 0 ||
	    blob_text(j, a, &m->config, &i->config, err) < 0)
		return -1;
	return layers ? layout_layers(j, a, m, i, err) : 0;
}

int import_image(struct job *j, bool layers, struct image *ret, struct err *err)
{
	AUTO(archive_close) struct archive a = { .fd = j->archive };
	struct stat st;

	if (fstat(a.fd, &st) < 0)
		return err_set(err, ERR_INVALID, errno, "the archive");
	a.bytes = (uint64_t)st.st_size;
	if (job_say(j, err, "Reading the archive (%lu MiB)", a.bytes / MIB) < 0 ||
	    check_kind(&a, err) < 0 || list(&a, err) < 0)
		return -1;
	/* newer ones of Docker are both: a layout has digests of everything */
	if (find(&a, BYTES_LIT("oci-layout")) && find(&a, BYTES_LIT("index.json")))
		return import_layout(j, &a, layers, ret, err);
	if (find(&a, BYTES_LIT("manifest.json")))
		return import_docker(j, &a, layers, ret, err);
	return err_set(err, ERR_INVALID, 0,
		       "neither an OCI layout nor what `docker save` writes: no oci-layout and no "
		       "manifest.json in it");
}
