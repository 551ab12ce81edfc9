/* fuzz_oci.c - promises of what registries say: what is taken is within its limits, a refusal says
 * why. The first byte chooses the reader. */
#include "fuzz/must.h"
#include "wire/oci.h"

static void must_be_blob(const struct oci_blob *b)
{
	MUST(image_digest_ok(bytes_str(b->digest)) && b->size <= OCI_BLOB_MAX);
}

static int read_manifest(struct bytes text, struct err *err)
{
	static struct oci_manifest m;

	if (oci_manifest(text, &m, err) < 0)
		return -1;
	MUST(m.n_layers >= 1 && m.n_layers <= OCI_LAYERS_MAX && m.config.size <= OCI_TEXT_MAX);
	must_be_blob(&m.config);
	for (size_t i = 0; i < m.n_layers; i++)
		must_be_blob(&m.layers[i]);
	MUST(oci_total(&m) <= OCI_LAYERS_MAX * OCI_BLOB_MAX);
	return 0;
}

static int read_archive(struct bytes text, struct err *err)
{
	static struct oci_archive a;

	if (oci_archive(text, &a, err) < 0)
		return -1;
	MUST(a.n_layers >= 1 && a.n_layers <= OCI_LAYERS_MAX && a.config[0]);
	for (size_t i = 0; i < a.n_layers; i++)
		MUST(a.layers[i][0] && memchr(a.layers[i], 0, sizeof(a.layers[i])));
	return 0;
}

static int read_index(struct bytes text, struct err *err)
{
	struct oci_blob b;

	if (oci_choose(text, &b, err) < 0)
		return -1;
	must_be_blob(&b);
	return 0;
}

/* What comes out is read again. */
static int read_config(struct bytes text, struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_MAX(4 * OCI_TEXT_MAX);

	if (oci_config(text, &out, err) < 0)
		return -1;
	MUST(out.len > 2 && out.ptr[0] == '{' && out.ptr[out.len - 1] == '}');
	return 0;
}

static int read_ids(struct bytes text, struct err *err)
{
	struct oci_blob ids[2];

	if (oci_diff_ids(text, COUNT(ids), ids, err) < 0)
		return -1;
	must_be_blob(&ids[0]);
	must_be_blob(&ids[1]);
	return 0;
}

static int read_kind(struct bytes text, struct err *err)
{
	enum oci_kind kind;

	if (oci_kind(text, &kind, err) < 0)
		return -1;
	MUST(kind == OCI_INDEX || kind == OCI_MANIFEST);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const readers[])(struct bytes text, struct err *err) = {
		read_manifest, read_index, read_config, read_ids, read_archive, read_kind,
	};
	struct err err = { 0 };

	if (size == 0)
		return 0;
	if (readers[data[0] % COUNT(readers)]((struct bytes){ data + 1, size - 1 }, &err) < 0)
		must_say_why(&err);
	return 0;
}
