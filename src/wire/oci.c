/* oci.c - see oci.h. */
#include "wire/oci.h"

#include <errno.h>
#include <stdio.h>

#include "wire/json.h"

#define OS           "linux"
#define ARCHITECTURE "amd64"

enum { PLATFORMS_TOLD = 12, PLATFORM_MAX = 32 };

static int decode(struct bytes text, json_t **ret, struct err *err)
{
	return json_decode(text, OCI_TEXT_MAX, OCI_DEPTH_MAX, ret, err);
}

/* --- pieces ----------------------------------------------------------------------------------- */

static int blob_of(const json_t *obj, struct oci_blob *ret, struct err *err)
{
	struct bytes digest;
	int64_t size;

	if (!json_is_object(obj))
		return err_set(err, ERR_INVALID, 0, "a part of the image is not described");
	if (json_want_string(obj, "digest", &digest, err) < 0 ||
	    json_want_int(obj, "size", 0, (int64_t)OCI_BLOB_MAX, &size, err) < 0)
		return err_wrap(err, "a part of the image");
	if (!image_digest_ok(digest))
		return err_set(err, ERR_INVALID, 0, "a part of the image has no sha256 digest");
	(void)bytes_to_str(digest, ret->digest, sizeof(ret->digest));
	ret->size = (uint64_t)size;
	return 0;
}

int oci_kind(struct bytes text, enum oci_kind *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	if (decode(text, &v, err) < 0)
		return err_wrap(err, "the manifest");
	if (json_is_array(json_object_get(v, "manifests")))
		*ret = OCI_INDEX;
	else if (json_is_array(json_object_get(v, "layers")))
		*ret = OCI_MANIFEST;
	else if (json_object_get(v, "fsLayers"))
		return err_set(err, ERR_INVALID, 0,
			       "the image is in Docker's first format: push it again");
	else
		return err_set(err, ERR_INVALID, 0, "neither an image nor an index of images");
	return 0;
}

/* --- an index --------------------------------------------------------------------------------- */

static const char *text_of(const json_t *obj, const char *name)
{
	const char *text = json_string_value(json_object_get(obj, name));

	return text ? text : "";
}

/* What a signature or a list of ingredients has: it is no image. */
static bool is_attachment(const json_t *platform)
{
	return strcmp(text_of(platform, "os"), "unknown") == 0;
}

static bool fits(const json_t *platform)
{
	return strcmp(text_of(platform, "os"), OS) == 0 &&
	       strcmp(text_of(platform, "architecture"), ARCHITECTURE) == 0;
}

/* Whatever it says: a few words that can be shown. */
static void add_platform(const json_t *platform, char *list, size_t size)
{
	size_t used = strlen(list);
	char word[PLATFORM_MAX + 1];

	snprintf(word, sizeof(word), "%.10s/%.10s", text_of(platform, "os"),
		 text_of(platform, "architecture"));
	for (char *c = word; *c; c++)
		if (*c <= ' ' || *c > '~')
			*c = '?';
	snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", word);
}

static int refuse_platforms(const json_t *manifests, struct err *err)
{
	char list[160] = "";
	const json_t *one;
	size_t i, told = 0;

	json_array_foreach(manifests, i, one)
	{
		const json_t *platform = json_object_get(one, "platform");

		if (!is_attachment(platform) && told++ < PLATFORMS_TOLD)
			add_platform(platform, list, sizeof(list));
	}
	return err_set(err, ERR_MISMATCH, 0, "no image for " OS "/" ARCHITECTURE "; there is: %s",
		       list[0] ? list : "nothing");
}

int oci_choose(struct bytes index, struct oci_blob *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	const json_t *one;
	json_t *all;
	size_t i;

	if (decode(index, &v, err) < 0 || json_want_array(v, "manifests", &all, err) < 0)
		return err_wrap(err, "the index of images");
	json_array_foreach(all, i, one) if (fits(json_object_get(one, "platform"))) return blob_of(
		one, ret, err);
	one = json_array_get(all, 0);
	if (json_array_size(all) == 1 && !json_object_get(one, "platform"))
		return blob_of(one, ret, err);
	return refuse_platforms(all, err);
}

/* --- a manifest ------------------------------------------------------------------------------- */

int oci_manifest(struct bytes text, struct oci_manifest *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	json_t *config, *layers;

	*ret = (struct oci_manifest){ 0 };
	if (decode(text, &v, err) < 0 || json_want_object(v, "config", &config, err) < 0 ||
	    json_want_array(v, "layers", &layers, err) < 0 ||
	    blob_of(config, &ret->config, err) < 0)
		return err_wrap(err, "the manifest");
	if (ret->config.size > OCI_TEXT_MAX)
		return err_set(err, ERR_INVALID, 0, "the image's configuration is too large");
	if (json_array_size(layers) == 0 || json_array_size(layers) > OCI_LAYERS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "the image has %zu layers, 1 to %d are taken",
			       json_array_size(layers), OCI_LAYERS_MAX);
	for (size_t i = 0; i < json_array_size(layers); i++)
		if (blob_of(json_array_get(layers, i), &ret->layers[i], err) < 0)
			return -1;
	ret->n_layers = json_array_size(layers);
	return 0;
}

uint64_t oci_total(const struct oci_manifest *m)
{
	uint64_t total = 0;

	static_assert(OCI_BLOB_MAX < UINT64_MAX / (OCI_LAYERS_MAX + 1), "their sum fits");
	for (size_t i = 0; i < m->n_layers; i++)
		total += m->layers[i].size;
	return total;
}

/* --- a configuration -------------------------------------------------------------------------- */

/* Strings alone; null, which Docker writes, is none. */
static int add_words(const json_t *from, const char *name, json_t *to, const char *as,
		     struct err *err)
{
	const json_t *list = json_object_get(from, name), *one;
	AUTO(json_decrefp) json_t *words = json_array();
	size_t i;

	if (json_array_size(list) > OCI_WORDS_MAX)
		return err_set(err, ERR_INVALID, 0, "%s of the image is too long", name);
	json_array_foreach(list, i, one)
	{
		if (!json_is_string(one))
			return err_set(err, ERR_INVALID, 0, "%s of the image is no list of texts",
				       name);
		if (json_array_append_new(words, json_text(json_bytes(one))) < 0)
			return err_set(err, ERR_EXHAUSTED, ENOMEM, "%s of the image", name);
	}
	if (json_object_set(to, as, words) < 0)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "%s of the image", name);
	return 0;
}

static int check_platform(const json_t *v, struct err *err)
{
	const char *os = text_of(v, "os"), *architecture = text_of(v, "architecture");

	/* what was made by hand may say nothing */
	if ((os[0] && strcmp(os, OS) != 0) ||
	    (architecture[0] && strcmp(architecture, ARCHITECTURE) != 0))
		return err_set(err, ERR_MISMATCH, 0,
			       "no image for " OS "/" ARCHITECTURE "; there is: %.10s/%.10s", os,
			       architecture);
	return 0;
}

int oci_config(struct bytes text, struct buf *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL, *said = NULL;
	const json_t *config;

	if (decode(text, &v, err) < 0)
		return err_wrap(err, "the image's configuration");
	if (check_platform(v, err) < 0)
		return -1;
	config = json_object_get(v, "config");
	said = json_pack("{s:s,s:s}", "workingDir", text_of(config, "WorkingDir"), "user",
			 text_of(config, "User"));
	if (!said)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "the image's configuration");
	if (add_words(config, "Env", said, "env", err) < 0 ||
	    add_words(config, "Entrypoint", said, "entrypoint", err) < 0 ||
	    add_words(config, "Cmd", said, "cmd", err) < 0)
		return -1;
	return json_encode(said, ret, err);
}

int oci_diff_ids(struct bytes text, size_t n, struct oci_blob *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	json_t *rootfs, *ids;

	assert(n <= OCI_LAYERS_MAX);
	if (decode(text, &v, err) < 0 || json_want_object(v, "rootfs", &rootfs, err) < 0)
		return err_wrap(err, "the image's configuration");
	ids = json_object_get(rootfs, "diff_ids");
	if (json_array_size(ids) != n)
		return err_set(err, ERR_INVALID, 0,
			       "the image has %zu layers, its configuration says %zu", n,
			       json_array_size(ids));
	for (size_t i = 0; i < n; i++) {
		const json_t *one = json_array_get(ids, i);

		if (!json_is_string(one) || !image_digest_ok(json_bytes(one)))
			return err_set(err, ERR_INVALID, 0, "a layer has no sha256 digest");
		(void)bytes_to_str(json_bytes(one), ret[i].digest, sizeof(ret[i].digest));
		ret[i].size = 0;
	}
	return 0;
}

/* --- what docker save writes ------------------------------------------------------------------ */

static int path_of(const json_t *v, char *ret, size_t size, struct err *err)
{
	if (!json_is_string(v) || json_string_length(v) == 0 ||
	    !bytes_to_str(json_bytes(v), ret, size))
		return err_set(err, ERR_INVALID, 0, "manifest.json names no file of the archive");
	return 0;
}

int oci_archive(struct bytes manifest_json, struct oci_archive *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	const json_t *image, *layers;

	ret->n_layers = 0;
	if (decode(manifest_json, &v, err) < 0)
		return err_wrap(err, "manifest.json of the archive");
	if (!json_is_array(v) || json_array_size(v) != 1)
		return err_set(err, ERR_INVALID, 0,
			       "the archive has %zu images: save one image alone",
			       json_array_size(v));
	image = json_array_get(v, 0);
	layers = json_object_get(image, "Layers");
	if (json_array_size(layers) == 0 || json_array_size(layers) > OCI_LAYERS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "the image has %zu layers, 1 to %d are taken",
			       json_array_size(layers), OCI_LAYERS_MAX);
	if (path_of(json_object_get(image, "Config"), ret->config, sizeof(ret->config), err) < 0)
		return -1;
	for (size_t i = 0; i < json_array_size(layers); i++)
		if (path_of(json_array_get(layers, i), ret->layers[i], sizeof(ret->layers[i]),
			    err) < 0)
			return -1;
	ret->n_layers = json_array_size(layers);
	return 0;
}
