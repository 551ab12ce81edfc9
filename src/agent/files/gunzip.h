/* gunzip.h - undo the content coding gzip, as it streams by.
 *
 * About 40 KiB for as long as it is open, whatever the size of the content. Several members in a
 * row are one content (RFC 1952 section 2.2). zlib behind a wall: nobody else includes it.
 */
#pragma once

#include "base/bytes.h"
#include "wire/decode.h"

enum { GUNZIP_PIECE_MAX = 32 * 1024 }; /* the largest span at once, in bytes */

struct gunzip; /* opaque */

int gunzip_open(struct gunzip **ret, struct err *err) NODISCARD;
void gunzip_close(struct gunzip *g); /* NULL is fine */

/* Take coding off the front of *in, up to and including the next span of content. OK: *ret is a
 * span, not empty, valid until the next call. MORE: *in is used up. */
enum decode gunzip_next(struct gunzip *g, struct bytes *in, struct bytes *ret,
			struct err *err) NODISCARD;

bool gunzip_is_whole(const struct gunzip *g); /* at the end of a member, its checksum right */
