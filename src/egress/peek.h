/* peek.h - what a guest's first bytes say of whom it means: a TLS greeting, an HTTP request, or
 * neither. Asked again as more arrives; each byte is looked at once, however few come at a time,
 * and what they make is read when it is whole.
 */
#pragma once

#include "wire/domain.h"
#include "wire/http1_head.h"
#include "wire/tls_hello.h"

enum { PEEK_MAX = HTTP1_HEAD_MAX }; /* of bytes that are looked at */

enum peek_kind {
	PEEK_MORE,   /* cannot be told yet */
	PEEK_TLS,    /* whole */
	PEEK_HTTP,   /* a whole head */
	PEEK_OTHER,  /* some other protocol: the address decides */
	PEEK_BROKEN, /* began as one of the two and is not legal */
};

struct peek {
	char name[DOMAIN_SIZE]; /* normal; empty: none was said, or an address */
	uint16_t port;          /* of HTTP's Host; 0: none */
	bool hides;             /* of TLS: the name that counts may be an encrypted one */
};

enum peek_stage { PEEK_GREETING, PEEK_LINE, PEEK_HEAD };

struct peek_place { /* how far was looked; all zero: nowhere yet */
	enum peek_stage stage;
	struct tls_hello_place hello;
	size_t begin;     /* of the first line: behind blanks and empty lines */
	size_t scanned;   /* of the line, or of the head */
	bool method_over; /* of the line */
};

/* *place is the caller's, left alone between calls with ever longer prefixes. */
enum peek_kind peek_read(struct bytes so_far, struct peek_place *place, struct peek *ret);
