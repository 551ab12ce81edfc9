/* unpack.h - layers become a disk, by hotcell-unpack: a child without files and without a network.
 */
#pragma once

#include "images/job.h"

/* What it says meanwhile goes to who waits. ERR_INVALID: it refused the image, and why. */
int unpack_image(const struct job *j, const struct image *i, struct err *err) NODISCARD;

/* One line of what it says, with a text for people ("": none). Pure.
 *
 *	{"progress":{"layer":1,"layers":3,"entries":99,"bytes":12345}}
 *	{"ok":{"added":["..."], ...}}
 *	{"error":{"code":"invalid","message":"why","layer":2,"path":"of what"}}
 */
enum unpack_word { UNPACK_PROGRESS, UNPACK_OK, UNPACK_ERROR };
struct unpack_said {
	enum unpack_word word;
	enum err_code code; /* of UNPACK_ERROR */
	char text[IMAGES_TEXT_SIZE];
};
int unpack_line(struct bytes line, struct unpack_said *ret, struct err *err) NODISCARD;
