/* tar.h - the headers of a tar file: where its files are, and what they are called. Pure.
 *
 * ustar, GNU's long names and pax's path, linkpath and size. The caller reads blocks of TAR_BLOCK
 * bytes and gives one to tar_block(), which says what follows it:
 *
 *	TAR_TEXT   tar_padded(t->size) bytes that are about the next file: to tar_text()
 *	TAR_FILE   t->name, t->link and t->size of a file, whose bytes follow, padded
 *	TAR_SKIP   nothing of interest, tar_padded(t->size) bytes of it
 *	TAR_END    it is over
 */
#pragma once

#include "base/bytes.h"

enum { TAR_BLOCK = 512, TAR_NAME_MAX = 1023, TAR_TEXT_MAX = 64 * 1024 };

#define TAR_SIZE_MAX (1ull << 40)

enum tar_step { TAR_TEXT, TAR_FILE, TAR_SKIP, TAR_END };

struct tar {
	uint64_t size; /* of what follows the last header */
	char name[TAR_NAME_MAX + 1];
	char link[TAR_NAME_MAX + 1]; /* of a link, hard or symbolic: where it leads; else "" */
	bool symbolic;
	/* what was said of the file to come */
	uint8_t kind; /* of the text that follows */
	bool has_name, has_link, has_size;
	char next_name[TAR_NAME_MAX + 1], next_link[TAR_NAME_MAX + 1];
	uint64_t next_size;
};

static inline uint64_t tar_padded(uint64_t size)
{
	return (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

/* `t` is all zero before the first. */
int tar_block(struct tar *t, const uint8_t block[static TAR_BLOCK], enum tar_step *ret,
	      struct err *err) NODISCARD;
/* `text` is t->size bytes: without the padding. */
int tar_text(struct tar *t, struct bytes text, struct err *err) NODISCARD;
