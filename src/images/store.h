/* store.h - blobs by their digests, once each: layers, configurations, manifests.
 *
 *	data_dir/store/blobs/HEX   read-only, whole: it came by a rename, synced
 *	data_dir/store/given/HEX   who gave it: given.h
 *	data_dir/store/jobs/ID/    what a job has so far; swept at the start
 *
 * Several processes use it at once. Who has a blob open holds a shared lock on it; what is to go is
 * locked for oneself alone first. So nothing has to be remembered, and a death leaves no lock.
 */
#pragma once

#include "wire/oci.h"
#include "wire/sha256.h"

struct store {
	int blobs, given; /* the folders */
	/* For whose image: layers are found that this registry gave, texts of this repository. "":
	 * of nobody's, and nothing is found. Borrowed. */
	const char *registry, *repository;
	uint64_t max_bytes;   /* of all blobs */
	uint64_t spare_bytes; /* of the disk, that stay free */
};

enum { STORE_BLOBS_MAX = 65536 };

/* `path` exists: store/. */
int store_open(struct store *s, const char *path, struct err *err) NODISCARD;
void store_close(struct store *s);

/* A layer that the registry gave: opened for reading, locked, and used now. Returns -1 when it is
 * not there, or has another size. No reason is given. */
int store_find(const struct store *s, const char *digest, uint64_t size) NODISCARD;

/* The file `name` of the folder `dir` becomes the blob: its bytes are hashed first, and anything
 * else than the digest and size is ERR_INVALID. Returns it opened and locked. */
int store_keep(const struct store *s, int dir, const char *name, const struct oci_blob *blob,
	       struct err *err) NODISCARD;
/* A short text, whose digest is returned; `dir` is for what is not whole yet. */
int store_add(const struct store *s, int dir, struct bytes text, char ret[static IMAGE_DIGEST + 1],
	      struct err *err) NODISCARD;
/* All of a text that the repository gave. False: it is not there. */
bool store_read(const struct store *s, const char *digest, struct buf *ret);

/* Room for so many more bytes: the blobs that were used longest ago go, but those in use.
 * ERR_NO_SPACE: there is not so much, and how much there is. */
int store_make_room(const struct store *s, uint64_t bytes, struct err *err) NODISCARD;

/* "sha256:" and the digits. */
void store_digest_text(const uint8_t hash[static SHA256_SIZE], char ret[static IMAGE_DIGEST + 1]);
/* SHA-256 of an open file from its beginning, and how many bytes it has. */
int store_digest(int fd, char ret[static IMAGE_DIGEST + 1], uint64_t *ret_size,
		 struct err *err) NODISCARD;
