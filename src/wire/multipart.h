/* multipart.h - multipart/form-data, RFC 7578, as it streams by.
 *
 *	PART  DATA DATA ... PART_END  PART  DATA ... PART_END  END
 *
 * Nothing of a part's content is kept or copied: it comes as spans of the input, or of the
 * delimiter that it turned out not to be. Only the few header lines of a part are buffered.
 * Strict: lines end in CRLF, nothing stands before the first delimiter, each part says what it is.
 * What follows the last delimiter is ignored.
 */
#pragma once

#include "base/bytes.h"
#include "wire/decode.h"

enum {
	MULTIPART_BOUNDARY_MAX = 70,    /* RFC 2046 section 5.1.1 */
	MULTIPART_HEAD_MAX = 16 * 1024, /* header lines of one part, in bytes */
	MULTIPART_DELIMITER_MAX = MULTIPART_BOUNDARY_MAX + 4,
};

enum multipart_kind { MULTIPART_PART, MULTIPART_DATA, MULTIPART_PART_END, MULTIPART_END };

struct multipart_piece {
	enum multipart_kind kind;
	struct bytes data; /* MULTIPART_DATA: not empty */
	/* MULTIPART_PART, borrowed until the next call */
	struct bytes name, filename;
	bool has_filename;
};

enum multipart_state {
	MULTIPART_AT_START, /* in the first delimiter */
	MULTIPART_AT_MARK,  /* after a delimiter: CRLF or "--" */
	MULTIPART_AT_LF,    /* its CR was seen */
	MULTIPART_AT_DASH,  /* its first dash was seen */
	MULTIPART_IN_HEAD,
	MULTIPART_IN_DATA,
	MULTIPART_DONE,
};

struct multipart {
	enum multipart_state state;
	uint8_t delimiter[MULTIPART_DELIMITER_MAX]; /* CRLF, two dashes, the boundary */
	size_t delimiter_len;
	size_t matched; /* bytes of it that were seen and are held back */
	struct buf head;
};

/* From the value of Content-Type, with its boundary. */
int multipart_init(struct multipart *m, struct bytes content_type, struct err *err) NODISCARD;
void multipart_done(struct multipart *m);

/* Cut the next piece off the front of *in. OK: *ret is set; END comes again when asked again, and
 * *in is used up then. MORE: *in is used up. A body that ends before END is not whole. */
enum decode multipart_next(struct multipart *m, struct bytes *in, struct multipart_piece *ret,
			   struct err *err) NODISCARD;
