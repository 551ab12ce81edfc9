/* oci.h - what registries and archives say of an image: indexes, manifests, configurations. Pure.
 *
 * OCI's and Docker's (schema 2) differ in their media types alone, which are not asked for. All of
 * it is hostile: sizes, counts and names have maxima, and a digest is sha256 or it is none.
 */
#pragma once

#include "base/bytes.h"
#include "wire/image_ref.h"

enum {
	OCI_TEXT_MAX = 4 * 1024 * 1024, /* of each of these texts */
	OCI_DEPTH_MAX = 16,
	OCI_LAYERS_MAX = 127,
	OCI_PATH_MAX = 255,   /* of a file in an archive */
	OCI_WORDS_MAX = 1024, /* variables, words of a command */
};

#define OCI_BLOB_MAX (64ull << 30) /* bytes; larger than any disk that is made */

struct oci_blob {
	char digest[IMAGE_DIGEST + 1];
	uint64_t size;
};

struct oci_manifest {
	struct oci_blob config;
	size_t n_layers;
	struct oci_blob layers[OCI_LAYERS_MAX]; /* lowest first */
};

enum oci_kind { OCI_INDEX, OCI_MANIFEST };

int oci_kind(struct bytes text, enum oci_kind *ret, struct err *err) NODISCARD;

/* The image of an index for linux/amd64. One that says no platform is taken when it is the only
 * one. ERR_MISMATCH: there is none, and which there are. */
int oci_choose(struct bytes index, struct oci_blob *ret, struct err *err) NODISCARD;
int oci_manifest(struct bytes text, struct oci_manifest *ret, struct err *err) NODISCARD;
uint64_t oci_total(const struct oci_manifest *m); /* bytes of all layers */

/* Appends {"env":[..],"workingDir":"","user":"","entrypoint":[..],"cmd":[..]}: what of a
 * configuration is of use. ERR_MISMATCH: it is for another platform. */
int oci_config(struct bytes text, struct buf *ret, struct err *err) NODISCARD;
/* The digests of its layers without compression, lowest first. */
int oci_diff_ids(struct bytes text, size_t n, struct oci_blob *ret, struct err *err) NODISCARD;

/* What `docker save` writes: which files of the archive the one image is made of. */
struct oci_archive {
	char config[OCI_PATH_MAX + 1];
	size_t n_layers;
	char layers[OCI_LAYERS_MAX][OCI_PATH_MAX + 1];
};
int oci_archive(struct bytes manifest_json, struct oci_archive *ret, struct err *err) NODISCARD;
