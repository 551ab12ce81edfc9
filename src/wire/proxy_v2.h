/* proxy_v2.h - the header of the PROXY protocol, version 2: for whom a proxy made a connection.
 *
 * It comes before everything else, TLS too, and says its own length in its first PROXY_V2_HEAD
 * bytes: who reads no more than is asked for leaves the client's own bytes where they are. Version
 * 1, a line of text without a length, is refused.
 */
#pragma once

#include "wire/decode.h"
#include "wire/ip_range.h"

enum {
	PROXY_V2_HEAD = 16,
	PROXY_V2_MAX =
		2048, /* with all that may be said besides the address; usual are 28 to 300 */
};

struct proxy_v2 {
	bool has_client; /* false: it speaks for itself (a health check), or knows no address */
	struct ip client;
	uint16_t port;
	bool tls; /* that client spoke TLS with it */
};

/* DECODE_MORE: *ret_n more bytes, at least one, can be read and all of them are the header's.
 * DECODE_OK: it is the first *ret_n bytes. */
enum decode proxy_v2_read(struct bytes so_far, struct proxy_v2 *ret, size_t *ret_n,
			  struct err *err);
