/* file_metadata.h - what clients note down about a file: extended attributes user.e2b.<key>.
 *
 * They come as fields X-Metadata-<key> of an upload, for every file of it, and replace what was
 * noted before. They are read from the file system alone, so other programs may set them too.
 */
#pragma once

#include "wire/http1_field.h"
#include "wire/json.h"

enum {
	METADATA_KEY_MAX = 246,        /* with user.e2b. in front: what a name may have */
	METADATA_TOTAL_MAX = 4096,     /* prefixes, keys and values together: what ext4 holds */
	METADATA_LIST_MAX = 64 * 1024, /* names of all attributes of a file: the kernel's limit */
};

/* An object of strings by lower-case key, perhaps empty. ERR_INVALID: the text for the client. */
int metadata_parse(const struct http1_head *h, json_t **ret, struct err *err) NODISCARD;

/* `fd` has exactly this metadata. A file system without attributes is an error only if there are
 * any to be set; errno is that of the call that failed. */
int metadata_set(int fd, json_t *metadata) NODISCARD;

/* What the file has; NULL when it has none, or none that is text. Follows symbolic links. */
json_t *metadata_read(const char *path);
